"""A replica that applies what a watch tells is, at every revision told, what the store holds.

Random writes go to a real service; the replica gets nothing but the events. It is compared with
every record that the store has at that revision, under the scope of the watch's filter.
"""

import contextlib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.queries import Filter, Found
from pillion.domain.scope import Subject
from pillion.domain.watching import ChangeKind, Scope
from pillion_storage import codec
from pillion_storage.api import Batch
from pillion_storage.keys import id_of, prefix_end
from pillion_testing.service import (
    EVERYTHING,
    MIRA,
    add,
    confirm,
    episode,
    patch,
    put_fact,
    ram_service,
    retract,
)

TOM = Subject("user", "tom")
SOURCES = (Source(SourceKind.USER_STATEMENT), Source(SourceKind.INFERENCE))

subjects = st.sampled_from((MIRA, TOM))
contexts = st.sampled_from(("", "work"))
labels = st.sets(st.sampled_from("abc")).map(lambda some: tuple(sorted(some)))
sources = st.sampled_from(SOURCES)
places = st.integers(0, 30)

patches = st.tuples(st.just("patch"), places, labels, st.sampled_from((0.1, 0.9)))
operations = st.one_of(
    patches,
    patches,
    st.tuples(st.just("add"), subjects, contexts, labels, sources),
    st.tuples(
        st.just("fact"), subjects, contexts, st.sampled_from("xy"), sources, st.integers(0, 3)
    ),
    st.tuples(st.just("episode"), subjects, contexts, labels),
    st.tuples(st.sampled_from(("confirm", "retract", "never", "expire", "remove")), places),
    st.tuples(st.just("nothing")),
)

# One condition at a time besides contexts: many at once would admit next to nothing.
filters = st.none() | st.builds(
    lambda base, condition: replace(base, **condition),
    st.sampled_from(
        (Filter(contexts=None), Filter(), Filter(contexts=None, include_retracted=True))
    ),
    st.sampled_from(
        (
            {},
            {"subjects": frozenset({MIRA})},
            {"kinds": frozenset({MemoryKind.SEMANTIC})},
            {"statuses": frozenset()},
            {"statuses": frozenset({MemoryStatus.CANDIDATE})},
            {"attributes": frozenset({"x"})},
            {"labels_any": frozenset({"a", "b"})},
            {"labels_all": frozenset({"a"})},
            {"labels_none": frozenset({"c"})},
            {"importance_min": 0.5},
            {"valid_only": False},
        )
    ),
)


def play(service, operation):
    """Do one thing; what the service refuses changes nothing."""
    verb, *rest = operation
    ids = [one.id for one in service.listed()]
    with contextlib.suppress(PillionError, ZeroDivisionError):
        match verb, rest:
            case "add", (subject, context, some, source):
                service.one(
                    add("text", subject=subject, context=context, labels=some, source=source)
                )
            case "fact", (subject, context, attribute, source, value):
                service.one(
                    put_fact(
                        str(value),
                        subject=subject,
                        context=context,
                        attribute=attribute,
                        source=source,
                    )
                )
            case "episode", (subject, context, some):
                service.one(episode("words", subject=subject, context=context, labels=some))
            case "patch", (place, some, importance):
                service.one(patch(ids[place % len(ids)], labels=some, importance=importance))
            case "confirm", (place,):
                service.one(confirm(ids[place % len(ids)]))
            case "retract", (place,):
                service.one(retract(ids[place % len(ids)]))
            case "never", (place,):
                service.one(retract(ids[place % len(ids)], valid_to=0))
            case "expire", (place,):
                service.forget(ForgetMode.EXPIRE, ids=(ids[place % len(ids)],))
            case "remove", (place,):
                service.store.commit(
                    service.partition, Batch(deletes=[b"m" + ids[place % len(ids)].bytes])
                )
            case _:
                service.store.commit(service.partition, Batch(puts={b"aname": b""}))
    service.clock.advance()


def records_at(service, revision):
    """Every memory and episode of a revision, by id, read without the watcher."""
    found = {}
    for family, decode, name in (
        (b"m", codec.decode_memory, "memory"),
        (b"e", codec.decode_episode, "episode"),
    ):
        start = family
        while start is not None:
            page = service.store.scan(
                service.partition, start, prefix_end(family), limit=1000, at=revision
            )
            for row in page.rows:
                one = id_of(row.key)
                found[one] = Found(**{name: decode(one, row.value, row.version)})
            start = page.next_start
    return found


def plain(found):
    """A record without what other records' changes change of it; see the contract."""
    if found.memory is None:
        return found
    return replace(found, memory=replace(found.memory, fact_version=0, vector_pending=False))


def in_scope(records, scope):
    return {one: plain(found) for one, found in records.items() if scope.admits(found)}


@given(st.lists(operations, min_size=12, max_size=25), filters, st.data())
def test_a_replica_is_what_the_store_holds_at_every_revision_told(steps, filter_, data):
    service = ram_service()
    for step in steps:
        play(service, step)
    scope = Scope(filter_)
    begins = data.draw(st.just(0) | st.integers(0, service.revision), label="begins after")
    replica = dict(records_at(service, begins))
    events = service.told(begins, filter_)
    last = begins
    for event in events:
        assert event.revision > last or event is events[-1]
        before = records_at(service, event.revision - 1) if event.changes else {}
        for change in event.changes:
            was = before.get(change.id)
            if change.kind is ChangeKind.REMOVED:
                assert scope.admits(was)
                replica.pop(change.id)
                continue
            assert scope.admits(was) or scope.admits(change.found)
            assert (change.kind is ChangeKind.CREATED) == (was is None)
            replica[change.id] = change.found
        assert in_scope(replica, scope) == in_scope(records_at(service, event.revision), scope)
        last = event.revision
    assert last == service.revision
    listed = {one.id: Found(memory=one) for one in service.listed(EVERYTHING)}
    memories = {one: found for one, found in replica.items() if found.memory is not None}
    assert in_scope(memories, scope) == in_scope(listed, scope)
    service.close()


@given(st.lists(operations, min_size=1, max_size=15), st.data())
def test_a_stream_cut_anywhere_and_resumed_tells_the_same(steps, data):
    service = ram_service()
    for step in steps:
        play(service, step)
    whole = [event for event in service.told() if event.changes]
    told, after = [], 0
    while True:
        stream = service.watch(after)
        take = data.draw(st.integers(1, 4), label="events until the cut")
        part = []
        for event in stream:
            part.append(event)
            if len(part) == take or event.recorded_at is None:
                break
        stream.close()
        told += [event for event in part if event.changes]
        after = part[-1].revision
        if part[-1].recorded_at is None:
            break
    assert told == whole
    service.close()
