"""Retention: what goes when its window is over, what stays, and that nothing breaks meanwhile."""

import contextlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.jobs import retention
from pillion.jobs.retention import RetentionJob, RetentionSettings
from pillion_storage.api import Batch, Corrupt, HistoryGone, StoreSettings, Token
from pillion_storage.lmdb import open_store as open_lmdb
from pillion_storage.lmdb import store as lmdb_store
from pillion_storage.verify import verify
from pillion_testing.fakes import DAY, SECOND, START, FakeClock
from pillion_testing.service import (
    ACME,
    Partition,
    add,
    key_of,
    lmdb_service,
    patch,
    ram_service,
)

HOUR = 3600 * SECOND
OTHER = Partition("production", "other")
IDS_ONLY = RetentionSettings(request_id_window_us=DAY)
BOTH = RetentionSettings(request_id_window_us=DAY, history_window_us=2 * DAY)


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "d")
    yield made
    made.close()


def job_of(service, settings, *, monotonic=None):
    """A job whose steady clock goes as the test's clock does."""
    return RetentionJob(
        service.store,
        service.clock,
        settings,
        monotonic=monotonic or (lambda: (service.clock.now - START) / SECOND),
        pause_seconds=0,
    )


def test_history_must_outlast_request_ids():
    for ids in (None, 3 * DAY):
        with pytest.raises(ValueError, match="at least as long"):
            RetentionSettings(request_id_window_us=ids, history_window_us=2 * DAY)
    RetentionSettings(request_id_window_us=DAY, history_window_us=DAY)
    RetentionSettings()


# --- request ids -------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [IDS_ONLY, BOTH])
def test_a_request_id_is_remembered_for_exactly_its_window(service, settings):
    job = job_of(service, settings)
    first = service.write(add("once"), request_id="r")
    service.clock.advance(DAY)
    assert job.sweep().request_ids == 0
    assert service.write(add("once"), request_id="r").replayed
    service.clock.advance(1)
    assert job.sweep().request_ids == 1
    anew = service.write(add("once"), request_id="r")
    assert not anew.replayed
    assert anew.revision == first.revision + 1


def test_windows_of_the_same_length_never_tell_a_retry_that_its_answer_is_gone(service):
    job = job_of(service, RetentionSettings(request_id_window_us=DAY, history_window_us=DAY))
    made = service.one(add("one"))
    asked = {"request_id": "r", "digest": b"d"}
    recorded_at = service.write(patch(made.id, text="two"), **asked).recorded_at
    service.write(patch(made.id, text="three"))  # ends the version that the request wrote
    service.clock.now = recorded_at + DAY
    service.write(add("later"))
    job.sweep()
    assert service.write(patch(made.id, text="two"), **asked).replayed
    service.clock.advance(1)
    job.sweep()
    assert not service.write(patch(made.id, text="two"), **asked).replayed


def test_a_clock_that_goes_back_forgets_nothing_early(service):
    service.write(add("once"), request_id="r")
    made = service.one(add("two"))
    service.one(patch(made.id, text="three"))
    job = job_of(service, BOTH)
    service.clock.now = START - 10 * DAY
    assert job.sweep().is_empty
    assert service.write(add("once"), request_id="r").replayed
    service.clock.now = START + HOUR
    assert job.sweep().is_empty


def test_a_clock_that_jumps_ahead_forgets_nothing_early(service):
    service.write(add("once"), request_id="r")
    steady = [0.0]
    job = job_of(service, BOTH, monotonic=lambda: steady[0])
    service.clock.advance(365 * DAY)
    assert job.sweep().is_empty
    steady[0] += 2 * 86_400
    assert job.sweep().request_ids == 1


# --- history and the feed ----------------------------------------------------------------------


def test_for_ever_keeps_everything(service):
    made = service.one(add("one"))
    for number in range(5):
        service.clock.advance(100 * DAY)
        service.one(patch(made.id, text=str(number)))
    assert job_of(service, IDS_ONLY).sweep().is_empty
    assert [event.revision for event in service.told()] == [1, 2, 3, 4, 5, 6, 6]


@given(
    st.lists(st.integers(0, 2 * DAY), min_size=1, max_size=12),
    st.lists(st.integers(0, 20), max_size=3),
    st.integers(0, 6 * DAY),
)
def test_every_instant_within_the_window_is_as_it_was(gaps, sweeps, rest):
    service = ram_service()
    job = job_of(service, BOTH)
    store = service.store
    made = service.one(add("text"))
    for number, gap in enumerate(gaps):
        service.clock.advance(gap)
        service.one(patch(made.id, text=str(number)))
        if number in sweeps:
            job.sweep()
    service.clock.advance(rest)
    ends = service.clock.now - 2 * DAY
    instants = {START, ends - 1, ends, ends + 1, service.clock.now}
    instants |= {service.clock.now - rest - sum(gaps[at:]) for at in range(len(gaps))}

    def known_at(instant):
        revision = store.revision_at(ACME, instant)
        return revision, store.read(ACME, [b"m" + made.id.bytes], at=revision).entries

    before = {instant: known_at(instant) for instant in instants if instant >= ends}
    job.sweep()
    assert {instant: known_at(instant) for instant in before} == before
    stats = store.partition_stats(ACME)
    assert stats.oldest_change == stats.oldest_history + 1
    # Nothing is kept that no instant within the window needs, but for what is as old as it is.
    oldest = before[ends][0]
    recorded = {
        change.recorded_at for change in store.changes(ACME, stats.oldest_history, limit=99).changes
    }
    assert stats.oldest_history == oldest - (ends in recorded)
    told = service.told(after=stats.oldest_history)
    assert [event.revision for event in told[:-1]] == [
        *range(stats.oldest_history + 1, service.revision + 1)
    ]
    assert job.sweep().is_empty
    service.close()


def test_what_is_past_the_window_is_gone_and_says_so(service):
    made = service.one(add("one"))
    for number in range(3):
        service.clock.advance(DAY)
        service.one(patch(made.id, text=str(number)))
    service.clock.advance(DAY + HOUR)
    report = job_of(service, BOTH).sweep()
    assert (report.versions, report.changes) == (2, 3)
    with pytest.raises(HistoryGone):
        service.store.read(ACME, [b"m"], at=2)
    with pytest.raises(PillionError) as caught:
        next(service.watch(1))
    assert caught.value.reason is Reason.HISTORY_GONE
    assert service.get(made.id).text == "2"


def test_the_history_of_what_still_holds_is_told_though_its_beginning_is_gone(service):
    service.put("Porto", attribute="city")
    since = service.clock.now
    service.clock.advance(5 * DAY)
    service.one(add("other"))
    job_of(service, BOTH).sweep()
    ((entry,), _, _) = service.history(key_of("city"))
    assert (entry.memory.value.data, entry.to_revision) == ("Porto", 0)
    assert entry.recorded_from == since


def test_a_page_token_of_a_revision_that_went_is_refused(service):
    made = [service.one(add(str(number))) for number in range(3)]
    page = service.list(page_size=1)
    service.clock.advance(DAY)
    service.one(patch(made[0].id, text="changed"))
    service.clock.advance(3 * DAY)
    service.one(patch(made[0].id, text="changed again"))
    job_of(service, BOTH).sweep()
    with pytest.raises((PillionError, HistoryGone)) as caught:
        service.list(page_size=1, page_token=page.next_token)
    assert isinstance(caught.value, HistoryGone) or caught.value.reason is Reason.HISTORY_GONE


# --- the job -----------------------------------------------------------------------------------


def test_a_partition_that_fails_leaves_the_others_swept(service, monkeypatch):
    for partition in (ACME, OTHER):
        service.write(add("one"), request_id="r", partition=partition)
    service.clock.advance(2 * DAY)
    trim = service.store.trim

    def failing(partition, **bounds):
        if partition == ACME:
            raise Corrupt("tokens 1", "checksum")
        return trim(partition, **bounds)

    monkeypatch.setattr(service.store, "trim", failing)
    assert job_of(service, IDS_ONLY).sweep().request_ids == 1
    assert service.write(add("one"), request_id="r").replayed
    assert not service.write(add("one"), request_id="r", partition=OTHER).replayed


def test_a_sweep_that_is_stopped_goes_on_with_the_next(service, monkeypatch):
    monkeypatch.setattr(retention, "REVISIONS_STEP", 2)
    made = service.one(add("one"))
    for number in range(9):
        service.one(patch(made.id, text=str(number)))
    service.clock.advance(5 * DAY)
    job = job_of(service, BOTH)
    trim = service.store.trim

    def stopping(partition, **bounds):
        job.stop()
        return trim(partition, **bounds)

    monkeypatch.setattr(service.store, "trim", stopping)
    assert job.sweep().changes == 2
    assert service.store.partition_stats(ACME).oldest_history == 2
    monkeypatch.setattr(service.store, "trim", trim)
    assert job_of(service, BOTH).sweep().changes == 8


def test_it_runs_in_a_thread_and_stops(service):
    service.write(add("once"), request_id="r")
    settings = RetentionSettings(request_id_window_us=DAY, sweep_interval_seconds=0.01)
    job = job_of(service, settings)
    service.clock.advance(2 * DAY)
    job.start()
    for _ in range(2000):
        if service.store.partition_stats(ACME).tokens == 0:
            break
        threading.Event().wait(0.01)
    job.stop()
    assert service.store.partition_stats(ACME).tokens == 0
    assert not job._thread.is_alive()


def test_a_closed_store_ends_it(service):
    job = job_of(service, RetentionSettings(sweep_interval_seconds=0.01))
    service.store.close()
    job.start()
    job._thread.join(20)
    assert not job._thread.is_alive()
    job.stop()


def test_a_sweep_that_broke_off_leaves_a_sound_file_and_the_next_finishes(tmp_path, monkeypatch):
    clock = FakeClock()
    service = lmdb_service(tmp_path / "d", clock=clock)
    made = service.one(add("one"))
    for number in range(1500):
        service.store.commit(ACME, service_batch(made, number))
    clock.advance(5 * DAY)
    steps = []
    step = lmdb_store.trim_step

    def breaking(unit, **arguments):
        steps.append(arguments)
        if len(steps) == 2:
            raise RuntimeError("the process is gone")
        return step(unit, **arguments)

    monkeypatch.setattr(lmdb_store, "trim_step", breaking)
    job_of(service, BOTH).sweep()  # logs the failure
    monkeypatch.setattr(lmdb_store, "trim_step", step)
    service.close()
    assert verify(tmp_path / "d").clean
    service = lmdb_service(tmp_path / "d", clock=clock)
    with contextlib.closing(service):
        job_of(service, BOTH).sweep()
        stats = service.store.partition_stats(ACME)
        assert (stats.kept_versions, stats.oldest_history) == (0, service.revision)
    assert verify(tmp_path / "d").clean


def service_batch(made, number):
    return Batch(puts={b"aname": b"%d" % number})


def test_the_file_stops_growing_with_a_constant_working_set_and_writers_at_work(tmp_path):
    """Four writers update the same records while sweeps go on; sizes in bytes, not time."""
    clock = FakeClock()
    store = open_lmdb(
        StoreSettings(
            directory=tmp_path, size_bytes_initial=1 << 20, size_bytes_max=64 << 20,
            clock_us=clock.now_us,
        )
    )  # fmt: skip
    settings = RetentionSettings(request_id_window_us=HOUR, history_window_us=HOUR)
    job = RetentionJob(
        store, clock, settings, monotonic=lambda: clock.now / SECOND, pause_seconds=0
    )

    def work(writer, round_):
        for number in range(50):
            key = b"m%d-%d" % (writer, number % 10)
            token = Token(b"%d-%d-%d" % (writer, round_, number), b"memo" * 20)
            store.commit(ACME, Batch(puts={key: b"x" * 500}, token=token))

    def play(round_, *, sweep):
        writers = [threading.Thread(target=work, args=(one, round_)) for one in range(4)]
        for one in writers:
            one.start()
        if sweep:
            job.sweep()
        for one in writers:
            one.join()
        clock.advance(HOUR // 2)

    with contextlib.closing(store):
        for round_ in range(8):
            play(round_, sweep=True)
        settled = store.stats()
        for round_ in range(8, 24):
            play(round_, sweep=True)
        after = store.stats()
        assert after.size_bytes <= settled.size_bytes * 1.1
        assert after.kept_versions <= settled.kept_versions * 1.1
        assert after.tokens <= settled.tokens * 1.1
        for round_ in range(24, 40):
            play(round_, sweep=False)
        assert store.stats().size_bytes > after.size_bytes * 1.5  # the test can tell
    assert verify(tmp_path).clean
