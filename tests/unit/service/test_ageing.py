"""What is forgotten by age over simulated half-years, and what outlives it."""

from __future__ import annotations

import threading

import pytest
from pillion.domain.forgetting import out_of_recall
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.queries import Filter
from pillion.domain.retention import RetentionClass, RetentionClasses
from pillion.jobs.ageing import AgeingJob, AgeingSettings
from pillion.service import ServiceSettings
from pillion.service.holds import HoldCommand
from pillion_storage.api import StoreClosed
from pillion_testing.fakes import DAY, SECOND, START, FakeClock
from pillion_testing.service import EVERYTHING, MIRA, Partition, add, episode, ram_service

DECAY = AgeingSettings(decay_below={MemoryKind.EPISODIC: 0.05, MemoryKind.SEMANTIC: 0.05})
KEPT = AgeingSettings(
    classes=RetentionClasses(
        {
            "chat": RetentionClass(owner="privacy", keep_for=30 * DAY),
            "ledger": RetentionClass(owner="finance"),
        }
    )
)


@pytest.fixture
def service():
    made = ram_service(settings=ServiceSettings(ageing=KEPT))
    yield made
    made.close()


def job_of(service, settings, *, monotonic=None):
    """A job whose steady clock goes as the test's clock does."""
    return AgeingJob(
        service.store,
        service.clock,
        service.use_cases.forgetter,
        settings,
        monotonic=monotonic or (lambda: (service.clock.now - START) / SECOND),
        pause_seconds=0,
    )


def live(service, days, job, *, each_week=lambda: None):
    """Let time pass, sweeping every week."""
    for _ in range(days // 7):
        service.clock.advance(7 * DAY)
        each_week()
        job.sweep()


def kept(service):
    return {one.text for one in service.listed(EVERYTHING) if not out_of_recall(one)}


def test_important_facts_outlive_half_a_year_and_trivial_episodes_do_not(service):
    service.write(
        add("said hello", importance=0.1),
        add("talked about rain", importance=0.3),
        add("married in Bern", importance=1.0, kind=MemoryKind.SEMANTIC),
        add("how to deploy", importance=0.2, kind=MemoryKind.PROCEDURAL),
        add("call the bank", importance=0.2, kind=MemoryKind.OPEN_ITEM),
        add("a keepsake", importance=0.1, pinned=True),
    )
    service.put("Bern", importance=0.9)
    live(service, 182, job_of(service, DECAY))
    left = kept(service)
    assert {"married in Bern", "how to deploy", "call the bank", "a keepsake"} <= left
    assert not {"said hello", "talked about rain"} & left
    assert service.current() is not None
    # What decayed is out of recall and in history, not gone.
    hits = service.search("rain", counts_as_use=False).hits
    assert "talked about rain" not in {hit.memory.text for hit in hits}
    assert len(service.listed(EVERYTHING)) == 7
    live(service, 5 * 364, job_of(service, DECAY))
    assert service.current() is None, "after five years even an important fact has faded"
    assert "a keepsake" in kept(service)


@pytest.mark.parametrize("flushed", [True, False])
def test_access_keeps_alive_what_is_used(service, flushed):
    service.write(
        add("the alarm code is in the drawer", importance=0.3),
        add("the weather was mild", importance=0.3),
    )

    def use():
        assert service.search("alarm code drawer", top_k=1).hits[0].memory.text.startswith("the al")
        if flushed:
            service.use_cases.access_flusher.flush_all()

    live(service, 364, job_of(service, DECAY), each_week=use)
    assert kept(service) == {"the alarm code is in the drawer"}
    live(service, 182, job_of(service, DECAY))
    assert kept(service) == set()


def test_a_half_life_of_an_attribute_decides_for_its_facts(service):
    service.register(half_life=2 * DAY)
    service.put("short-lived", importance=0.5)
    service.put("long-lived", attribute="other", importance=0.5)
    live(service, 28, job_of(service, DECAY))
    assert service.current() is None
    assert len(service.listed(Filter())) == 1


def test_retention_classes_end_memories_and_episodes_and_nothing_else(service):
    for name in ("chat", "ledger", "nobody decided", ""):
        service.write(
            add(f"memory {name}", retention_class=name, pinned=True, importance=1.0),
            episode(f"episode {name}", retention_class=name, indexed=False),
        )
    job = job_of(service, KEPT)
    live(service, 28, job)
    assert len(kept(service)) == 4
    live(service, 7, job)
    assert "memory chat" not in kept(service)  # pinned or not: the class says how long
    assert len(kept(service)) == 3
    said = {one.content for one in service.listed(Filter(), episodes=True)}
    assert said == {"episode ledger", "episode nobody decided", "episode "}


def test_a_hold_outlives_every_sweep_and_lifting_it_resumes(service):
    service.write(add("x", importance=0.1, retention_class="chat"))
    holds = service.use_cases.holds

    def hold(*, held):
        command = HoldCommand(subject=MIRA, held=held, reason_code="case")
        holds.set(service.partition, command, service.patience)

    hold(held=True)
    for settings in (DECAY, KEPT):
        live(service, 364, job_of(service, settings))
    assert kept(service) == {"x"}
    hold(held=False)
    live(service, 7, job_of(service, KEPT))
    assert kept(service) == set()


def test_a_clock_that_jumps_ahead_forgets_nothing(service):
    service.write(add("x", importance=0.1, retention_class="chat"))
    steady = 0.0
    jobs = [job_of(service, one, monotonic=lambda: steady) for one in (DECAY, KEPT)]
    service.clock.advance(1000 * DAY)
    assert [job.sweep() for job in jobs] == [0, 0]
    assert kept(service) == {"x"}
    steady = 1000 * 86_400.0
    assert jobs[0].sweep() == 1


def test_nothing_is_swept_unless_somebody_said_so():
    service = ram_service()
    names = {thread.name for thread in threading.enumerate()}
    service.close()
    assert "pillion-ageing" not in names
    assert not any(AgeingSettings().selectors())


def test_a_sweep_covers_every_partition_and_survives_a_failing_one(service, monkeypatch):
    other = Partition("production", "other")
    for partition in (service.partition, other):
        service.write(add("x", importance=0.1), partition=partition)
    service.clock.advance(200 * DAY)
    forget = service.use_cases.forgetter.forget

    def failing(partition, *rest):
        if partition == service.partition:
            raise OSError
        return forget(partition, *rest)

    job = job_of(service, DECAY)
    with monkeypatch.context() as patched:
        patched.setattr(service.use_cases.forgetter, "forget", failing)
        assert job.sweep() == 1
    assert job.sweep() == 1


def test_a_stop_ends_a_sweep_between_two_steps():
    service = ram_service()
    for _ in range(3):
        service.write(*[add(str(n), importance=0.1) for n in range(90)])
    service.clock.advance(200 * DAY)
    job = job_of(service, DECAY)
    commit = service.store.commit

    def then_stop(*given):
        job.stop()
        return commit(*given)

    service.store.commit = then_stop
    job.sweep()
    service.store.commit = commit
    left = sum(not out_of_recall(one) for one in service.listed(EVERYTHING))
    assert 0 < left < 270
    assert job_of(service, DECAY).sweep() == left
    service.close()
    with pytest.raises(StoreClosed):
        job_of(service, DECAY).sweep()


def test_the_source_of_a_summary_may_fade_and_the_summary_stays(service):
    old = service.one(add("day one", importance=0.2)).id
    service.one(
        add(
            "days",
            kind=MemoryKind.SEMANTIC,
            derived_from=(old,),
            importance=0.9,
            source=Source(SourceKind.CONSOLIDATION),
        )
    )
    live(service, 182, job_of(service, DECAY))
    assert kept(service) == {"days"}


def test_the_first_sweep_of_a_started_job(monkeypatch):
    swept = threading.Event()
    service = ram_service(clock=FakeClock())
    job = job_of(service, AgeingSettings(interval_seconds=0.0))
    monkeypatch.setattr(job, "sweep", lambda: swept.set() or 0)
    job.start()
    assert swept.wait(30)
    job.stop()
    service.close()
