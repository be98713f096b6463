"""Consolidate: lasting facts are stated with their sources, and live writers win."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.commands import SkipReason
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import CLUSTER_SIZE_MAX, LABELS_MAX
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.mutations import EmbeddingMode
from pillion.domain.queries import Filter
from pillion.domain.scope import Subject
from pillion.domain.statements import ExtractedStatement
from pillion.service.consolidator import WORDS_AT_A_TIME, WORDS_MEMORIES_MAX, _word_overlap
from pillion_testing.fakes import DAY, START, FakeEmbedder
from pillion_testing.service import ACME, MIRA, add, episode, floats, patch, ram_service

OLD = START - 30 * DAY
TEA = [
    "Mira drinks green tea every morning.",
    "Mira drinks green tea every morning before work.",
    "Every morning Mira drinks green tea.",
]
RUN = [
    "Mira runs along the river on Sundays.",
    "On Sundays Mira runs along the river.",
    "Mira runs along the river on Sundays with Ada.",
]


def tell(service, texts, **more):
    return [
        service.one(add(text, valid_from=OLD + number, **more)).id
        for number, text in enumerate(texts)
    ]


def test_end_to_end_with_the_extractive_summarizer(service):
    tea = tell(service, TEA, labels=("drinks",), importance=0.4, pii_labels=("habit",))
    run = tell(service, RUN, importance=0.8)
    recent = service.one(add("Mira drinks green tea every morning again.")).id
    report = service.consolidate()
    assert (report.clusters, report.consolidated, report.more) == (2, 6, False)
    assert {one.derived_from for one in report.created} == {tuple(tea), tuple(run)}
    for made in report.created:
        stored = service.get(made.id)
        sources = [service.get(one) for one in made.derived_from]
        assert stored.kind is MemoryKind.SEMANTIC
        assert stored.source.kind is SourceKind.CONSOLIDATION
        assert stored.version == made.version == sources[0].version
        assert stored.importance == max(one.importance for one in sources)
        assert stored.valid_from == max(one.valid_from for one in sources)
        assert all(one.consolidated_into == made.id for one in sources)
    about_tea = next(one for one in report.created if one.derived_from == tuple(tea))
    assert (about_tea.labels, about_tea.pii_labels) == (("drinks",), ("habit",))
    assert service.get(recent).consolidated_into is None
    # Sources rank lower than they did; they are still there.
    found = service.found(top_k=20)
    assert set(tea + run) <= set(found)
    assert min(found.index(one) for one in tea + run) > found.index(about_tea.id)
    # What is done is not done again.
    again = service.consolidate()
    assert (again.clusters, again.created) == (0, ())


def test_a_dry_run_changes_nothing(service):
    tell(service, TEA)
    before = service.records(), service.revision
    report = service.consolidate(dry_run=True, request_id="r")
    assert report.dry_run
    assert len(report.created) == 1
    assert (service.records(), service.revision) == before
    assert service.consolidate(request_id="r").consolidated == 3


class Forgetful:
    """A summarizer that states something and leaves every detail out."""

    def summarize(self, texts, *, sentences_max):
        return [ExtractedStatement("Something happened.", tuple(range(len(texts))))]


def test_a_cluster_that_would_lose_details_is_left_alone():
    service = ram_service(summarizers={"forgetful": Forgetful()})
    ids = tell(service, [f"Mira paid 42.50 EUR to Ada on 2026-03-0{n}." for n in (1, 2, 3)])
    before = service.records(), service.revision
    report = service.consolidate(summarizer="forgetful")
    assert (report.clusters, report.created, report.consolidated) == (1, (), 0)
    (skipped,) = report.skipped
    assert (skipped.memory_ids, skipped.reason) == (tuple(ids), SkipReason.LOSES_DETAILS)
    assert skipped.lost_details > 0
    assert (service.records(), service.revision) == before


def test_what_is_made_expires_with_its_first_source(service):
    for text, expires_at in zip(TEA, [None, START + 20, START + 50], strict=True):
        service.write(add(text, valid_from=OLD, expires_at=expires_at))
    (made,) = service.consolidate().created
    assert service.get(made.id).expires_at == START + 20
    service.clock.advance(30)
    assert made.id not in service.found(top_k=20)


def test_sources_of_one_retention_class_are_consolidated_together(service):
    legal = tell(service, TEA, retention_class="legal")
    short = tell(service, TEA, retention_class="short")
    made = {one.derived_from: one.retention_class for one in service.consolidate().created}
    assert made == {tuple(legal): "legal", tuple(short): "short"}


def test_a_cluster_that_would_lose_labels_is_left_alone(service):
    ids = [
        service.one(
            add(text, valid_from=OLD + n, labels=[f"{n}-{one:02d}" for one in range(12)])
        ).id
        for n, text in enumerate(TEA)
    ]
    report = service.consolidate()
    (skipped,) = report.skipped
    assert (skipped.memory_ids, skipped.reason) == (tuple(ids), SkipReason.LOSES_DETAILS)
    assert skipped.lost_details == 36 - LABELS_MAX
    assert report.created == ()


def test_small_clusters_are_named(service):
    ids = tell(service, TEA[:2])
    report = service.consolidate(cluster_size_min=3)
    assert report.clusters == 0
    assert {one.reason for one in report.skipped} == {SkipReason.TOO_SMALL}
    assert {memory for one in report.skipped for memory in one.memory_ids} == set(ids)


def test_only_what_is_old_episodic_recalled_and_of_the_context_is_looked_at(service):
    tell(service, TEA, context="work")
    tell(service, TEA, subject=Subject("user", "bob"))
    tell(service, TEA, kind=MemoryKind.PROCEDURAL)
    tell(service, TEA, source=Source(SourceKind.INFERENCE))
    tell(service, TEA, expires_at=START - 1)
    service.forget(ids=tuple(tell(service, TEA)))
    assert service.consolidate().created == ()
    assert service.consolidate(before=OLD - 1, context="work").created == ()
    assert len(service.consolidate(context="work").created) == 1


class Interfering:
    """A summarizer during which a live writer changes a source."""

    def __init__(self):
        self.before = lambda: None

    def summarize(self, texts, *, sentences_max):
        self.before()
        return [ExtractedStatement(" ".join(texts), tuple(range(len(texts))))]


@pytest.mark.parametrize("how", ["patched", "forgotten"])
def test_a_source_that_changed_meanwhile_makes_its_cluster_wait(how):
    summarizer = Interfering()
    service = ram_service(summarizers={"x": summarizer})
    ids = tell(service, TEA)

    def interfere():
        if how == "patched":
            service.write(patch(ids[1], text="Mira drinks coffee."))
        else:
            service.forget(ids=(ids[1],))

    summarizer.before = interfere
    report = service.consolidate(summarizer="x")
    assert [(one.memory_ids, one.reason) for one in report.skipped] == [
        (tuple(ids), SkipReason.CHANGED)
    ]
    assert report.created == ()
    assert all(service.get(one).consolidated_into is None for one in ids)


def test_one_at_a_time_in_a_partition_and_several_in_several():
    summarizer = Interfering()
    service = ram_service(summarizers={"x": summarizer})
    tell(service, TEA)
    other = type(ACME)("production", "other")
    refused = []

    def again():
        with pytest.raises(PillionError) as caught:
            service.consolidate(summarizer="x")
        refused.append(caught.value.reason)
        service.consolidate(summarizer="x", partition=other)

    summarizer.before = again
    service.consolidate(summarizer="x")
    assert refused == [Reason.ALREADY_RUNNING]
    summarizer.before = lambda: None
    service.consolidate(summarizer="x")  # the way is free again


def test_a_failing_summarizer_frees_the_way():
    summarizer = Interfering()
    service = ram_service(summarizers={"x": summarizer})
    tell(service, TEA)
    summarizer.before = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        service.consolidate(summarizer="x")
    summarizer.before = lambda: None
    assert service.consolidate(summarizer="x").consolidated == 3


def test_a_request_id_gets_the_first_answer(service):
    tell(service, TEA)
    first = service.consolidate(request_id="r", body_digest=b"1")
    tell(service, RUN)
    again = service.consolidate(request_id="r", body_digest=b"1")
    assert (again.clusters, again.consolidated, again.revision) == (
        first.clusters,
        first.consolidated,
        first.revision,
    )
    assert [one.id for one in again.created] == [one.id for one in first.created]
    with service.refuses(Reason.REQUEST_ID_REUSED):
        service.consolidate(request_id="r", body_digest=b"2")


def test_one_request_at_work_in_two_threads_is_answered_once(service):
    """The second looked for the first's answer before there was one."""
    tell(service, TEA)
    consolidator = service.use_cases.consolidator
    alone, waiting, go = consolidator._alone, threading.Event(), threading.Event()
    reports = []

    def held(partition):
        waiting.set()
        assert go.wait(60)
        return alone(partition)

    consolidator._alone = held
    late = threading.Thread(target=lambda: reports.append(service.consolidate(request_id="r")))
    late.start()
    assert waiting.wait(60)
    consolidator._alone = alone
    first = service.consolidate(request_id="r")
    go.set()
    late.join(60)
    (second,) = reports
    assert (second.consolidated, second.revision) == (first.consolidated, first.revision) != (0, 0)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"summarizer": "gpt"}, "summarizer"),
        ({"cluster_size_min": 1}, "cluster_size_min"),
        ({"cluster_size_min": CLUSTER_SIZE_MAX + 1}, "cluster_size_min"),
        ({"subject": Subject("user", "")}, "subject.id"),
        ({"before": 2**62}, "before"),
    ],
)
def test_malformed_requests_are_refused(service, more, field):
    tell(service, TEA)
    with service.refuses(Reason.INVALID_FIELD, field):
        service.consolidate(**{"subject": MIRA, **more})


def test_vectors_decide_what_speaks_of_the_same_thing(service):
    texts = ["alpha one", "beta two", "gamma three", "delta four", "epsilon five", "zeta six"]
    ids = []
    for number, text in enumerate(texts):
        vector = floats(1, 0.01 * number) if number % 2 else floats(0.01 * number, 1)
        made = service.one(add(text, valid_from=OLD + number, vector=vector))
        ids.append(made.id)
    report = service.consolidate(dry_run=True)
    assert {one.derived_from for one in report.created} | {
        one.memory_ids for one in report.skipped
    } == {tuple(ids[0::2]), tuple(ids[1::2])}


def test_memories_without_vectors_wait_while_those_with_vectors_make_clusters(service):
    with_vectors = [
        service.one(add(text, valid_from=OLD + n, vector=floats(1, 0.01 * n))).id
        for n, text in enumerate(["alpha one", "beta two", "gamma three"])
    ]
    without = tell(service, TEA)
    for text in ("delta four", "epsilon five"):
        service.write(add(text, valid_from=OLD, vector=floats(0, 1)))
    first = service.consolidate()
    assert [one.derived_from for one in first.created] == [tuple(with_vectors)]
    assert first.more
    assert not {one for skip in first.skipped for one in skip.memory_ids} & set(without)
    # What has a vector has too little company left, so the others are compared by their words.
    second = service.consolidate()
    assert [one.derived_from for one in second.created] == [tuple(without)]
    assert not second.more


def test_words_of_a_limited_number_of_memories_are_compared(service):
    count = WORDS_MEMORIES_MAX + 3
    ids = tell(service, [f"Mira saw bird number {n}." for n in range(count)])
    report = service.consolidate(dry_run=True)
    assert report.more
    looked_at = {one for made in report.created for one in made.derived_from}
    assert looked_at <= set(ids[:WORDS_MEMORIES_MAX])
    assert len(looked_at) > 0


class Counted:
    """A deadline that passes at the n-th look at it."""

    def __init__(self, looks):
        self.looks = looks

    def remaining_seconds(self):
        return 1.0

    def check(self):
        self.looks -= 1
        if self.looks < 0:
            raise PillionError(Reason.DEADLINE_EXCEEDED, "the deadline has passed")


@pytest.mark.parametrize("vectors", [False, True])
def test_the_deadline_is_looked_at_while_memories_are_compared(service, vectors):
    count = 40
    for n in range(count):
        vector = floats(1, n) if vectors else b""
        service.write(add(f"Mira saw bird number {n}.", valid_from=OLD + n, vector=vector))

    def forbidden(*_):
        raise AssertionError("it went on to the clusters")

    service.use_cases.consolidator._consolidate_one = forbidden
    for looks in (count // 2, count, 2 * count, 3 * count):
        service.patience = Counted(looks)
        with service.refuses(Reason.DEADLINE_EXCEEDED):
            service.consolidate()


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8), max_size=8))
def test_word_overlap_is_that_of_the_word_sets(texts):
    overlap = _word_overlap([" ".join(words) for words in texts], lambda: None)
    for i, mine in enumerate(map(set, texts)):
        for j, yours in enumerate(map(set, texts)):
            either = mine | yours
            assert overlap[i, j] == (len(mine & yours) / len(either) if either else 1.0)


def test_word_overlap_goes_on_over_blocks_of_words():
    words = [f"w{n}" for n in range(WORDS_AT_A_TIME * 2)]
    overlap = _word_overlap([" ".join(words), " ".join(words[::2])], lambda: None)
    assert overlap.tolist() == [[1.0, 0.5], [0.5, 1.0]]


def test_what_is_made_waits_for_its_vector_where_the_server_makes_them():
    embedder = FakeEmbedder()
    same = embedder.vector("tea")
    embedder.vector = lambda _: same
    service = ram_service(embedder=embedder)
    for number, text in enumerate(TEA):
        service.write(add(text, valid_from=OLD + number), mode=EmbeddingMode.INLINE)
    embedder.gate.clear()
    (made,) = service.consolidate().created
    assert service.get(made.id).vector_pending
    embedder.gate.set()
    service.close()


def test_recalling_memories_of_episodes_are_consolidated(service):
    for number, text in enumerate(TEA):
        service.write(episode(text, occurred_at=OLD + number))
    (made,) = service.consolidate().created
    assert len(made.derived_from) == 3
    assert len(service.listed(Filter(), episodes=True)) == 3
