"""The law of the past: what was answered at an instant is answered for it ever after.

A random history is written to a whole service, over RAM and over LMDB. Along the way every kind of
read is asked about the present, about its revision and about its recorded instant. After
everything that came later, each is asked again about that revision and instant, and must answer
with equal values down to the bits of the scores.
"""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError
from pillion.domain.graph import Direction, NeighborsQuery
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.memory import MemoryStatus
from pillion.domain.mutations import ConflictPolicy
from pillion.domain.queries import PLAIN_READ, Filter, ReadAt, Target
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import DAY, SECOND, START, uuid7
from pillion_testing.service import (
    EVERYTHING,
    MIRA,
    add,
    close_item,
    confirm,
    episode,
    floats,
    key_of,
    lmdb_service,
    patch,
    put_fact,
    ram_service,
    retract,
)

JO = Subject("user", "jo")
REFERS = Value(ValueKind.SUBJECT, JO)  # such a fact is an edge
KEYS = [key_of(), key_of(subject=JO), key_of(context="work")]
VECTORS = [b"", floats(1, 0), floats(1, 1), floats(-1, 3), floats(0, 1)]
PROBES = [INSTANT_MIN_US, START - 3 * SECOND, START + 2 * SECOND, START + 30 * DAY, INSTANT_MAX_US]
FILTERS = [
    Filter(),
    EVERYTHING,
    Filter(subjects=frozenset({MIRA})),
    Filter(subjects=frozenset({MIRA, JO}), contexts=None, valid_only=False),
    Filter(contexts=frozenset({"work"}), include_expired=True),
]
VERBS = [
    *["put", "put", "put", "end", "correct", "add", "add", "episode", "patch", "confirm"],
    *["retract", "withdraw", "forget_one", "forget_all", "close", "wait", "back"],
]

instants = st.one_of(
    st.integers(-5, 5).map(lambda number: START + number * SECOND),
    st.sampled_from([INSTANT_MIN_US, INSTANT_MAX_US, START - 400 * DAY]),
)
steps = st.fixed_dictionaries(
    {
        "verb": st.sampled_from(VERBS),
        "key": st.sampled_from(KEYS),
        "value": st.sampled_from("abc"),
        "instant": instants,
        "length": st.integers(1, 4),
        "which": st.integers(0, 1000),
        "vector": st.sampled_from(VECTORS),
        "expires": st.sampled_from([None, None, 1, 3, 10**6]),
        "waits": st.sampled_from([0, 0, 1, 1, 2, 86_400]),
        "status": st.sampled_from([None, None, MemoryStatus.CANDIDATE]),
    }
)


class Witness:
    """Writes a history and remembers what was answered on the way."""

    def __init__(self, service) -> None:
        self.service = service
        self.memories: list = []
        self.episodes: list = []
        self.seen: list = []

    # --- writing ---------------------------------------------------------------------------

    def step(self, step) -> None:
        service = self.service
        service.clock.advance(step["waits"] * SECOND)
        # What does not fit changes nothing, which the reads then show.
        with contextlib.suppress(PillionError):
            self._step(**step)

    def _step(self, *, verb, key, value, instant, length, which, vector, expires, **more) -> None:
        service = self.service
        now = service.clock.now
        gone = None if expires is None else now + expires * SECOND
        about = {"subject": key.subject, "context": key.context}
        one = self.memories[which % len(self.memories)] if self.memories else uuid7(9)
        match verb:
            case "put" | "end" | "correct":
                self._write(
                    put_fact(
                        REFERS if value == "c" else value,
                        valid_from=instant,
                        valid_to=instant + length * SECOND if verb == "end" else None,
                        expires_at=gone,
                        vector=vector,
                        status=more["status"],
                        policy=ConflictPolicy.CORRECT
                        if verb == "correct"
                        else ConflictPolicy.REJECT,
                        **about,
                    )
                )
            case "add":
                self._write(
                    add(value, valid_from=instant, expires_at=gone, vector=vector, **about),
                    add(value * 2, importance=length / 4, labels=(value,), **about),
                )
            case "episode":
                result = self._write(episode(value, expires_at=gone, **about))
                self.episodes.append(result.id)
            case "patch":
                self._write(patch(one, text=value, importance=length / 4))
            case "confirm":
                self._write(confirm(one))
            case "retract":
                self._write(retract(key=key, valid_to=instant))
            case "withdraw":
                self._write(retract(one, valid_to=service.get(one).valid_from))
            case "forget_one":
                service.forget(list(ForgetMode)[length % 2], ids=(one,))
            case "forget_all":
                service.forget(list(ForgetMode)[length % 2], subject=key.subject)
            case "close":
                self._write(close_item(one))
            case "back":
                service.clock.advance(-length * SECOND)

    def _write(self, *mutations):
        results = self.service.write(*mutations).results
        self.memories += [one.id for one in results if one.id not in self.episodes]
        return results[-1]

    # --- reading ---------------------------------------------------------------------------

    def look(self) -> None:
        """Ask about the present, by both names of it, and remember the answers."""
        store, clock = self.service.store, self.service.clock
        head = store.head(self.service.partition)
        known = [*self.memories], [*self.episodes]
        instant = clock.now
        if instant >= head.recorded_at:
            now = self.ask(known, PLAIN_READ)
            assert self.ask(known, ReadAt(known_at=instant)) == now
            self.seen.append((known, ReadAt(known_at=instant), now))
        then = self.ask(known, ReadAt(exact_revision=head.revision))
        assert self.ask(known, ReadAt(known_at=head.recorded_at)) == then or head.revision == 0
        self.seen.append((known, ReadAt(exact_revision=head.revision), then))
        if head.revision:
            self.seen.append((known, ReadAt(known_at=head.recorded_at), then))

    def look_back(self) -> None:
        for known, read, answers in self.seen:
            again = self.ask(known, read)
            assert again == answers, read

    def ask(self, known, read) -> dict:
        """Every read there is, as values."""
        service = self.service
        ids, episodes = known
        asked = {}

        def note(name, call):
            try:
                asked[name] = call()
            except PillionError as error:
                asked[name] = error.reason

        for as_of in (None, *PROBES):
            dated = replace(read, as_of=as_of)
            note(
                ("facts", as_of), lambda r=dated: self._batch([Target(fact=key) for key in KEYS], r)
            )
        note("list", lambda: service.listed(Filter(contexts=None), read=replace(read, as_of=START)))
        targets = [Target(memory_id=one) for one in ids[-40:]]
        targets += [Target(episode_id=one) for one in episodes[:40]]
        note("ids", lambda: self._batch([*targets, Target(memory_id=uuid7(8))], read))
        for key in KEYS:
            note(("history", key), lambda k=key: service.history(k, read=read))
        for one in ids[-3:]:
            note(("history", one), lambda i=one: service.history(memory_id=i, read=read))
        for number, wanted in enumerate(FILTERS):
            note(("list", number), lambda f=wanted: service.list(f, read=read))
            note(("episodes", number), lambda f=wanted: service.list(f, episodes=True, read=read))
            vector = VECTORS[number % 3]
            note(
                ("search", number),
                lambda f=wanted, v=vector: service.search(
                    vector=v, top_k=5, filter=f, read=read, include_vectors=True
                ),
            )
        walk = NeighborsQuery(subjects=(MIRA,), direction=Direction.BOTH, read=read)
        note("walk", lambda: self._of(service.use_cases.walker.neighbors, walk))
        note("recall", lambda: service.recall("", JO, MIRA, read=read, token_budget=90))
        return asked

    def _of(self, verb, query):
        return verb(self.service.partition, query, self.service.patience)

    def _batch(self, targets, read):
        return self.service.use_cases.reader.batch_get(
            self.service.partition,
            targets,
            read,
            include_vectors=True,
            deadline=self.service.patience,
        )


def check(service, history) -> None:
    witness = Witness(service)
    try:
        witness.look()
        for step in history:
            witness.step(step)
            witness.look()
        service.clock.advance(SECOND)
        witness.look_back()
        service.clock.advance(400 * DAY)
        witness.look_back()
    finally:
        service.close()


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(steps, min_size=1, max_size=8))
def test_what_was_known_never_changes(history):
    check(ram_service(), history)


@settings(max_examples=max(5, settings.default.max_examples // 8))
@given(st.lists(steps, min_size=1, max_size=8))
def test_what_was_known_never_changes_on_disk(history):
    with tempfile.TemporaryDirectory() as directory:
        check(lmdb_service(Path(directory) / "store"), history)
