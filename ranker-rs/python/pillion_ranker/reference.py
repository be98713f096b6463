"""The ranker in plain numpy: the meaning of `pillion_ranker.Table`, and its oracle in tests.

`ReferenceTable` has the methods of `Table` with the same semantics, one row at a time and without
regard for speed. Only kernels' benchmarks are left out.

Formulas (source: retrieval in "Generative Agents", Park et al., 2023, which adds recency,
importance and relevance each scaled to 0..1; here recency is a half-life decay per kind and the
sum is weighted), in this evaluation order:

    cosine    = query . vector                        unit vectors, float32
    semantic  = clamp((cosine - floor) / (1 - floor), 0, 1)                      float32
    lexical   = the share of the query's words: see `reference_lexical`          float32
    relevance = min(w * lexical + (1 - w) * semantic, 1)                         float32
    recency   = 2 ** -(max(0, now - anchor) / half_life)           float64, then float32
    score     = (w_rel * relevance + (w_rec * recency + w_imp * importance))
                / ((w_rel + w_rec) + w_imp)                                      float32
    score     = score * source_factor[source]         of the source kind in the row's flags
    score     = score * consolidated_factor           where FLAG_CONSOLIDATED is set

w is `lexical_weight`; a query without words leaves relevance to the semantic part alone, and one
without a vector to the lexical part. A row without a vector has a semantic part of 0.

The half-life is that of the row's attribute where the profile has one and `attribute_kinds` has
the row's kind, and that of the kind otherwise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pillion_ranker import (
    DIMENSION_MAX,
    FLAG_CONSOLIDATED,
    FLAG_PINNED,
    PART_WEIGHT_MAX,
    RESULTS_MAX,
    ROW_LABELS_MAX,
    SLOT_ABSENT,
    SOURCE_SHIFT,
    TEXT_BYTES_MAX,
    TEXT_PARTS_MAX,
    Filter,
    Profile,
)
from pillion_ranker.reference_lexical import Bag, Question, blended

_ID_BYTES = 16
_KIND_MAX = 5
_STATUS_MAX = 3
_SOURCES = 8
_FLAGS_KNOWN = 0b11111 | (_SOURCES - 1) << SOURCE_SHIFT
_AGE_MAX = 2**63 - 1
_HORIZON_SLACK = 1e-4


@dataclass(frozen=True, slots=True)
class _Row:
    """One row; `vector` is a unit vector in float32."""

    id: bytes
    created: int
    last_used: int
    valid_from: int
    valid_to: int
    recorded: int
    expires: int
    importance: np.float32
    confidence: np.float32
    kind: int
    status: int
    flags: int
    subject: int
    context: int
    attribute: int
    labels: frozenset[int]
    vector: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class ReferenceHits:
    """As `pillion_ranker.Hits`."""

    ids: NDArray[np.uint8]
    slots: NDArray[np.uint32]
    scores: NDArray[np.float32]
    relevance: NDArray[np.float32]
    recency: NDArray[np.float32]
    importance: NDArray[np.float32]
    cosine: NDArray[np.float32]
    lexical: NDArray[np.float32]
    admitted: int
    scanned: int
    rescored: int
    examined: int = 0
    bound: float | None = None

    def rows(self) -> list[tuple[bytes, float, float, float, float, float, float]]:
        """Return (id, score, relevance, recency, importance, cosine, lexical) of each result."""
        identities = [identity.tobytes() for identity in self.ids]
        parts = (self.relevance, self.recency, self.importance, self.cosine, self.lexical)
        numbers = (column.tolist() for column in (self.scores, *parts))
        return list(zip(identities, *numbers, strict=True))

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, slots=True)
class _Scored:
    id: bytes
    slot: int
    score: np.float32
    relevance: np.float32
    recency: np.float32
    importance: np.float32
    cosine: np.float32
    lexical: np.float32


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a search asks: a unit vector, words, both or neither."""

    profile: Profile
    now: int
    vector: NDArray[np.float32] | None
    question: Question | None

    def relevance(self, semantic: np.float32, lexical: np.float32) -> np.float32:
        """Return relevance of the semantic part and of a BM25."""
        return blended(
            self.profile,
            semantic=None if self.vector is None else semantic,
            lexical=None if self.question is None else self.question.share(lexical),
        )

    def score(self, row: _Row, relevance: np.float32) -> np.float32:
        """Return a row's score with that relevance."""
        return score_of(
            self.profile,
            relevance=relevance,
            recency=_recency(self.profile, row, self.now),
            importance=row.importance,
            flags=row.flags,
        )


def semantic_of(profile: Profile, cosine: np.float32) -> np.float32:
    """Return the semantic part of relevance, 0..1, of a cosine."""
    floor = np.float32(profile.relevance_floor)
    scaled = (cosine - floor) / (np.float32(1) - floor)
    return np.float32(min(max(scaled, np.float32(0)), np.float32(1)))


def half_life_of(profile: Profile, *, kind: int, attribute: int) -> float:
    """Return the half-life of a row in microseconds."""
    if profile.attribute_kinds >> kind & 1:
        return profile.attribute_half_life.get(attribute, profile.half_life[kind])
    return profile.half_life[kind]


def recency_of(
    profile: Profile, *, kind: int, attribute: int, valid_from: int, last_used: int, now: int
) -> np.float32:
    """Return recency, 0..1. A time ahead of `now` counts as now."""
    anchor = valid_from if profile.recency_anchor == 0 else max(valid_from, last_used)
    half_life = half_life_of(profile, kind=kind, attribute=attribute)
    if anchor >= now or math.isinf(half_life):
        return np.float32(1)
    return np.float32(2.0 ** -(float(min(now - anchor, _AGE_MAX)) / half_life))


def score_of(
    profile: Profile,
    *,
    relevance: np.float32,
    recency: np.float32,
    importance: np.float32,
    flags: int,
) -> np.float32:
    """Return the score, 0..1."""
    w_relevance = np.float32(profile.w_relevance)
    w_recency = np.float32(profile.w_recency)
    w_importance = np.float32(profile.w_importance)
    prior = w_recency * recency + w_importance * importance
    score = (w_relevance * relevance + prior) / ((w_relevance + w_recency) + w_importance)
    score *= np.float32(profile.source_factor[flags >> SOURCE_SHIFT & (_SOURCES - 1)])
    if flags & FLAG_CONSOLIDATED:
        score *= np.float32(profile.consolidated_factor)
    return np.float32(score)


def _admits(wanted: Filter, row: _Row) -> bool:
    tests = (
        not wanted.kinds or wanted.kinds >> row.kind & 1,
        not wanted.statuses or wanted.statuses >> row.status & 1,
        not wanted.subjects or row.subject in wanted.subjects,
        not wanted.contexts or row.context in wanted.contexts,
        not wanted.attributes or row.attribute in wanted.attributes,
        row.labels.issuperset(wanted.labels_all),
        not wanted.labels_any or not row.labels.isdisjoint(wanted.labels_any),
        row.labels.isdisjoint(wanted.labels_none),
        wanted.valid_at is None or row.valid_from <= wanted.valid_at < row.valid_to,
        wanted.recorded_at is None or row.recorded <= wanted.recorded_at,
        wanted.created_from is None or row.created >= wanted.created_from,
        wanted.created_to is None or row.created < wanted.created_to,
        row.importance >= np.float32(wanted.min_importance),
        row.confidence >= np.float32(wanted.min_confidence),
        row.flags & wanted.include_flags == wanted.include_flags,
        not row.flags & wanted.exclude_flags,
        wanted.not_expired_at is None or row.expires > wanted.not_expired_at,
        all(not row.labels.isdisjoint(one) for one in wanted.labels_each),
        wanted.valid_from_from is None or row.valid_from >= wanted.valid_from_from,
        wanted.valid_from_to is None or row.valid_from < wanted.valid_from_to,
        not wanted.any_of or any(_admits(one, row) for one in wanted.any_of),
        not any(_admits(one, row) for one in wanted.none_of),
    )
    return all(tests)


def _unit(values: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """Return the unit vector, or None where no direction can be told."""
    wide = values.astype(np.float64)
    norm = float(np.sqrt(np.sum(wide * wide)))
    if not math.isfinite(norm) or norm == 0.0:
        return None
    return (wide / norm).astype(np.float32)


def _ids(ids: NDArray[np.uint8]) -> list[bytes]:
    if ids.ndim != 2 or ids.shape[1] != _ID_BYTES:  # noqa: PLR2004  (n, 16)
        raise ValueError("ids: the shape must be (n, 16)")
    return [row.tobytes() for row in ids]


def _id_array(ids: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(len(ids), _ID_BYTES).copy()


@dataclass(slots=True)
class ReferenceTable:
    """As `pillion_ranker.Table`, for one thread."""

    dimension: int
    _slots: list[_Row | None] = field(default_factory=list, init=False)
    _free: list[int] = field(default_factory=list, init=False)
    _index: dict[bytes, int] = field(default_factory=dict, init=False)
    _bags: dict[int, Bag] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not 1 <= self.dimension <= DIMENSION_MAX:
            raise ValueError(f"dimension: {self.dimension} is not in 1..={DIMENSION_MAX}")

    def __len__(self) -> int:
        return len(self._index)

    def upsert(
        self,
        *,
        ids: NDArray[np.uint8],
        created: NDArray[np.int64],
        last_used: NDArray[np.int64],
        valid_from: NDArray[np.int64],
        valid_to: NDArray[np.int64],
        recorded: NDArray[np.int64],
        expires: NDArray[np.int64],
        importance: NDArray[np.float32],
        confidence: NDArray[np.float32],
        kind: NDArray[np.uint8],
        status: NDArray[np.uint8],
        flags: NDArray[np.uint16],
        subject: NDArray[np.uint64],
        context: NDArray[np.uint64],
        attribute: NDArray[np.uint64],
        label_offsets: NDArray[np.uint32],
        label_hashes: NDArray[np.uint64],
        has_vector: NDArray[np.bool_],
        vectors: NDArray[np.float32],
    ) -> NDArray[np.uint32]:
        """Add or replace rows; see `Table.upsert`."""
        offsets = label_offsets.tolist()
        if (
            len(offsets) != len(ids) + 1
            or offsets[0] != 0
            or offsets[-1] != len(label_hashes)
            or offsets != sorted(offsets)
        ):
            raise ValueError("label_offsets: must rise from 0 to the number of label_hashes")
        rows = []
        for n, identity in enumerate(_ids(ids)):
            vector = None
            if has_vector[n]:
                vector = _unit(vectors[n])
                if vector is None:
                    raise ValueError(f"row {n}, column vectors: not finite or all zeros")
            row = _Row(
                id=identity,
                created=int(created[n]),
                last_used=int(last_used[n]),
                valid_from=int(valid_from[n]),
                valid_to=int(valid_to[n]),
                recorded=int(recorded[n]),
                expires=int(expires[n]),
                importance=importance[n],
                confidence=confidence[n],
                kind=int(kind[n]),
                status=int(status[n]),
                flags=int(flags[n]),
                subject=int(subject[n]),
                context=int(context[n]),
                attribute=int(attribute[n]),
                labels=frozenset(label_hashes[offsets[n] : offsets[n + 1]].tolist()),
                vector=vector,
            )
            self._check(n, row, offsets[n + 1] - offsets[n])
            rows.append(row)
        return np.array([self._put(row) for row in rows], dtype=np.uint32)

    @staticmethod
    def _check(n: int, row: _Row, labels: int) -> None:
        for column, fine in (
            ("ids", row.id != bytes(_ID_BYTES)),
            ("importance", 0 <= row.importance <= 1),
            ("confidence", 0 <= row.confidence <= 1),
            ("kind", 1 <= row.kind <= _KIND_MAX),
            ("status", 1 <= row.status <= _STATUS_MAX),
            ("flags", not row.flags & ~_FLAGS_KNOWN),
            ("label_offsets", labels <= ROW_LABELS_MAX),
        ):
            if not fine:
                raise ValueError(f"row {n}, column {column}: out of range")

    def _put(self, row: _Row) -> int:
        slot = self._index.get(row.id)
        if slot is None:
            if self._free:
                slot = self._free.pop()
            else:
                slot = len(self._slots)
                self._slots.append(None)
            self._index[row.id] = slot
        self._slots[slot] = row
        return slot

    def _live(self, slot: int) -> _Row | None:
        return self._slots[slot] if slot < len(self._slots) else None

    def _row(self, slot: int) -> _Row:
        row = self._live(slot)
        if row is None:
            raise ValueError(f"slot {slot} holds no such row")
        return row

    def set_vectors(self, ids: NDArray[np.uint8], vectors: NDArray[np.float32]) -> int:
        """Set vectors of present rows; see `Table.set_vectors`."""
        if vectors.shape != (len(ids), self.dimension):
            raise ValueError(f"vectors: the shape must be ({len(ids)}, {self.dimension})")
        units = [_unit(vector) for vector in vectors]
        if any(unit is None for unit in units):
            raise ValueError("vectors: not finite or all zeros")
        unknown = 0
        for identity, unit in zip(_ids(ids), units, strict=True):
            slot = self._index.get(identity)
            if slot is None:
                unknown += 1
            else:
                self._slots[slot] = replace(self._row(slot), vector=unit)
        return unknown

    def set_texts(self, ids: NDArray[np.uint8], texts: Sequence[Sequence[tuple[str, int]]]) -> int:
        """Set texts of present rows; see `Table.set_texts`."""
        if len(ids) != len(texts):
            raise ValueError(f"texts: {len(texts)} texts for {len(ids)} ids")
        for row, parts in enumerate(texts):
            fine = all(
                1 <= weight <= PART_WEIGHT_MAX and len(text.encode()) <= TEXT_BYTES_MAX
                for text, weight in parts
            )
            if not fine or len(parts) > TEXT_PARTS_MAX:
                raise ValueError(f"row {row}, column texts: out of range")
        unknown = 0
        for identity, parts in zip(_ids(ids), texts, strict=True):
            slot = self._index.get(identity)
            if slot is None:
                unknown += 1
            else:
                self._bags[slot] = Bag.of(parts)
        return unknown

    def remove(self, ids: NDArray[np.uint8]) -> int:
        """Remove rows; see `Table.remove`."""
        removed = 0
        for identity in _ids(ids):
            slot = self._index.pop(identity, None)
            if slot is not None:
                self._slots[slot] = None
                self._bags.pop(slot, None)
                self._free.append(slot)
                removed += 1
        return removed

    def touch(self, ids: NDArray[np.uint8], last_used: NDArray[np.int64]) -> int:
        """Move `last_used` forward; see `Table.touch`."""
        if len(ids) != len(last_used):
            raise ValueError(f"last_used: {len(last_used)} values for {len(ids)} ids")
        unknown = 0
        for identity, time in zip(_ids(ids), last_used.tolist(), strict=True):
            slot = self._index.get(identity)
            if slot is None:
                unknown += 1
            else:
                row = self._row(slot)
                self._slots[slot] = replace(row, last_used=max(row.last_used, time))
        return unknown

    def contains(self, id: bytes) -> bool:  # noqa: A002  the name in the interface
        """Return whether the row is present."""
        if len(id) != _ID_BYTES:
            raise ValueError("id: an id has 16 bytes")
        return id in self._index

    def slots(self, ids: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Return the slot of each id, SLOT_ABSENT where there is none."""
        found = [self._index.get(identity, SLOT_ABSENT) for identity in _ids(ids)]
        return np.array(found, dtype=np.uint32)

    def ids_of(self, slots: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return the ids in the slots."""
        return _id_array([self._row(slot).id for slot in slots.tolist()])

    def vectors_of(self, slots: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the unit vectors in the slots."""
        out = np.zeros((len(slots), self.dimension), dtype=np.float32)
        for n, slot in enumerate(slots.tolist()):
            vector = self._row(slot).vector
            if vector is None:
                raise ValueError(f"slot {slot} holds no such row")
            out[n] = vector
        return out

    def live_slots(self) -> NDArray[np.uint32]:
        """Return the slots, ascending, of rows that have a vector."""
        rows = enumerate(self._slots)
        found = [slot for slot, row in rows if row is not None and row.vector is not None]
        return np.array(found, dtype=np.uint32)

    def memory_bytes(self) -> int:
        """Return the bytes of the vectors; the rest is Python's own."""
        return len(self.live_slots()) * self.dimension * np.dtype(np.float32).itemsize

    def clear(self) -> None:
        """Remove every row."""
        self._slots.clear()
        self._free.clear()
        self._index.clear()
        self._bags.clear()

    def search(
        self,
        *,
        query: NDArray[np.float32] | None,
        now: int,
        profile: Profile,
        filter: Filter,  # noqa: A002  the name in the interface
        k: int,
        exact_float: bool = False,
        text: str | None = None,
    ) -> ReferenceHits:
        """Return the best k of all admitted rows. Always exact, with or without `exact_float`."""
        del exact_float
        slots = range(len(self._slots))
        asked = self._asked(query, now, profile, text)
        return self._best(asked, filter, slots=slots, k=k)

    def score(
        self,
        *,
        query: NDArray[np.float32] | None,
        now: int,
        profile: Profile,
        filter: Filter,  # noqa: A002  the name in the interface
        slots: NDArray[np.uint32],
        k: int,
        text: str | None = None,
    ) -> ReferenceHits:
        """Return the best k of the given slots."""
        wanted = sorted(set(slots.tolist()))
        asked = self._asked(query, now, profile, text)
        return self._best(asked, filter, slots=wanted, k=k)

    def certify(
        self,
        *,
        query: NDArray[np.float32] | None,
        now: int,
        profile: Profile,
        filter: Filter,  # noqa: A002  the name in the interface
        slots: NDArray[np.uint32],
        horizon: float,
        rows_max: int,
        k: int,
        text: str | None = None,
    ) -> ReferenceHits:
        """Return the best k, exact if no vector outside `slots` has a cosine above `horizon`.

        Never gives up, whatever `rows_max` is.
        """
        del rows_max
        if query is None:
            raise ValueError("query: an index proposes only for one")
        if math.isnan(horizon):
            raise ValueError("horizon: not a number")
        proposed = sorted(set(slots.tolist()))
        asked = self._asked(query, now, profile, text)
        found = self._best(asked, filter, slots=proposed, k=k)
        bar = found.scores[-1] if len(found) == k else np.float32(filter.min_score)
        # The slack is for dot products that are added up in another order.
        nearest = semantic_of(profile, np.float32(horizon + _HORIZON_SLACK))
        hopeful = [
            slot
            for slot in range(len(self._slots))
            if (row := self._live(slot)) is not None
            and slot not in proposed
            and _admits(filter, row)
            and asked.score(row, asked.relevance(nearest, self._lexical(asked, slot))) >= bar
        ]
        best = self._best(asked, filter, slots=sorted(proposed + hopeful), k=k)
        return replace(best, examined=len(hopeful))

    def _asked(
        self, query: NDArray[np.float32] | None, now: int, profile: Profile, text: str | None
    ) -> _Asked:
        unit = question = None
        if query is not None:
            unit = _unit(query) if len(query) == self.dimension else None
            if unit is None:
                raise ValueError("query: of another dimension, not finite or all zeros")
        if text is not None:
            if len(text.encode()) > TEXT_BYTES_MAX:
                raise ValueError("text: too long")
            question = Question.of(text, self._bags.values(), profile)
        return _Asked(profile, now, unit, question)

    def _lexical(self, asked: _Asked, slot: int) -> np.float32:
        """Return the BM25 of the row in a slot."""
        question = asked.question
        return question.score(self._bags.get(slot)) if question is not None else np.float32(0)

    def lexical_scores(
        self, text: str, profile: Profile
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32], float]:
        """Return the slots with a word of the query; see `Table.lexical_scores`."""
        asked = self._asked(None, 0, profile, text)
        scores = {slot: self._lexical(asked, slot) for slot in sorted(self._bags)}
        found = {slot: score for slot, score in scores.items() if score > 0}
        return (
            np.array(list(found), dtype=np.uint32),
            np.array(list(found.values()), dtype=np.float32),
            float(asked.question.total) if asked.question is not None else 0.0,
        )

    def _best(
        self, asked: _Asked, wanted: Filter, *, slots: range | list[int], k: int
    ) -> ReferenceHits:
        if not 1 <= k <= RESULTS_MAX:
            raise ValueError(f"k: {k} is not in 1..={RESULTS_MAX}")
        rows = [(slot, row) for slot in slots if (row := self._live(slot)) is not None]
        admitted = [(slot, row) for slot, row in rows if _admits(wanted, row)]
        scored = [_score(asked, slot, row, self._lexical(asked, slot)) for slot, row in admitted]
        best = [
            one
            for one in scored
            if one.score >= np.float32(wanted.min_score)
            and one.relevance >= np.float32(wanted.min_relevance)
        ]
        best.sort(key=lambda one: (-one.score, one.id))
        del best[k:]
        return ReferenceHits(
            ids=_id_array([one.id for one in best]),
            slots=np.array([one.slot for one in best], dtype=np.uint32),
            scores=np.array([one.score for one in best], dtype=np.float32),
            relevance=np.array([one.relevance for one in best], dtype=np.float32),
            recency=np.array([one.recency for one in best], dtype=np.float32),
            importance=np.array([one.importance for one in best], dtype=np.float32),
            cosine=np.array([one.cosine for one in best], dtype=np.float32),
            lexical=np.array([one.lexical for one in best], dtype=np.float32),
            admitted=len(admitted),
            scanned=len(rows),
            rescored=len(admitted),
        )

    def count(self, filter: Filter, now: int | None = None) -> int:  # noqa: A002  as above
        """Return how many rows the filter admits."""
        del now
        return sum(row is not None and _admits(filter, row) for row in self._slots)

    def vitality(
        self,
        *,
        now: int,
        profile: Profile,
        filter: Filter,  # noqa: A002  the name in the interface
        below: NDArray[np.float32],
    ) -> NDArray[np.uint8]:
        """Return the ids, ascending, of admitted rows that faded; see `Table.vitality`."""
        if below.shape != (_KIND_MAX + 1,) or np.isnan(below).any():
            raise ValueError("below: one threshold per kind: six numbers")
        faded = [
            row.id
            for row in self._slots
            if row is not None
            and _admits(filter, row)
            and not row.flags & FLAG_PINNED
            and _recency(profile, row, now) * row.importance < below[row.kind]
        ]
        return _id_array(sorted(faded))


def _recency(profile: Profile, row: _Row, now: int) -> np.float32:
    return recency_of(
        profile,
        kind=row.kind,
        attribute=row.attribute,
        valid_from=row.valid_from,
        last_used=row.last_used,
        now=now,
    )


def _score(asked: _Asked, slot: int, row: _Row, lexical: np.float32) -> _Scored:
    cosine = semantic = np.float32(0)
    if asked.vector is not None and row.vector is not None:
        cosine = np.float32(np.dot(asked.vector, row.vector))
        semantic = semantic_of(asked.profile, cosine)
    relevance = asked.relevance(semantic, lexical)
    recency = _recency(asked.profile, row, asked.now)
    score = asked.score(row, relevance)
    return _Scored(row.id, slot, score, relevance, recency, row.importance, cosine, lexical)
