"""From the best-scored candidates to the hits: diversity, then groups of statements.

The ranker is asked for a window that is wider than the answer, because what is to stand in the
answer may be scored below it: the latest statement of something whose older one is among the
best, or a memory that says what the others don't.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pillion.domain import limits
from pillion.domain.diversity import diversified
from pillion.domain.grouping import CosineBars, grouped, wording
from pillion.domain.queries import OlderStatements
from pillion.service.table_rows import id_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pillion_ranker as ranker
    from numpy.typing import NDArray

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.memory import Memory
    from pillion.domain.queries import SearchQuery
    from pillion.service.hits import Row

    # Unit vectors of the memories at these places, None where there is none.
    Vectors = Callable[[], Sequence[NDArray[np.float32] | None]]

# What the cosines of passages mean, by embedder: measured, see docs/adr/0021. Of an embedder that
# is not here, and of vectors that clients make, nobody knows, and words decide alone.
COSINE_BARS: Final = {
    "multilingual-e5-small-q4": CosineBars(
        alone=0.86, changed=0.83, together=0.82, worded=0.8, less_relevant=0.1
    )
}


class Pick(NamedTuple):
    """One hit, by its place in the window.

    ``older``: a later statement of the same thing stands before it. ``folded``: the places of the
    older statements that it stands for.
    """

    place: int
    older: bool = False
    folded: tuple[int, ...] = ()


class Arranged(NamedTuple):
    """The hits of a window, and how far to look for what older statements may keep out of it.

    Where they fill most of a window, that may be the latest statement. The records of a series may
    be such as well, of a thing that a query names; a vector alone names none.
    """

    picks: list[Pick]
    window_max: int


def wider(window: int, found: Arranged, ranked: int) -> int | None:
    """Return how many candidates to ask for instead; None: it is enough as it is.

    Args:
        window: How many were asked for.
        found: What was made of them.
        ranked: How many there were.
    """
    if ranked < window or window >= found.window_max:
        return None
    return min(4 * window, found.window_max)


def window_of(query: SearchQuery) -> int:
    """Return how many candidates the ranker is asked for."""
    wanted = query.top_k + max(query.top_k, limits.WINDOW_MORE_MIN)
    if query.ranking.diversity > 0.0:
        wanted = max(wanted, 4 * query.top_k, limits.DIVERSITY_WINDOW_MIN)
    return min(wanted, limits.RESULTS_MAX)


def admitted_window(
    memories: Sequence[Memory | None], query: SearchQuery, as_of: int, now: int
) -> Sequence[int] | None:
    """Return the places of a window that may be hits; None: ask the ranker again.

    A memory that was changed since it was ranked, so that it is gone or no longer admitted, may
    have been among the best or only beyond them, where it is passed over.

    Args:
        memories: The window's, None where one is gone.
        query: The search.
        as_of: Of valid time.
        now: Of recorded time.
    """
    there = [one for one in memories if one is not None]
    if len(there) == len(memories) and query.filter.admits_all(there, as_of, now):
        return range(len(memories))
    kept = [
        place
        for place, one in enumerate(memories)
        if one is not None and query.filter.admits(one, as_of, now)
    ]
    best = min(query.top_k, len(memories))
    return kept if kept[:best] == list(range(best)) else None


def table_vectors(table: ranker.Table, ids: Sequence[bytes]) -> list[NDArray[np.float32] | None]:
    """Return the vectors of memories from the ranker's table."""
    slots = table.slots(id_rows(ids))
    try:
        return list(table.vectors_of(slots))
    except ValueError:  # one of them has none, or left the table meanwhile
        return [_vector_at(table, slot) for slot in slots]


def _vector_at(table: ranker.Table, slot: np.uint32) -> NDArray[np.float32] | None:
    try:
        found: NDArray[np.float32] = table.vectors_of(np.array([slot], dtype=np.uint32))[0]
    except ValueError:
        return None
    return found


def arranged(
    query: SearchQuery,
    rows: Sequence[Row],
    memories: Sequence[Memory],
    space: EmbedderIdentity | None,
    vectors: Vectors,
    *,
    as_of: int,
    now: int,
) -> Arranged:
    """Return the hits of a window, at most ``top_k``.

    Args:
        query: The search.
        rows: What the ranker says of the window's memories, best first.
        memories: The window.
        space: What its vectors are of.
        vectors: The window's vectors, asked for only where they matter.
        as_of: Of valid time.
        now: Of recorded time.
    """
    likeness = _Likeness(memories, space, vectors)
    order = diversified(
        [row[1] for row in rows],
        likeness.to_each,
        diversity=query.ranking.diversity,
        wanted=query.top_k + limits.WINDOW_MORE_MIN,
    )
    bars = COSINE_BARS.get(space.name) if space is not None else None
    found = grouped(
        [memories[place] for place in order],
        query.text,
        functools.partial(likeness.row, order),
        bars,
        [likeness.scaled(rows[place][5]) for place in order] if bars is not None else (),
        as_of=as_of,
        now=now,
    )
    window_max = 0
    if 2 * len(found.leader) >= len(memories) > 1:
        window_max = limits.WINDOW_MAX
    elif query.text and 2 * (len(found.leader) + found.records) >= len(memories) > 1:
        window_max = limits.SERIES_WINDOW_MAX
    if query.older_statements is not OlderStatements.FOLD:
        best = found.order[: query.top_k]
        return Arranged([Pick(order[at], at in found.leader) for at in best], window_max)
    folded: dict[int, list[int]] = {}
    for at in found.order:
        if at in found.leader:
            folded.setdefault(found.leader[at], []).append(order[at])
    leading = [at for at in found.order if at not in found.leader][: query.top_k]
    picks = [Pick(order[at], folded=tuple(folded.get(at, ()))) for at in leading]
    return Arranged(picks, window_max)


class _Likeness:
    """How alike the memories of a window are. Vectors are fetched once, when first asked for."""

    def __init__(
        self, memories: Sequence[Memory], space: EmbedderIdentity | None, vectors: Vectors
    ) -> None:
        self._memories = memories
        self._floor = space.unrelated_cosine if space is not None else 0.0
        self._vectors = vectors
        self._cosines: NDArray[np.float32] | None = None
        self._has: Sequence[bool] = ()
        # A bit for each word of the window: a thousand sets are compared with each other.
        self._words: list[int] | None = None

    def cosine(self, one: int, other: int) -> float | None:
        """Return the cosine of two memories; None: one has no vector."""
        if self._cosines is None:
            found = self._vectors()
            self._has = [vector is not None for vector in found]
            dimension = next((len(vector) for vector in found if vector is not None), 1)
            absent = np.zeros(dimension, dtype=np.float32)
            rows = np.stack([absent if vector is None else vector for vector in found])
            self._cosines = rows @ rows.T
        if not (self._has[one] and self._has[other]):
            return None
        return float(self._cosines[one, other])

    def row(self, order: Sequence[int], at: int) -> Sequence[float | None]:
        """Return the cosines of one memory with all, where both places are those of an order."""
        place = order[at]
        self.cosine(place, place)
        if self._cosines is None or not self._has[place]:
            return [None] * len(order)
        row: list[float | None] = self._cosines[place, order].tolist()
        if not all(self._has):
            return [one if self._has[order[at]] else None for at, one in enumerate(row)]
        return row

    def scaled(self, cosine: float) -> float | None:
        """Return a cosine on the scale of relevance, 0..1; None where the ranker says 0: none."""
        if cosine == 0.0:
            return None
        return min(1.0, max(0.0, (cosine - self._floor) / (1.0 - self._floor)))

    def to_each(self, one: int) -> list[float]:
        """Return the likeness of one memory to each, 0..1: of vectors, or else of words."""
        self.cosine(one, one)
        if self._cosines is None or not self._has[one]:
            return self._by_words(one)
        cosines = self._cosines[one].tolist()
        meant = [self.scaled(cosine) or 0.0 for cosine in cosines]
        if all(self._has):
            return meant
        words = self._by_words(one)
        return [meant[at] if has else words[at] for at, has in enumerate(self._has)]

    def _by_words(self, one: int) -> list[float]:
        """Return which share of two texts' words is common to both, for one and each."""
        if self._words is None:
            places: dict[str, int] = {}
            self._words = [
                sum(
                    1 << places.setdefault(word, len(places)) for word in wording(memory.text).every
                )
                for memory in self._memories
            ]
        words = self._words[one]
        shared = [(words & other).bit_count() for other in self._words]
        either = [(words | other).bit_count() for other in self._words]
        return [of / all_ if all_ else 0.0 for of, all_ in zip(shared, either, strict=True)]
