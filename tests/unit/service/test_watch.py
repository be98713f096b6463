"""Watch: what is told of each commit, where a stream begins and how it ends."""

import itertools
import threading
from dataclasses import replace

import pytest
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryStatus, Source, SourceKind
from pillion.domain.queries import Filter
from pillion.domain.scope import Partition
from pillion.domain.watching import ChangeKind, WatchEvent
from pillion.service.watcher import Watcher
from pillion_storage.api import Batch
from pillion_storage.keys import memory_key
from pillion_testing.fakes import Patience, uuid7
from pillion_testing.service import add, confirm, episode, patch, ram_service, retract

OTHER = Partition("production", "other")
GUESS = Source(SourceKind.INFERENCE)
CREATED, UPDATED, REMOVED = ChangeKind


@pytest.fixture
def service():
    made = ram_service()
    yield made
    made.close()


def kinds(events):
    return [[change.kind for change in event.changes] for event in events]


# --- what is told ------------------------------------------------------------------------------


def test_each_commit_is_one_event_with_its_records_as_it_left_them(service):
    first = service.write(add("one"), add("two"))
    service.clock.advance()
    second = service.put("Porto", attribute="city")
    begun, put, caught_up = service.told()
    assert begun.revision == first.revision
    assert begun.recorded_at == first.recorded_at
    assert [one.found.memory.text for one in begun.changes] == ["one", "two"]
    assert put.changes[0].found.memory == service.get(second.id)
    assert caught_up == WatchEvent(put.revision)
    assert kinds([begun, put]) == [[CREATED, CREATED], [CREATED]]


def test_a_record_is_told_as_the_commit_left_it_and_not_as_it_is_now(service):
    made = service.one(add("before"))
    service.one(patch(made.id, text="after"))
    events = service.told()[:2]
    assert [event.changes[0].found.memory.text for event in events] == ["before", "after"]
    assert [event.changes[0].found.memory.version for event in events] == [1, 2]


def test_superseding_tells_both_rows(service):
    old = service.put("Berlin", attribute="city")
    service.clock.advance()
    new = service.put("Porto", attribute="city")
    event = service.told(after=1)[0]
    told = {change.id: (change.kind, change.found.memory) for change in event.changes}
    assert told[old.id][0] is UPDATED
    assert told[new.id][0] is CREATED
    assert told[old.id][1].superseded_by == new.id


def test_an_episode_is_told_with_the_memory_that_recalls_it(service):
    made = service.one(episode("words"))
    (event, _) = service.told()
    assert event.changes[0].found.episode == service.get_episode(made.id)
    assert event.changes[1].found.memory.source.episode_id == made.id


def test_commits_that_concern_nobody_advance_the_revision_silently(service):
    service.store.commit(service.partition, Batch(puts={b"aname": b"1"}))
    service.one(add("one"))
    service.store.commit(service.partition, Batch(puts={b"aname": b"2"}))
    event, caught_up = service.told()
    assert (event.revision, caught_up) == (2, WatchEvent(3))


def test_a_removal_is_told_without_the_record(service):
    made = service.one(add("one"))
    service.store.commit(service.partition, Batch(deletes=[memory_key(made.id)]))
    _, removal, _ = service.told()
    assert (removal.changes[0].kind, removal.changes[0].id) == (REMOVED, made.id)
    assert removal.changes[0].found is None


def test_the_removal_of_what_was_purged_from_the_past_is_told_to_everybody(service):
    made = service.one(add("one", labels=("a",)))
    service.store.commit(service.partition, Batch(deletes=[memory_key(made.id)]))
    service.store.purge(service.partition, [memory_key(made.id)])
    elsewhere = Filter(labels_all=frozenset({"b"}))
    removal, _ = service.told(filter_=elsewhere)
    assert (removal.revision, removal.changes[0].kind) == (2, REMOVED)


def test_only_its_own_partition_shows(service):
    service.write(add("theirs"), partition=OTHER)
    assert service.told() == [WatchEvent(0)]
    stream = service.watch()
    assert next(stream) == WatchEvent(0)
    service.write(add("theirs again"), partition=OTHER)
    service.write(add("ours"))
    assert next(stream).revision == 1


# --- the filter --------------------------------------------------------------------------------


def ids_of(events):
    return [change.id for event in events for change in event.changes]


def test_without_a_filter_every_context_is_told_and_no_guess(service):
    main = service.one(add("main"))
    work = service.one(add("work", context="work"))
    service.one(add("a guess", source=GUESS))
    assert ids_of(service.told()) == [main.id, work.id]


def test_a_guess_is_told_once_it_is_confirmed(service):
    guess = service.one(add("a guess", source=GUESS))
    service.one(confirm(guess.id))
    (event, _) = service.told()
    assert (event.revision, kinds([event])) == (2, [[UPDATED]])


def test_guesses_are_told_to_who_asks_for_them(service):
    guess = service.one(add("a guess", source=GUESS))
    asked = Filter(statuses=frozenset({MemoryStatus.CANDIDATE}))
    service.one(confirm(guess.id))
    assert ids_of(service.told(filter_=asked)) == [guess.id, guess.id]


def test_the_end_of_a_told_record_is_told(service):
    retracted, expired, fact = (
        service.one(add("one")),
        service.one(add("two")),
        service.put("Porto", attribute="city"),
    )
    before = service.revision
    service.one(retract(retracted.id))
    service.forget(ForgetMode.EXPIRE, ids=(expired.id,))
    service.one(retract(fact.id, valid_to=0))  # never so: it leaves the timeline
    events = service.told(after=before, filter_=Filter())
    assert ids_of(events) == [retracted.id, expired.id, fact.id]
    assert {kind for one in kinds(events) for kind in one} == {UPDATED}


def test_a_record_that_leaves_the_filter_is_told_once_more(service):
    made = service.one(add("one", labels=("a",)))
    service.one(patch(made.id, labels=("b",)))
    service.one(patch(made.id, labels=("c",)))
    labelled = Filter(labels_all=frozenset({"a"}))
    events = service.told(filter_=labelled)
    assert [event.revision for event in events] == [1, 2, 3]
    assert events[-1].changes == ()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Filter(), True),
        (Filter(labels_all=frozenset({"a"})), True),
        (Filter(labels_all=frozenset({"b"})), False),
        (Filter(contexts=frozenset({"work"})), False),
        (Filter(importance_min=0.1), False),
        (Filter(attributes=frozenset({"city"})), False),
    ],
)
def test_an_episode_meets_what_episodes_have_and_nothing_else(service, asked, told):
    made = service.one(episode("words", labels=("a",)))
    assert (made.id in ids_of(service.told(filter_=asked))) == told


def test_a_bad_filter_is_refused(service):
    with pytest.raises(PillionError) as caught:
        next(service.watch(filter_=Filter(labels_all=frozenset({"x" * 200}))))
    assert caught.value.reason in (Reason.INVALID_FIELD, Reason.LIMIT_EXCEEDED)


# --- where it begins ---------------------------------------------------------------------------


def test_it_goes_on_after_any_revision(service):
    for number in range(5):
        service.one(add(str(number)))
    for after in range(6):
        events = service.told(after)
        assert [event.revision for event in events] == [*range(max(after, 1) + (after > 0), 6), 5]


def test_a_partition_that_does_not_exist_is_watched_and_left_alone(service):
    assert service.told(partition=OTHER) == [WatchEvent(0)]
    assert service.store.partitions() == []


@pytest.mark.parametrize(("after", "reason"), [(-1, "INVALID_FIELD"), (6, "FUTURE_REVISION")])
def test_a_revision_that_cannot_be_is_refused(service, after, reason):
    for number in range(5):
        service.one(add(str(number)))
    with pytest.raises(PillionError) as caught:
        next(service.watch(after))
    assert caught.value.reason == reason


@pytest.mark.parametrize("heartbeat", [0.5, 0, -1, 301, float("nan")])
def test_a_heartbeat_out_of_range_is_refused(service, heartbeat):
    with pytest.raises(PillionError) as caught:
        next(service.watch(heartbeat=heartbeat))
    assert [one.field for one in caught.value.violations] == ["heartbeat"]


def test_below_what_is_kept_it_says_from_where_it_can_go_on(service):
    for number in range(5):
        service.one(add(str(number)))
    service.store.trim(service.partition, history_before=3, feed_before=4, tokens_before_us=0)
    for after in (1, 2):
        with pytest.raises(PillionError) as caught:
            next(service.watch(after))
        assert caught.value.reason is Reason.HISTORY_GONE
        assert caught.value.metadata["oldest_revision"] == "3"
    assert [event.revision for event in service.told(3)] == [4, 5, 5]
    assert [event.revision for event in service.told(0)] == [4, 5, 5]


def test_history_that_goes_while_it_is_told_ends_the_stream_with_the_same_words(service):
    for number in range(5):
        service.one(add(str(number)))
    stream = service.watch()
    assert next(stream).revision == 1
    service.store.trim(service.partition, history_before=4, feed_before=5, tokens_before_us=0)
    with pytest.raises(PillionError) as caught:
        next(stream)
    assert caught.value.reason is Reason.HISTORY_GONE
    assert caught.value.metadata["oldest_revision"] == "4"


# --- how it goes on and ends -------------------------------------------------------------------


class Steady:
    """A clock that tests move; each look at it moves it by ``step`` too."""

    def __init__(self, step=0.0):
        self.now = 1000.0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


@pytest.fixture
def timed(service):
    """Make the service's watcher follow a clock of the test."""

    def make(steady, **more):
        watcher = Watcher(store=service.store, keys=None, monotonic=steady, **more)
        watcher._keys = service.use_cases.watcher._keys
        service.use_cases = replace(service.use_cases, watcher=watcher)
        made.append(watcher)
        return watcher

    made = []
    yield make
    for watcher in made:
        watcher.close()


def test_silence_is_told_by_heartbeats(service, timed):
    timed(Steady(step=0.4), slow_seconds=1e9, stall_seconds=1e9)
    service.one(add("one"))
    stream = service.watch(heartbeat=1.0)
    events = list(itertools.islice(stream, 4))
    assert events[1:] == [WatchEvent(1)] * 3


def test_a_long_way_without_anything_to_tell_is_told_by_heartbeats(service, timed):
    timed(Steady(step=0.4), slow_seconds=1e9, stall_seconds=1e9)
    for number in range(20):
        service.store.commit(service.partition, Batch(puts={b"aname": b"%d" % number}))
    revisions = [event.revision for event in service.told(heartbeat=1.0)]
    assert 0 < revisions[0] < 20


def test_a_new_commit_is_told_while_it_waits(service):
    stream = service.watch()
    assert next(stream) == WatchEvent(0)
    writer = threading.Thread(target=service.one, args=(add("one"),))
    writer.start()
    assert next(stream).changes[0].found.memory.text == "one"
    writer.join()


def test_a_slow_consumer_is_told_to_resume(service, timed):
    steady = Steady()
    timed(steady, slow_seconds=10, stall_seconds=1e9)
    for number in range(3):
        service.one(add(str(number)))
    stream = service.watch()
    assert next(stream).revision == 1
    steady.now += 10.5
    assert list(stream) == [WatchEvent(1, resume=True)]
    assert next(service.watch(1)).revision == 2


def test_a_consumer_that_takes_nothing_is_cut_off_once(service, timed):
    timed(Steady(step=0.01), slow_seconds=1e9, stall_seconds=0.01)
    service.one(add("one"))
    cut = threading.Event()
    stream = service.watch(cut_off=cut.set)
    next(stream)  # and nobody asks for more
    assert cut.wait(20)


def test_every_stream_ends_with_resume_when_the_server_goes_down(service):
    service.one(add("one"))
    stream = service.watch()
    next(stream)
    service.use_cases.watcher.end_all()
    assert list(stream) == [WatchEvent(1, resume=True)]
    assert list(service.watch()) == [WatchEvent(0, resume=True)]


def test_a_deadline_ends_the_stream_with_resume(service):
    patience = Patience()
    service.one(add("one"))
    stream = service.watch(patience=patience)
    next(stream)
    patience.seconds = 0.1
    assert list(stream) == [WatchEvent(1, resume=True)]


def test_a_consumer_that_is_gone_ends_the_stream(service):
    patience = Patience()
    stream = service.watch(patience=patience)
    next(stream)
    patience.cancelled = True
    with pytest.raises(PillionError) as caught:
        next(stream)
    assert caught.value.reason is Reason.CANCELLED


def test_no_thread_is_left(service):
    before = set(threading.enumerate())
    next(service.watch())
    (thread,) = set(threading.enumerate()) - before
    assert thread.name == "pillion-watch-stalls"
    service.use_cases.watcher.close()
    assert not thread.is_alive()


def test_unknown_ids_are_no_trouble(service):
    service.store.commit(service.partition, Batch(deletes=[memory_key(uuid7(9))]))
    assert service.told() == [WatchEvent(1)]
