"""Writing: one atomic list of mutations, the single ones by name, and read-modify-write."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING, Unpack

from pillion_client import _from_wire, _methods, _requests
from pillion_client._async.caller import AsyncCaller
from pillion_client._async.reading import AsyncReading
from pillion_client._runtime import asynchronous as runtime
from pillion_client.enums import EmbeddingMode, MemoryKind, SourceKind
from pillion_client.errors import AlreadyExists, FactConflict, VersionMismatch
from pillion_client.limits import UPDATE_ATTEMPTS_MAX
from pillion_client.models import FactKey, Memory, Source, Subject, SubjectLike, Value
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
    version_equals,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
        **options: Unpack[WriteOptions],
    ) -> WriteResult:
        """End a memory, or the row of a key that holds now, without a successor.

        For another instant than now, write a ``Retract`` with ``valid_to``.
        """
        return await self.write(Retract(target, precondition), **options)

    async def restore(
        self, memory_id: str, *, precondition: Precondition, **options: Unpack[WriteOptions]
    ) -> WriteResult:
        """Take a retraction back."""
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
        function: Callable[[Memory | None], Awaitable[Value] | Value],
        *,
        source: Source,
        attempts_max: int = UPDATE_ATTEMPTS_MAX,
        **given: Unpack[FactOptions],
    ) -> WriteResult:
        """Read a fact, make a new value of it, and write that, unless somebody wrote between.

        Args:
            subject: Whom or what the fact is about.
            attribute: What about the subject.
            function: From the row that holds now (None: none does) to the new value. It is
                called anew whenever somebody else wrote first; an error of it ends the update.
            source: Who states the new value.
            attempts_max: How often to begin, before the last VersionMismatch is raised.
            **given: Everything else about the fact, and about the call.

        Raises:
            VersionMismatch: Others kept writing first.
            ValueError: A request_id was given: each attempt is a request of its own.
        """
        if "request_id" in given:
            message = "each attempt of update_fact is a request of its own: give no request_id"
            raise ValueError(message)
        about = Subject.parse(subject) if isinstance(subject, str) else subject
        key = FactKey(about, attribute, given.get("context", ""))
        fields, options = _requests.without_write_options(given)
        # The version of a key whose rows are all ended: no row shows it, only a refusal does.
        learned: int | None = None
        for attempt in range(1, attempts_max + 1):
            current = await self._find_fact(key, options)
            if current is not None:
                condition = version_equals(current.fact_version)
            else:
                condition = version_equals(learned) if learned else must_not_exist
            value = await runtime.resolve(function(current))
            change = PutFact(
                about, attribute, value, source=source, precondition=condition, **fields
            )
            try:
                return await self.write(change, **options)
            except (VersionMismatch, AlreadyExists) as refusal:
                if isinstance(refusal, FactConflict) or attempt == attempts_max:
                    raise
                learned = refusal.current
            ceiling = min(0.5, 0.01 * 2.0**attempt)
            await runtime.sleep(ceiling * random.random())  # noqa: S311  (spreads writers out)
        message = f"update_fact needs at least one attempt, not {attempts_max}"
        raise ValueError(message)
