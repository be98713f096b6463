"""Clusters: every memory is in one, what is alike comes together, and what is made sums it up."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.consolidation import (
    CLUSTER_MEMORIES_MAX,
    cluster,
    consolidated,
    labels_lost,
    same_thing_threshold,
)
from pillion.domain.limits import LABELS_MAX, PII_LABELS_MAX
from pillion.domain.memory import FOREVER, Memory, MemoryKind, Source, SourceKind
from pillion.domain.scope import Subject
from pillion_testing.fakes import uuid7


@st.composite
def matrices(draw):
    size = draw(st.integers(0, 8))
    made = [[1.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i):
            made[i][j] = made[j][i] = draw(st.floats(-1, 1))
    return made


@given(matrices(), st.floats(-1, 1))
def test_every_position_is_in_exactly_one_group(matrix, threshold):
    groups = cluster(matrix, threshold)
    assert sorted(one for group in groups for one in group) == list(range(len(matrix)))
    assert all(group == sorted(group) for group in groups)
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)


def test_two_themes_are_two_groups():
    theme = [0, 1, 0, 1, 0]
    matrix = [[0.9 if a == b else 0.1 for b in theme] for a in theme]
    assert cluster(matrix, same_thing_threshold(matrix)) == [[0, 2, 4], [1, 3]]


def test_a_group_has_a_largest_size():
    size = CLUSTER_MEMORIES_MAX + 1
    groups = cluster([[1.0] * size for _ in range(size)], 0.5)
    assert [len(group) for group in groups] == [CLUSTER_MEMORIES_MAX, 1]


@given(matrices(), st.floats(-1, 1), st.lists(st.sampled_from("xy"), min_size=8, max_size=8))
def test_a_group_is_of_one_class(matrix, threshold, classes):
    groups = cluster(matrix, threshold, classes)
    assert sorted(one for group in groups for one in group) == list(range(len(matrix)))
    assert all(len({classes[one] for one in group}) == 1 for group in groups)


def test_every_row_is_checked_so_that_a_deadline_is_kept():
    matrix = [[1.0] * 5 for _ in range(5)]
    rows = []
    same_thing_threshold(matrix, check=lambda: rows.append(0))
    assert len(rows) >= 5
    rows.clear()
    cluster(matrix, 0.5, check=lambda: rows.append(0))
    assert len(rows) == 5


def test_one_memory_alone_is_like_no_other():
    assert same_thing_threshold([]) == math.inf
    assert same_thing_threshold([[1.0]]) == math.inf


@given(matrices(), st.floats(0, 0.9))
def test_a_known_floor_only_ever_lowers_the_threshold(matrix, unrelated):
    lowered = same_thing_threshold(matrix, unrelated)
    assert lowered <= same_thing_threshold(matrix)
    assert len(matrix) < 2 or lowered <= unrelated + 0.6 * (1 - unrelated) + 1e-9


def test_a_set_that_is_all_alike_is_one_group_where_the_floor_is_known():
    matrix = [[1.0, 0.9, 0.8], [0.9, 1.0, 0.85], [0.8, 0.85, 1.0]]
    assert len(cluster(matrix, same_thing_threshold(matrix))) > 1
    assert cluster(matrix, same_thing_threshold(matrix, 0.1)) == [[0, 1, 2]]
    unlike = [[1.0, 0.15, 0.1], [0.15, 1.0, 0.12], [0.1, 0.12, 1.0]]
    assert len(cluster(unlike, same_thing_threshold(unlike, 0.1))) > 1


def test_what_is_made_sums_its_sources_up():
    sources = [
        Memory(
            id=uuid7(number),
            subject=Subject("user", "mira"),
            context="work",
            kind=MemoryKind.EPISODIC,
            text=str(number),
            source=Source(SourceKind.USER_STATEMENT),
            valid_from=number,
            created_at=5,
            updated_at=5,
            importance=number / 10,
            confidence=1 - number / 10,
            labels=("all", f"l{number}"),
            pinned=True,
            expires_at=FOREVER if number == 2 else 1000 + number,
            retention_class="short",
            pii_labels=(f"p{number}",),
        )
        for number in (1, 3, 2)
    ]
    made = consolidated(sources, "text", uuid7(9), 77)
    assert (made.subject, made.context, made.kind) == (
        sources[0].subject,
        "work",
        MemoryKind.SEMANTIC,
    )
    assert made.derived_from == (uuid7(1), uuid7(3), uuid7(2))
    assert (made.importance, made.confidence, made.valid_from) == (0.3, 0.7, 3)
    assert (made.created_at, made.updated_at) == (77, 77)
    assert made.pii_labels == ("p1", "p2", "p3")
    assert made.labels == ("all", "l1", "l2", "l3")
    # It outlives none of them.
    assert (made.expires_at, made.retention_class, made.pinned) == (1001, "short", False)
    assert made.source == Source(SourceKind.CONSOLIDATION)


def labelled(*labels, pii=()):
    return Memory(
        id=uuid7(1),
        subject=Subject("user", "mira"),
        kind=MemoryKind.EPISODIC,
        text="x",
        source=Source(SourceKind.USER_STATEMENT),
        valid_from=1,
        created_at=1,
        updated_at=1,
        labels=labels,
        pii_labels=pii,
    )


def test_labels_that_do_not_fit_are_counted():
    full = [str(number) for number in range(LABELS_MAX)]
    assert labels_lost([labelled(*full[:20]), labelled(*full[10:])]) == 0
    assert labels_lost([labelled(*full), labelled("one", "two")]) == 2
    personal = tuple(str(number) for number in range(PII_LABELS_MAX))
    assert labels_lost([labelled(pii=personal), labelled(pii=("one",))]) == 1
