"""Uses of memories: counted without a write, written down without a change of the memory."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.graph import Expansion
from pillion.domain.queries import PLAIN_RANKING, Filter, ReadAt, RecencyAnchor, Target
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion.jobs.accesses import AccessJob
from pillion.service import ServiceSettings
from pillion.service.accesses import Accesses, AccessFlusher
from pillion_storage.api import Batch, StoreFailed, StoreFull, StoreSettings
from pillion_storage.keys import ACCESSES, access_key, memory_key
from pillion_storage.verify import verify
from pillion_testing.fakes import DAY
from pillion_testing.owners import OwnersChecked
from pillion_testing.service import (
    ACME,
    MIRA,
    Service,
    add,
    floats,
    key_of,
    lmdb_service,
    patch,
    put_fact,
    version_is,
)

BY_USE = replace(PLAIN_RANKING, recency_anchor=RecencyAnchor.LAST_USED)


def flush(service, partition=ACME):
    service.use_cases.access_flusher.flush(partition)


def uses(service, memory_id, **more):
    memory = service.get(memory_id, **more)
    return memory.use_count, memory.last_used_at


def use(service, **more):
    """Search for everything, a second later than before; return the instant."""
    service.clock.advance()
    service.search(**more)
    return service.clock.now


def commits(service):
    return service.store.stats().commits, service.store.head(ACME).revision


def test_a_search_writes_nothing_and_what_it_used_is_told_after_a_flush(service):
    one, other = service.one(add("one")).id, service.one(add("two", importance=0.1)).id
    before = commits(service)
    for _ in range(20):
        last = use(service)
    top = use(service, top_k=1)
    assert commits(service) == before
    assert uses(service, one) == uses(service, other) == (0, 0)
    flush(service)
    assert commits(service) == (before[0] + 1, before[1] + 1)
    assert uses(service, one) == (21, top)
    assert uses(service, other) == (20, last)
    flush(service)
    assert commits(service) == (before[0] + 1, before[1] + 1), "there is nothing to write twice"
    use(service)
    flush(service)
    assert uses(service, one)[0] == 22


def test_every_read_tells_the_same_uses(service):
    one = service.one(add("one")).id
    row = service.put("v").id
    service.search()  # all of them are in the caches now
    service.get(one)
    service.get(row)
    for count in (2, 3):
        last = use(service)
        flush(service)
        reader, patience = service.use_cases.reader, service.patience
        targets = (Target(memory_id=one), Target(fact=key_of()))
        batch, _ = reader.batch_get(
            ACME, targets, ReadAt(), include_vectors=False, deadline=patience
        )
        by_fact, _ = reader.get(ACME, targets[1], ReadAt(), include_vector=False, deadline=patience)
        told = [found.memory for found in batch] + [by_fact.memory]
        told += [service.get(one), service.get(row), *service.listed()]
        told += [hit.memory for hit in service.search(counts_as_use=False).hits]
        assert len(told) == 9
        assert {(memory.use_count, memory.last_used_at) for memory in told} == {(count, last)}


def test_a_search_that_is_no_use_and_one_of_the_past_count_nothing(service):
    one = service.one(add("one")).id
    service.search(counts_as_use=False)
    service.search(read=ReadAt(exact_revision=service.store.head(ACME).revision))
    flush(service)
    assert uses(service, one) == (0, 0)


def test_what_a_recall_puts_into_a_context_is_used_once(service):
    row = service.put("v").id
    service.clock.advance()
    assert [line.memory.id for line in service.recall("v").context.lines] == [row]
    flush(service)
    assert uses(service, row) == (1, service.clock.now)


def test_a_search_that_walks_the_graph_uses_each_memory_of_its_answer_once(service):
    paul = Subject("user", "paul")
    edge = service.put(Value(ValueKind.SUBJECT, paul), attribute="colleague").id
    about = service.put("Lisbon", attribute="city", subject=paul).id
    service.clock.advance()
    expansion = Expansion()
    answer = service.search(filter=Filter(subjects=frozenset({MIRA})), expansion=expansion)
    assert [hit.memory.id for hit in answer.hits] == [edge, about]
    flush(service)
    assert uses(service, edge)[0] == uses(service, about)[0] == 1


def test_a_flush_changes_no_memory(service):
    row = service.put("a")
    before, history = service.get(row.id), service.history(key_of())[0]
    head = service.store.head(ACME).revision
    use(service)
    flush(service)
    after = service.get(row.id)
    assert replace(after, use_count=0, last_used_at=0) == before
    assert service.history(key_of())[0] == history
    assert (after.version, after.fact_version) == (before.version, before.fact_version)
    # Neither version is stale for a writer, and nobody who watches hears of the flush.
    service.one(put_fact("b", when=version_is(before.fact_version)))
    service.one(patch(row.id, when=version_is(service.get(row.id).version), importance=0.9))
    events = service.watch(head)
    told = [next(events) for _ in range(2)]
    assert all(event.changes for event in told)
    assert [event.revision for event in told] == [head + 2, head + 3]


def test_a_change_of_the_memory_leaves_its_uses(service):
    one = service.one(add("one")).id
    last = use(service)
    flush(service)
    service.one(patch(one, importance=0.9))
    assert uses(service, one) == (1, last)
    assert service.get(one).importance == 0.9


def test_a_recorded_state_tells_the_uses_that_were_recorded_then(service):
    one = service.one(add("one")).id
    first = use(service)
    flush(service)
    then = ReadAt(exact_revision=service.store.head(ACME).revision)
    use(service)
    flush(service)
    assert uses(service, one, read=then) == (1, first)
    (hit,) = service.search(read=then).hits
    assert hit.memory == service.get(one, read=then)


def test_recency_counts_from_the_last_use_before_and_after_it_is_written_down(service):
    old = service.one(add("old", vector=floats(1.0, 0.0))).id
    service.clock.advance(DAY)
    new = service.one(add("new", vector=floats(1.0, 0.0))).id
    service.clock.advance(DAY)

    def order(ranking):
        return service.found(vector=floats(1.0, 0.0), ranking=ranking, counts_as_use=False)

    assert order(BY_USE) == order(PLAIN_RANKING) == [new, old]
    service.use_cases.searcher._accesses.note(ACME, [old], service.clock.now)
    service.clock.advance(DAY)
    for step in (lambda: None, lambda: flush(service), lambda: _reload(service)):
        step()
        assert order(BY_USE) == [old, new]
        assert order(PLAIN_RANKING) == [new, old]
    # A change of the memory writes its row anew, with the last use, stored or not.
    service.one(patch(old, labels=("a",)))
    assert order(BY_USE) == [old, new]
    service.clock.advance(DAY)
    service.use_cases.searcher._accesses.note(ACME, [new], service.clock.now)
    assert order(BY_USE) == [new, old]
    service.one(patch(new, labels=("a",)))
    assert order(BY_USE) == [new, old]
    past = ReadAt(exact_revision=service.store.head(ACME).revision)
    assert service.found(vector=floats(1.0, 0.0), ranking=BY_USE, read=past) == [old, new], (
        "a recorded state knows the uses that were written down by then"
    )


def _reload(service):
    service.use_cases.searcher._residents._loaded.clear()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("search"), st.integers(1, 3)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("patch"), st.integers(0, 2)),
        st.tuples(st.just("reload"), st.just(0)),
    ),
    max_size=20,
)


@settings(max_examples=40)
@given(STEPS)
def test_searches_by_use_rank_as_a_model_does_and_every_use_is_counted(steps):
    service = Service(OwnersChecked(StoreSettings()))
    ids = [service.one(add(f"memory {number}")).id for number in range(3)]
    made = {one: service.get(one).valid_from for one in ids}
    counts, last = dict.fromkeys(ids, 0), dict(made)
    half_life = 30 * DAY
    for step, (what, number) in enumerate(steps):
        service.clock.advance(DAY)
        if what == "flush":
            flush(service)
        elif what == "patch":
            service.one(patch(ids[number], labels=(f"step-{step}",)))
        elif what == "reload":
            _reload(service)
        else:
            now = service.clock.now
            hits = service.search(top_k=number, ranking=BY_USE).hits
            recency = {one: 0.5 ** ((now - last[one]) / half_life) for one in ids}
            wanted = sorted(ids, key=lambda one: (-recency[one], one))[:number]
            assert [hit.memory.id for hit in hits] == wanted
            for hit in hits:
                assert hit.recency == pytest.approx(recency[hit.memory.id], rel=1e-5)
                counts[hit.memory.id] += 1
                last[hit.memory.id] = now
    flush(service)
    for one in ids:
        assert uses(service, one) == (counts[one], last[one] if counts[one] else 0)
    service.close()


def test_counts_are_exact_after_searches_writes_and_flushes_at_once(service):
    ids = [service.one(add(f"memory {number}")).id for number in range(5)]
    returned, lock = dict.fromkeys(ids, 0), threading.Lock()
    failures = []

    def search():
        for _ in range(40):
            hits = service.search(top_k=5).hits
            with lock:
                for hit in hits:
                    returned[hit.memory.id] += 1

    def change():
        for number in range(30):
            service.one(patch(ids[number % 5], importance=number / 30))

    def write_down():
        for _ in range(30):
            flush(service)

    def run(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001  (the test tells of it)
            failures.append(error)

    work = [search, search, search, change, write_down, write_down]
    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    flush(service)
    assert {one: uses(service, one)[0] for one in ids} == returned


def test_partitions_that_leave_memory_lose_no_use():
    service = Service(
        OwnersChecked(StoreSettings()), settings=ServiceSettings(partitions_memory_bytes=1)
    )
    places = [Partition("production", f"tenant-{number}") for number in range(3)]
    ids = {place: service.one(add("one"), partition=place).id for place in places}
    for _ in range(4):
        for place in places:
            service.search(partition=place)
    assert service.use_cases.searcher._residents.evictions >= 9
    for place in places:
        flush(service, place)
        assert uses(service, ids[place], partition=place)[0] == 4
    service.close()


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_uses_survive_a_restart_and_what_was_not_written_down_by_a_kill_is_all_that_goes(
    tmp_path, sealed
):
    service = lmdb_service(tmp_path, sealed=sealed)
    one = service.one(add("one", vector=floats(1.0, 0.5))).id
    last = use(service)
    service.close()
    service = lmdb_service(tmp_path, sealed=sealed)
    assert uses(service, one) == (1, last)
    use(service)
    service.store.close()  # as a kill does: nobody was told
    service = lmdb_service(tmp_path, sealed=sealed)
    assert uses(service, one) == (1, last)
    assert service.found(vector=floats(1.0, 0.5), ranking=BY_USE) == [one]
    service.close()
    assert verify(tmp_path).findings == []


def test_uses_are_sealed_with_their_subjects_key(tmp_path):
    service = lmdb_service(tmp_path, sealed=True)
    one = service.one(add("one")).id
    use(service)
    flush(service)
    keys = service.use_cases.searcher._keys.of(ACME)
    subject = service.get(one).subject
    service.store.destroy_keys(service.store.retire_owner(ACME, keys.subject(subject)))
    assert service.store.read(ACME, [access_key(one)]).entries == {}
    service.close()


def test_uses_of_a_memory_that_is_gone_go_with_it(service):
    one, other = service.one(add("one")).id, service.one(add("two")).id
    use(service)
    service.store.commit(ACME, Batch(deletes=[memory_key(one)]))
    flush(service)
    assert uses(service, other)[0] == 1
    found = service.store.scan(ACME, ACCESSES, b"m", limit=10).rows
    assert [row.key for row in found] == [access_key(other)]


@pytest.mark.parametrize(("error", "counted"), [(StoreFull("full"), 1), (StoreFailed("io"), 0)])
def test_a_flush_that_fails_counts_nothing_twice(service, monkeypatch, error, counted):
    """What surely was not done waits; what may have been done is given up."""
    one = service.one(add("one")).id
    use(service)
    with monkeypatch.context() as patched:

        def fail(*_):
            raise error

        patched.setattr(service.store, "commit", fail)
        with pytest.raises(type(error)):
            flush(service)
    flush(service)
    assert uses(service, one)[0] == counted


def test_a_flush_that_meets_a_change_of_the_memory_is_made_again(service, monkeypatch):
    one = service.one(add("one")).id
    use(service)
    flusher = service.use_cases.access_flusher
    batch = flusher._batch
    met = []

    def meddle(partition, taken):
        made = batch(partition, taken)
        met.append(service.one(patch(one, importance=0.6 + len(met) / 10)))
        return made

    monkeypatch.setattr(flusher, "_batch", meddle)
    flush(service)
    assert len(met) == 3
    assert uses(service, one) == (0, 0), "they wait for the next flush"
    monkeypatch.undo()
    flush(service)
    assert uses(service, one)[0] == 1


def test_no_more_memories_wait_than_the_bound_says(service):
    ids = [service.one(add(f"memory {number}")).id for number in range(6)]
    accesses = Accesses(pending_max=4)
    accesses.note(ACME, ids[:1], 1)
    assert not accesses.crowded.is_set()
    accesses.note(ACME, ids, 2)
    assert accesses.crowded.is_set()
    assert accesses.dropped == 2
    accesses.note(ACME, ids[:2], 3)
    flusher = AccessFlusher(service.store, service.use_cases.searcher._keys, accesses)
    flusher.flush(ACME)
    assert not accesses.crowded.is_set()
    assert [uses(service, one) for one in ids] == [(3, 3), (2, 3), (1, 2), (1, 2), (0, 0), (0, 0)]
    assert accesses._count == 0
    accesses.note(ACME, ids, 4)
    assert accesses.dropped == 4


def test_the_job_flushes_when_many_wait_and_when_it_ends(service):
    one = service.one(add("one")).id
    accesses = Accesses(pending_max=2)
    flushed = threading.Event()

    class Told(AccessFlusher):
        def flush_all(self):
            super().flush_all()
            flushed.set()

    job = AccessJob(
        accesses, Told(service.store, service.use_cases.searcher._keys, accesses), 86_400.0
    )
    job.start()
    accesses.note(ACME, [one], 5)
    assert flushed.wait(60)
    assert uses(service, one) == (1, 5)
    accesses._pending_max = 1000
    accesses.note(ACME, [one], 6)
    job.stop()
    assert uses(service, one) == (2, 6)
