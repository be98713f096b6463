"""Writing: one atomic list of mutations, the single ones by name, and read-modify-write."""

from __future__ import annotations

import random
import time
import uuid
from typing import TYPE_CHECKING, Unpack

from pillion_client import _from_wire, _methods, _requests
from pillion_client._async.caller import AsyncCaller
from pillion_client._async.reading import AsyncReading
from pillion_client._runtime import asynchronous as runtime
from pillion_client.enums import EmbeddingMode, MemoryKind, SourceKind
from pillion_client.errors import AlreadyExists, FactConflict, VersionMismatch
from pillion_client.limits import UPDATE_ATTEMPTS_MAX
from pillion_client.models import (
    WHOLE,
    FactKey,
    Memory,
    Source,
    Subject,
    SubjectLike,
    Unchanged,
    Value,
    Whole,
)
from pillion_client.mutations import (
    AddMemory,
    CaptureEpisode,
    CloseOpenItem,
    Confirm,
    Mutation,
    Patch,
    PutFact,
    Restore,
    Retract,
)
from pillion_client.preconditions import (
    Precondition,
    must_exist,
    must_not_exist,
    unconditional,
    version_equals,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from pillion_client.options import EpisodeOptions, FactOptions, StatementOptions, WriteOptions
    from pillion_client.results import WriteResult


class AsyncWriting(AsyncReading, AsyncCaller):
    """The writing half of the client. Every write carries a request_id, so a retry is safe."""

    async def write(self, *mutations: Mutation, **options: Unpack[WriteOptions]) -> WriteResult:
        """Apply 1 to 100 mutations: all of them, or none. Answered once they are on disk.

        Raises:
            ValueError: Something cannot be sent: a time without an offset, a NaN.
            VersionMismatch: A precondition's version is not the current one.
            PillionError: Everything else that ``errors`` lists.
        """
        request_id = options.get("request_id") or str(uuid.uuid4())
        request = _requests.write(
            mutations,
            partition=self._where(options),
            request_id=request_id,
            guards=options.get("guards", ()),
            embedding=options.get("embedding", EmbeddingMode.UNSPECIFIED),
            validate_only=options.get("validate_only", False),
        )
        response = await self._call(_methods.WRITE, request, options)
        return _from_wire.write_result(response, request_id)

    async def put_fact(
        self,
        subject: SubjectLike,
        attribute: str,
        value: Value,
        *,
        source: Source,
        precondition: Precondition,
        **given: Unpack[FactOptions],
    ) -> WriteResult:
        """State a fact on its key's timeline. See ``PutFact`` for the fields."""
        fields, options = _requests.without_write_options(given)
        change = PutFact(
            subject, attribute, value, source=source, precondition=precondition, **fields
        )
        return await self.write(change, **options)

    async def add_memory(
        self,
        subject: SubjectLike,
        text: str,
        *,
        source: Source,
        kind: MemoryKind | str = MemoryKind.EPISODIC,
        precondition: Precondition = must_not_exist,
        **given: Unpack[StatementOptions],
    ) -> WriteResult:
        """Add an untyped memory. See ``AddMemory`` for the fields."""
        fields, options = _requests.without_write_options(given)
        change = AddMemory(
            subject, text, source=source, kind=kind, precondition=precondition, **fields
        )
        return await self.write(change, **options)

    async def capture_episode(
        self,
        subject: SubjectLike,
        content: str,
        *,
        source_kind: SourceKind | str,
        precondition: Precondition = must_not_exist,
        **given: Unpack[EpisodeOptions],
    ) -> WriteResult:
        """Capture a raw source. See ``CaptureEpisode`` for the fields."""
        fields, options = _requests.without_write_options(given)
        change = CaptureEpisode(
            subject, content, source_kind=source_kind, precondition=precondition, **fields
        )
        return await self.write(change, **options)

    async def patch(
        self,
        memory_id: str,
        changes: dict[str, object],
        *,
        precondition: Precondition,
        **options: Unpack[WriteOptions],
    ) -> WriteResult:
        """Change some fields of a memory; None as a value clears a field."""
        return await self.write(Patch(memory_id, changes, precondition), **options)

    async def confirm(
        self,
        memory_id: str,
        *,
        source: Source,
        precondition: Precondition = must_exist,
        **options: Unpack[WriteOptions],
    ) -> WriteResult:
        """Record that a user confirmed a memory."""
        return await self.write(Confirm(memory_id, source, precondition), **options)

    async def retract(
        self,
        target: str | FactKey,
        *,
        precondition: Precondition,
        valid_to: datetime | None = None,
        **options: Unpack[WriteOptions],
    ) -> WriteResult:
        """End a memory, or the row of a key, without a successor, from an instant on.

        Args:
            target: A memory's id, or a key, whose row that holds at the instant is meant.
            precondition: What must hold of it.
            valid_to: The instant; None: now.
            **options: Everything else about the call.
        """
        return await self.write(Retract(target, precondition, valid_to), **options)

    async def restore(
        self, memory_id: str, *, precondition: Precondition, **options: Unpack[WriteOptions]
    ) -> WriteResult:
        """Take the last retraction of a memory back."""
        return await self.write(Restore(memory_id, precondition), **options)

    async def close_open_item(
        self,
        memory_id: str,
        *,
        precondition: Precondition = must_exist,
        **options: Unpack[WriteOptions],
    ) -> WriteResult:
        """Close an open item now. For another instant, write a ``CloseOpenItem``."""
        change = CloseOpenItem(memory_id, precondition=precondition)
        return await self.write(change, **options)

    async def update_fact(
        self,
        subject: SubjectLike,
        attribute: str,
        function: Callable[[Memory | None], Awaitable[Value | Unchanged] | Value | Unchanged],
        *,
        source: Source,
        member: Value | Whole = WHOLE,
        attempts_max: int = UPDATE_ATTEMPTS_MAX,
        **given: Unpack[FactOptions],
    ) -> WriteResult | None:
        """Read a fact, make a new value of it, and write that, unless somebody wrote between.

        Of an attribute that is registered as a set, one ``member`` is read, and the new value
        takes its place: the member is retracted where the new value begins, in the same write. A
        member that the set does not have is added.

        Args:
            subject: Whom or what the fact is about.
            attribute: What about the subject.
            function: From the row that holds now (None: none does) to the new value, or to
                ``UNCHANGED`` to end without a write. It is called anew whenever somebody else
                wrote first, so it must do nothing but compute; an error of it ends the update.
            source: Who states the new value.
            member: Which member of a set, by its value.
            attempts_max: How often to begin. Each attempt is a request of its own; one whose
                answer was lost is settled by sending that very request again.
            **given: Everything else about the fact, and about the call. ``deadline_seconds``
                spans all attempts.

        Returns:
            What the write did; None: ``function`` left the fact as it was.

        Raises:
            VersionMismatch: Others kept writing first; ``attempts`` says how often it began.
            AlreadyExists: The same, where the key had no row each time it was read.
            ValueError: A request_id was given, or less than one attempt.
        """
        if "request_id" in given:
            message = "each attempt of update_fact is a request of its own: give no request_id"
            raise ValueError(message)
        if attempts_max < 1:
            message = f"update_fact needs at least one attempt, not {attempts_max}"
            raise ValueError(message)
        about = Subject.parse(subject) if isinstance(subject, str) else subject
        key = FactKey(about, attribute, given.get("context", ""), member)
        fields, options = _requests.without_write_options(given)
        ends_at = time.monotonic() + self._seconds(options)
        # The version of a key whose rows are all ended: no row shows it, only a refusal does.
        learned: int | None = None
        attempt = 1
        while True:
            options["deadline_seconds"] = max(0.0, ends_at - time.monotonic())
            current = await self._find_fact(key, options)
            if current is not None:
                condition = version_equals(current.fact_version)
            else:
                condition = version_equals(learned) if learned else must_not_exist
            value = await runtime.resolve(function(current))
            if isinstance(value, Unchanged):
                return None
            change = PutFact(
                about, attribute, value, source=source, precondition=condition, **fields
            )
            options["deadline_seconds"] = max(0.0, ends_at - time.monotonic())
            try:
                return await self.write(change, *_instead(current, key, value, given), **options)
            except (VersionMismatch, AlreadyExists) as refusal:
                pause = min(0.5, 0.01 * 2.0**attempt) * random.random()  # noqa: S311  (spreads writers out)
                refusal.attempts = attempt
                if (
                    attempt == attempts_max
                    or not _lost_the_race(refusal)
                    or time.monotonic() + pause >= ends_at
                ):
                    raise
                learned = refusal.current
            await runtime.sleep(pause)
            attempt += 1


def _instead(
    current: Memory | None, key: FactKey, value: Value, given: FactOptions
) -> tuple[Retract, ...]:
    """Return what takes a member out of a set whose place another value has, if it is another.

    What is demanded of the key's version stands with the new value, which is in the same write.
    """
    if current is None or isinstance(key.member, Whole) or value == current.value:
        return ()
    return (Retract(current.id, unconditional, given.get("valid_from")),)


def _lost_the_race(refusal: VersionMismatch | AlreadyExists) -> bool:
    """Return whether a fact was refused for its key's version, so that reading again helps.

    A conflict of two values, an id that is taken and a guard of the caller's stay as they are.
    """
    return (
        not isinstance(refusal, FactConflict)
        and refusal.current is not None
        and "guard_index" not in refusal.metadata
    )
