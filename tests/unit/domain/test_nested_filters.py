"""A filter within a filter, of memories and of episodes: by the meaning of its words."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.memory import Episode, Memory, MemoryKind, Source, SourceKind
from pillion.domain.queries import NESTED, Filter
from pillion.domain.scope import Subject

LABELS = "abc"
MIRA = Subject("user", "mira")


def memory(labels: frozenset[str]) -> Memory:
    return Memory(
        id=UUID(int=1),
        subject=MIRA,
        kind=MemoryKind.EPISODIC,
        text="",
        source=Source(SourceKind.USER_STATEMENT, None),
        valid_from=0,
        created_at=0,
        updated_at=0,
        labels=tuple(sorted(labels)),
    )


def episode(labels: frozenset[str]) -> Episode:
    return Episode(
        id=UUID(int=2),
        subject=MIRA,
        content="",
        source_kind=SourceKind.USER_STATEMENT,
        occurred_at=0,
        recorded_at=0,
        labels=tuple(sorted(labels)),
    )


def flat() -> st.SearchStrategy[Filter]:
    some = st.frozensets(st.sampled_from(LABELS), max_size=2)
    return st.builds(
        lambda every, either, none: replace(
            NESTED, labels_all=every, labels_any=either, labels_none=none
        ),
        some,
        some,
        some,
    )


def trees() -> st.SearchStrategy[Filter]:
    return st.recursive(
        flat(),
        lambda inner: st.builds(
            lambda base, some, none: replace(base, any_of=tuple(some), none_of=tuple(none)),
            flat(),
            st.lists(inner, max_size=2),
            st.lists(inner, max_size=2),
        ),
        max_leaves=6,
    )


def meaning(asked: Filter, labels: frozenset[str]) -> bool:
    own = asked.labels_all <= labels and not asked.labels_none & labels
    either = not asked.labels_any or bool(asked.labels_any & labels)
    inner = [meaning(one, labels) for one in asked.any_of]
    return (
        own
        and either
        and (not inner or any(inner))
        and not any(meaning(one, labels) for one in asked.none_of)
    )


@given(trees(), st.frozensets(st.sampled_from(LABELS)))
def test_a_tree_of_filters_means_what_it_says(asked: Filter, labels: frozenset[str]) -> None:
    assert asked.admits(memory(labels), 0, 0) == meaning(asked, labels)
    assert asked.admits_episode(episode(labels)) == meaning(asked, labels)


def test_an_episode_does_not_meet_what_only_memories_can() -> None:
    of_kind = replace(NESTED, kinds=frozenset({MemoryKind.EPISODIC}))
    labelled = replace(NESTED, labels_any=frozenset({"a"}))
    one = episode(frozenset({"a"}))
    assert not Filter(any_of=(of_kind,)).admits_episode(one)
    assert Filter(any_of=(of_kind, labelled)).admits_episode(one)
    assert Filter(none_of=(of_kind,)).admits_episode(one)
    assert not Filter(none_of=(of_kind, labelled)).admits_episode(one)
    for only in ({"valid_only": True}, {"importance_min": 0.1}, {"attributes": frozenset({"a"})}):
        assert not Filter(any_of=(replace(NESTED, **only),)).admits_episode(one)
