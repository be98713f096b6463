"""Reads of recorded states: what they refuse, where they end, and what trims leave of them."""

from __future__ import annotations

import threading

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.queries import Exactness, Filter, ReadAt, SearchPath
from pillion.domain.scope import Partition, Subject
from pillion.service import past
from pillion_storage.api import Batch, StoreSettings
from pillion_storage.lmdb import open_store as open_lmdb
from pillion_testing.fakes import DAY, SECOND, START, FakeClock, FakeEmbedder, Patience, uuid7
from pillion_testing.service import (
    ACME,
    EVERYTHING,
    MIRA,
    add,
    episode,
    floats,
    key_of,
    lmdb_service,
    patch,
    ram_service,
)

GONE, FUTURE, FIELD = Reason.HISTORY_GONE, Reason.FUTURE_REVISION, Reason.INVALID_FIELD
OTHER = Partition("production", "other")


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def reads(service, one, read):
    """Every kind of read, as calls."""
    return [
        lambda: service.get(one, read=read),
        lambda: service.current(exact_revision=read.exact_revision, known_at=read.known_at),
        lambda: service.list(read=read),
        lambda: service.history(key_of(), read=read),
        lambda: service.history(memory_id=one, read=read),
        lambda: service.search(read=read),
        lambda: service.search(filter=Filter(subjects=frozenset({MIRA})), read=read),
    ]


def refused(call) -> PillionError:
    with pytest.raises(PillionError) as caught:
        call()
    return caught.value


def told(service, count=6):
    """State ``count`` values, a second apart; return the row of the first."""
    first = None
    for number in range(count):
        service.clock.advance()
        row = service.put(str(number), valid_from=START - DAY + number)
        first = first or row.id
    return first


def test_every_read_shows_the_value_that_was_known(service):
    one = told(service, 3)
    service.clock.advance(DAY)
    for revision in (1, 2, 3):
        read = ReadAt(exact_revision=revision)
        value = str(revision - 1)
        assert service.value_at(exact_revision=revision) == value
        assert [row.value.data for row in service.listed(Filter(), read=read)] == [value]
        assert [hit.memory.value.data for hit in service.search(read=read).hits] == [value]
        assert service.search(read=read).revision == service.list(read=read).revision == revision
        row = service.get(one, read=read)
        assert (row.superseded_by is None) == (revision == 1)
        assert row.fact_version == revision
        entries, _, told_at = service.history(key_of(), read=read)
        assert told_at == revision
        assert sum(entry.to_revision == 0 for entry in entries) == revision
        assert max(entry.from_revision for entry in entries) == revision
        assert all((one.to_revision == 0) == (one.recorded_to is None) for one in entries)


def test_before_the_first_commit_there_was_nothing(service):
    one = told(service, 1)
    for read in (
        ReadAt(exact_revision=0),
        ReadAt(known_at=START),
        ReadAt(known_at=INSTANT_MIN_US, as_of=INSTANT_MAX_US),
    ):
        assert refused(lambda r=read: service.get(one, read=r)).reason is Reason.NOT_FOUND
        assert refused(lambda r=read: service.history(key_of(), read=r)).reason is Reason.NOT_FOUND
        page = service.list(EVERYTHING, read=read)
        assert (page.records, page.revision) == ((), 0)
        assert service.search("x", read=read).hits == ()
        assert service.current(exact_revision=read.exact_revision, known_at=read.known_at) is None


def test_what_is_not_recorded_yet_is_out_of_range(service):
    one = told(service, 2)
    now = service.clock.now
    for read in (
        ReadAt(exact_revision=3),
        ReadAt(exact_revision=2**63 - 1),
        ReadAt(known_at=now + 1),
        ReadAt(known_at=INSTANT_MAX_US),
    ):
        for call in reads(service, one, read):
            error = refused(call)
            assert error.reason is FUTURE
            assert error.metadata == {"newest_revision": "2"}
    service.clock.advance(DAY)
    assert service.value_at(known_at=now + 1) == "1"  # after the newest commit: the newest state


def test_a_clock_that_was_set_back_hides_nothing_that_is_recorded(service):
    told(service, 2)
    head = service.store.head(ACME)
    service.clock.advance(-DAY)
    assert service.value_at(known_at=head.recorded_at) == "1"
    assert refused(lambda: service.value_at(known_at=head.recorded_at + 1)).reason is FUTURE
    service.put("2", valid_from=START)
    assert service.value_at(known_at=head.recorded_at, as_of=START) == "1"
    assert service.store.head(ACME).recorded_at > head.recorded_at


@pytest.mark.parametrize(
    ("read", "field"),
    [
        (ReadAt(exact_revision=-1), "read.exact_revision"),
        (ReadAt(exact_revision=1, known_at=START), "read.recorded"),
        (ReadAt(known_at=INSTANT_MAX_US + 1), "read.known_at"),
        (ReadAt(exact_revision=1, as_of=INSTANT_MIN_US - 1), "read.as_of"),
    ],
)
def test_malformed_options_are_refused_by_every_read(service, read, field):
    one = told(service, 1)
    calls = reads(service, one, read)
    if field == "read.as_of":
        del calls[1]  # names no as_of
    for call in calls:
        error = refused(call)
        assert (error.reason, [v.field for v in error.violations]) == (FIELD, [field])


def test_an_exact_revision_is_waited_for_only_when_that_is_asked_for(service):
    told(service, 1)
    writer = threading.Thread(target=service.put, args=("later",))
    assert refused(lambda: service.list(read=ReadAt(exact_revision=2))).reason is FUTURE
    writer.start()
    page = service.list(EVERYTHING, read=ReadAt(exact_revision=2, at_least_revision=2))
    writer.join()
    assert page.revision == 2


def test_another_tenants_revisions_do_not_show(service):
    told(service, 5)
    service.write(add("theirs"), partition=OTHER)
    for call in (
        lambda: service.list(partition=OTHER, read=ReadAt(exact_revision=3)),
        lambda: service.search(partition=OTHER, read=ReadAt(exact_revision=3)),
    ):
        error = refused(call)
        assert (error.reason, error.metadata) == (FUTURE, {"newest_revision": "1"})
        assert "5" not in error.message
    nobody = Partition("production", "nobody")
    error = refused(lambda: service.list(partition=nobody, read=ReadAt(exact_revision=1)))
    assert error.metadata == {"newest_revision": "0"}
    assert nobody not in service.store.partitions()


# --- what trims leave ------------------------------------------------------------------------


def test_below_the_oldest_kept_revision_every_read_is_refused(service):
    one = told(service)
    service.store.trim(ACME, history_before=4, feed_before=0, tokens_before_us=0)
    for read in (
        ReadAt(exact_revision=0),
        ReadAt(exact_revision=3),
        ReadAt(known_at=START),
        ReadAt(known_at=START + 3 * SECOND),
    ):
        for call in reads(service, one, read):
            error = refused(call)
            assert error.reason is GONE
            assert error.metadata == {"oldest_revision": "4", "newest_revision": "6"}
    assert service.value_at(exact_revision=4) == "3"
    assert service.value_at(known_at=START + 4 * SECOND) == "3"
    assert service.value_at() == "5"


def test_a_feed_that_ends_sooner_ends_the_past_but_no_history(service):
    """A revision is read with the instant it was recorded at: the feed, and the one before it."""
    one = told(service)
    before, _, _ = service.history(key_of())
    service.store.trim(ACME, history_before=2, feed_before=5, tokens_before_us=0)
    for read in (ReadAt(exact_revision=3), ReadAt(known_at=START + 3 * SECOND)):
        for call in reads(service, one, read):
            error = refused(call)
            assert error.reason is GONE
            assert error.metadata == {"oldest_revision": "4", "newest_revision": "6"}
    assert service.value_at(exact_revision=4) == "3"
    assert service.value_at(known_at=START + 4 * SECOND) == "3"
    assert service.value_at(exact_revision=5) == "4"
    after, _, _ = service.history(key_of())
    # The versions that ended by revision 2 went; of the others everything is told, times too.
    assert list(after) == [one for one in before if one.to_revision == 0 or one.to_revision > 2]
    entries, _, _ = service.history(memory_id=one)
    assert [entry.recorded_from for entry in entries] == [START + 2 * SECOND]


def test_a_feed_that_is_gone_altogether_leaves_the_newest_state(service):
    told(service, 3)
    service.store.trim(ACME, history_before=3, feed_before=100, tokens_before_us=0)
    assert service.value_at(exact_revision=3) == service.value_at() == "2"
    error = refused(lambda: service.value_at(exact_revision=2))
    assert (error.reason, error.metadata["oldest_revision"]) == (GONE, "3")
    assert len(service.history(key_of())[0]) == 3


def test_a_page_token_outlives_writes_and_not_its_revision(service):
    told(service)
    read = ReadAt(exact_revision=4)
    first = service.list(EVERYTHING, page_size=2, read=read)
    entries, token, _ = service.history(key_of(), page_size=2, read=read)
    service.put("more", valid_from=START)
    rest = service.list(EVERYTHING, page_size=9, page_token=first.next_token, read=read)
    assert len(first.records + rest.records) == 4
    assert rest.revision == 4
    more, last, revision = service.history(key_of(), page_size=90, page_token=token, read=read)
    assert (revision, last) == (4, "")
    assert entries + more == service.history(key_of(), page_size=90, read=read)[0]
    # A token belongs to the state that it was made for.
    for other in (ReadAt(), ReadAt(exact_revision=5), ReadAt(known_at=START + 4 * SECOND)):
        for call in (
            lambda r=other: service.list(EVERYTHING, page_token=first.next_token, read=r),
            lambda r=other: service.history(key_of(), page_token=token, read=r),
        ):
            assert refused(call).reason is Reason.PAGE_TOKEN_INVALID
    present = service.list(EVERYTHING, page_size=2)
    told_now, token_now, _ = service.history(key_of(), page_size=2)
    assert len(told_now) == 2
    service.put("again", valid_from=START + 1)
    service.store.trim(ACME, history_before=8, feed_before=0, tokens_before_us=0)
    for call in (
        lambda: service.list(EVERYTHING, page_token=first.next_token, read=read),
        lambda: service.list(EVERYTHING, page_token=present.next_token),
        lambda: service.history(key_of(), page_token=token_now),
    ):
        assert refused(call).reason is GONE


# --- searches --------------------------------------------------------------------------------


def test_a_search_of_the_past_is_the_search_that_was(service, monkeypatch):
    """Whatever the size of its tables; and by its own clock, whatever the time is now."""
    monkeypatch.setattr(past, "TABLE_ROWS", 3)
    jo = Subject("user", "jo")
    for number in range(10):
        service.clock.advance(DAY)
        vector = floats(1, number - 5) if number % 3 else floats(0, 1)
        subject = jo if number % 4 == 0 else MIRA
        service.write(
            add(f"text {number}", vector=vector, importance=number % 3 / 2, subject=subject)
        )
    service.clock.advance(DAY)
    service.write(add("no vector"))
    wanted = [Filter(), Filter(subjects=frozenset({jo, MIRA})), Filter(subjects=frozenset({jo}))]
    asked = [
        {"filter": one, "vector": vector, "top_k": top_k}
        for one in wanted
        for vector in (b"", floats(1, 0), floats(1, 1))
        for top_k in (1, 4, 100)
    ]
    then = service.clock.now
    answers = [service.search(**one, include_vectors=True) for one in asked]
    assert {one.exactness for one in answers} == {Exactness.EXACT}
    for number in range(12):
        service.clock.advance(DAY)
        service.write(add(f"later {number}", vector=floats(1, 0), importance=1.0))
    for one in service.listed(Filter(contexts=None)):
        service.write(patch(one.id, text="changed", importance=0.7, vector=floats(5, 1)))
    service.clock.advance(90 * DAY)
    for one, answer in zip(asked, answers, strict=True):
        read = ReadAt(known_at=then)
        assert service.search(**one, include_vectors=True, read=read) == answer
        assert answer.path is (SearchPath.SCAN if one["vector"] else SearchPath.NO_VECTOR)


def test_a_search_of_the_past_compares_in_the_space_of_then():
    service = ram_service(embedder=FakeEmbedder())
    try:
        service.write(add("before any vector"), mode=1)
        service.store.wait(ACME, 1, 60.0)
        for revision in range(1, service.revision + 1):
            answer = service.search("before", read=ReadAt(exact_revision=revision))
            assert [hit.memory.text for hit in answer.hits] == ["before any vector"]
            assert answer.hits[0].memory.vector_pending == bool(answer.vectors_pending)
            assert (answer.hits[0].cosine is None) == bool(answer.vectors_pending)
    finally:
        service.close()


def test_a_malformed_vector_is_refused_in_the_past_too(service):
    service.write(add("x", vector=floats(1, 0)))
    read = ReadAt(exact_revision=1)
    for vector, reason in (
        (floats(0, 0), Reason.NOT_FINITE),
        (floats(1, float("nan")), Reason.NOT_FINITE),
        (floats(1, 0, 0), Reason.DIMENSION_MISMATCH),
    ):
        nothing = Filter(subjects=frozenset({Subject("user", "nobody")}))
        for wanted in (Filter(), nothing):
            error = refused(
                lambda v=vector, w=wanted: service.search(vector=v, filter=w, read=read)
            )
            assert error.reason is reason


def test_a_search_of_the_past_ends_with_its_deadline(service):
    service.write(add("x"))
    service.patience = Patience(cancelled=True)
    error = refused(lambda: service.search(read=ReadAt(exact_revision=1)))
    assert error.reason is Reason.CANCELLED


# --- others ----------------------------------------------------------------------------------


def test_expiry_is_judged_by_the_recorded_instant(service):
    one = service.one(add("short", expires_at=START + 10 * SECOND)).id
    heard = service.one(episode("heard", indexed=False, expires_at=START + 10 * SECOND)).id
    fact = service.put("short", valid_from=START - 5, expires_at=START + 10 * SECOND).id
    service.clock.advance(9 * SECOND)
    service.forget(ids=(one, heard, fact))
    service.clock.advance(DAY)
    then = ReadAt(known_at=START + 8 * SECOND)
    assert {row.id for row in service.listed(Filter(), read=then)} == {one, fact}
    assert [row.id for row in service.listed(Filter(), episodes=True, read=then)] == [heard]
    assert {hit.memory.id for hit in service.search(read=then).hits} == {one, fact}
    assert service.value_at(known_at=START + 8 * SECOND) == "short"
    for later in (START + 9 * SECOND, START + 10 * SECOND):
        assert service.listed(Filter(), read=ReadAt(known_at=later)) == []
        assert service.search(read=ReadAt(known_at=later)).hits == ()
        assert service.value_at(known_at=later) is None


def test_without_as_of_the_past_asks_about_its_own_instant(service):
    told(service, 1)
    service.clock.advance(DAY)
    service.put("next", valid_from=START + DAY + 5 * SECOND)  # holds in four seconds' time
    assert service.store.head(ACME).recorded_at == START + DAY + SECOND
    service.clock.advance(DAY)
    assert service.value_at() == "next"
    assert service.value_at(exact_revision=2) == "0"
    assert service.value_at(known_at=START + DAY + 4 * SECOND) == "0"
    assert service.value_at(known_at=START + DAY + 5 * SECOND) == "next"
    assert service.value_at(START + DAY + 5 * SECOND, exact_revision=2) == "next"


def test_get_of_a_key_with_a_long_past_touches_few_records(service):
    """The row that holds is found from its instant backwards, in the past as in the present."""
    for number in range(300):
        service.clock.advance()
        service.put(str(number), valid_from=service.clock.now)
    scanned = []
    scan = service.store.scan

    def counting(*args, **more):
        page = scan(*args, **more)
        scanned.append(len(page.rows))
        return page

    service.store.scan = counting
    for number in (1, 150, 299):
        assert service.value_at(START + number * SECOND) == str(number - 1)
        assert service.value_at(exact_revision=number) == str(number - 1)
        assert service.value_at(START + 3 * SECOND, exact_revision=200) == "2"
    assert sum(scanned) == 9


def test_a_commit_under_way_is_waited_for(tmp_path):
    """It has its instant before it can be seen: told without it, the past would change."""
    clock = FakeClock()
    entered, go = threading.Event(), threading.Event()
    stamping = threading.Event()

    def clock_us():
        now = clock.now
        if stamping.is_set() and threading.current_thread().name == "pillion-store-writer":
            entered.set()
            assert go.wait(60)
        return now

    store = open_lmdb(StoreSettings(directory=tmp_path / "store", clock_us=clock_us))
    store.commit(ACME, Batch(puts={b"a": b"1"}))
    clock.advance()
    stamping.set()
    under_way = store.submit(ACME, Batch(puts={b"a": b"2"}))
    assert entered.wait(60)
    clock.advance()
    found = []
    asking = threading.Thread(target=lambda: found.append(store.revision_at(ACME, START + SECOND)))
    asking.start()
    assert store.head(ACME).revision == 1  # not on disk yet
    go.set()
    asking.join()
    assert under_way.result().recorded_at == START + SECOND
    assert found == [2]
    store.close()


def test_a_record_of_nobody_is_not_found(service):
    told(service, 1)
    assert refused(lambda: service.get(uuid7(7), read=ReadAt(exact_revision=1))).reason is (
        Reason.NOT_FOUND
    )
