"""When a candidate has been repeated often enough, and what a repeat adds to it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pillion.domain.limits import RECURRENCE_EPISODES_MAX
from pillion.domain.memory import FOREVER, Memory, MemoryStatus, Recurrence

if TYPE_CHECKING:
    from uuid import UUID


def distinct_episodes(memory: Memory) -> int:
    """Return how many different episodes state a memory."""
    first = memory.source.episode_id
    return len({*memory.recurrence.episode_ids, *([first] if first is not None else [])})


def is_open(memory: Memory) -> bool:
    """Return whether a memory is a candidate that could still be promoted."""
    return (
        memory.status is MemoryStatus.CANDIDATE
        and memory.on_timeline
        and memory.retracted_at == FOREVER
        and memory.expired_at == FOREVER
        and memory.closed_at == FOREVER
    )


def is_due(memory: Memory, after_episodes: int) -> bool:
    """Return whether a candidate is to be promoted: enough distinct episodes state it.

    Args:
        memory: The candidate.
        after_episodes: How many are enough; 0: never by itself.
    """
    return is_open(memory) and 0 < after_episodes <= distinct_episodes(memory)


def is_repeat(memory: Memory, episode_id: UUID | None) -> bool:
    """Return whether an episode is already among those that state a memory."""
    return episode_id is not None and (
        episode_id == memory.source.episode_id or episode_id in memory.recurrence.episode_ids
    )


def repeated(candidate: Memory, statement: Memory, now: int) -> Memory:
    """Return an open candidate with one more statement of the same claim behind it.

    It holds since the earliest instant that any statement names, so that the order in which they
    arrive does not matter; it keeps the words, the source and the labels of the first. An episode
    counts once, so a statement of one that is there already changes nothing.
    """
    episode_id = statement.source.episode_id
    if is_repeat(candidate, episode_id):
        return candidate
    episodes = candidate.recurrence.episode_ids
    if episode_id is not None and len(episodes) < RECURRENCE_EPISODES_MAX:
        episodes = (*episodes, episode_id)
    return replace(
        candidate,
        recurrence=Recurrence(candidate.recurrence.count + 1, episodes),
        valid_from=min(candidate.valid_from, statement.valid_from),
        confidence=max(candidate.confidence, statement.confidence),
        expires_at=candidate.expires_at
        if statement.expires_at == FOREVER
        else max(candidate.expires_at, statement.expires_at),
        updated_at=now,
    )
