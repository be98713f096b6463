# ruff: noqa: A002, PYI021
# `filter` is the name in the interface; editors show these docstrings, the binary has none.
"""What the compiled module offers. `tests/differential/test_ranker_stub.py` holds it to this."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

FLAG_PINNED: Final[int]
FLAG_RETRACTED: Final[int]
FLAG_EXPIRED: Final[int]
FLAG_CONSOLIDATED: Final[int]
FLAG_EPISODE: Final[int]
SOURCE_SHIFT: Final[int]
DIMENSION_MAX: Final[int]
RESULTS_MAX: Final[int]
FILTER_VALUES_MAX: Final[int]
ROW_LABELS_MAX: Final[int]
SLOT_ABSENT: Final[int]
TEXT_BYTES_MAX: Final[int]
TEXT_PARTS_MAX: Final[int]
PART_WEIGHT_MAX: Final[int]
TIME_OPEN: Final[int]

def cpu_path() -> str:
    """Return the instruction set in use: avx512vnni, avx512, avx2, neon or scalar.

    It is the fastest that the CPU has, or what PILLION_RANKER_SIMD names.

    Raises:
        ValueError: that variable names a path that is unknown or that this CPU can't run.
    """

def calibrate(dimension: int) -> tuple[float, float, float, float]:
    """Measure what a row costs on this machine, in nanoseconds; it takes some 20 ms.

    Returns the costs of asking a filter about a row, of bounding its score by recency and
    importance, of comparing its int8 vector in a scan, and of scoring it wherever it lies.

    Raises:
        ValueError: the dimension is not in 1..DIMENSION_MAX.
    """

def tokenize(text: str) -> tuple[list[str], int]:
    """Return the terms of a text, in its order, and the mask of the languages it was read in."""

def query_words(text: str, languages: int) -> list[list[str]]:
    """Return the words of a query for texts read in those languages.

    Each word is the list of terms that it stands for. Stop words are left out where there are
    other words, and each word is there once.
    """

@final
class Profile:
    """How results are ranked. Immutable.

    Formulas and their evaluation order are in `pillion_ranker.reference`.

    Args:
        w_relevance: weight >= 0.
        w_recency: weight >= 0.
        w_importance: weight >= 0. The sum of the three must be positive.
        half_life: six half-lives in microseconds, by kind; index 0 is unused, `inf` means no
            decay. Default: episodic and session 30 days, semantic 365 days, others none.
        attribute_half_life: half-lives in microseconds by attribute, which go before those of
            kinds; `inf` means no decay. At most 65,536.
        attribute_kinds: mask of the kinds for whose rows they do; see `pillion_ranker.mask_of`.
            Default: all.
        recency_anchor: recency counts from 0 = valid_from, 1 = max(valid_from, last_used).
        relevance_floor: in [-1, 1), the cosine that unrelated texts have under the embedder.
        consolidated_factor: 0..1, multiplies the score of rows with FLAG_CONSOLIDATED.
        source_factor: 8 values in 0..1, multiply the score of rows by the source kind in their
            flags (kind << SOURCE_SHIFT); index 0, no source kind, is 1. None: all are 1.
        lexical_weight: 0..1, the part of relevance that words decide where a query has both words
            and a vector.
        bm25_k1: >= 0, how soon repetitions of a term stop counting.
        bm25_b: 0..1, how much more a long text must say.

    Raises:
        ValueError: an argument is out of range; the message names it.
    """

    def __new__(
        cls,
        *,
        w_relevance: float = 0.60,
        w_recency: float = 0.25,
        w_importance: float = 0.15,
        half_life: Sequence[float] | NDArray[np.float64] | None = None,
        attribute_half_life: dict[int, float] = ...,
        attribute_kinds: int = 0b111110,
        recency_anchor: int = 0,
        relevance_floor: float = 0.0,
        consolidated_factor: float = 0.5,
        source_factor: Sequence[float] | None = None,
        lexical_weight: float = 0.6,
        bm25_k1: float = 0.9,
        bm25_b: float = 0.4,
    ) -> Profile: ...
    @property
    def w_relevance(self) -> float: ...
    @property
    def w_recency(self) -> float: ...
    @property
    def w_importance(self) -> float: ...
    @property
    def half_life(self) -> list[float]: ...
    @property
    def attribute_half_life(self) -> dict[int, float]: ...
    @property
    def attribute_kinds(self) -> int: ...
    @property
    def recency_anchor(self) -> int: ...
    @property
    def relevance_floor(self) -> float: ...
    @property
    def consolidated_factor(self) -> float: ...
    @property
    def source_factor(self) -> list[float]: ...
    @property
    def lexical_weight(self) -> float: ...
    @property
    def bm25_k1(self) -> float: ...
    @property
    def bm25_b(self) -> float: ...

@final
class Filter:
    """What may be a result. Immutable. Empty sets, zero masks and None admit everything.

    Args:
        kinds: mask, bit n for kind n (see `pillion_ranker.mask_of`).
        statuses: mask, bit n for status n. Default: STATED and CONFIRMED.
        subjects: the row's subject must be one of these; likewise contexts, attributes.
        contexts: see subjects.
        attributes: see subjects.
        labels_all: labels that the row must all have.
        labels_any: labels of which it must have one.
        labels_none: labels of which it must have none.
        valid_at: `valid_from <= t < valid_to`.
        recorded_at: `recorded <= t`.
        created_from: `created >= t`.
        created_to: `created < t`.
        min_importance: 0..1.
        min_confidence: 0..1.
        include_flags: flags that the row must all have.
        exclude_flags: flags of which it must have none. Default: RETRACTED and EXPIRED.
        not_expired_at: `expires > t`.
        min_score: 0..1, on the final score. Bounds results; doesn't count as admission.
        min_relevance: 0..1. Bounds results; doesn't count as admission.
        labels_each: sets of labels, of each of which it must have one.
        valid_from_from: `valid_from >= t`.
        valid_from_to: `valid_from < t`.
        any_of: filters of which it must meet one; their least scores and relevances don't count.
        none_of: filters of which it must meet none.

    Raises:
        ValueError: unknown bits, a flag both included and excluded, a least value outside 0..1,
            more than FILTER_VALUES_MAX values in a set, or too many filters within filters; the
            message names the argument.
    """

    def __new__(
        cls,
        *,
        kinds: int = 0,
        statuses: int = 0b1100,
        subjects: Sequence[int] | NDArray[np.uint64] = ...,
        contexts: Sequence[int] | NDArray[np.uint64] = ...,
        attributes: Sequence[int] | NDArray[np.uint64] = ...,
        labels_all: Sequence[int] | NDArray[np.uint64] = ...,
        labels_any: Sequence[int] | NDArray[np.uint64] = ...,
        labels_none: Sequence[int] | NDArray[np.uint64] = ...,
        valid_at: int | None = None,
        recorded_at: int | None = None,
        created_from: int | None = None,
        created_to: int | None = None,
        min_importance: float = 0.0,
        min_confidence: float = 0.0,
        include_flags: int = 0,
        exclude_flags: int = 0b110,
        not_expired_at: int | None = None,
        min_score: float = 0.0,
        min_relevance: float = 0.0,
        labels_each: Sequence[Sequence[int]] = ...,
        valid_from_from: int | None = None,
        valid_from_to: int | None = None,
        any_of: Sequence[Filter] = ...,
        none_of: Sequence[Filter] = ...,
    ) -> Filter: ...
    @property
    def kinds(self) -> int: ...
    @property
    def statuses(self) -> int: ...
    @property
    def subjects(self) -> list[int]: ...
    @property
    def contexts(self) -> list[int]: ...
    @property
    def attributes(self) -> list[int]: ...
    @property
    def labels_all(self) -> list[int]: ...
    @property
    def labels_any(self) -> list[int]: ...
    @property
    def labels_none(self) -> list[int]: ...
    @property
    def valid_at(self) -> int | None: ...
    @property
    def recorded_at(self) -> int | None: ...
    @property
    def created_from(self) -> int | None: ...
    @property
    def created_to(self) -> int | None: ...
    @property
    def min_importance(self) -> float: ...
    @property
    def min_confidence(self) -> float: ...
    @property
    def include_flags(self) -> int: ...
    @property
    def exclude_flags(self) -> int: ...
    @property
    def not_expired_at(self) -> int | None: ...
    @property
    def min_score(self) -> float: ...
    @property
    def min_relevance(self) -> float: ...
    @property
    def labels_each(self) -> list[list[int]]: ...
    @property
    def valid_from_from(self) -> int | None: ...
    @property
    def valid_from_to(self) -> int | None: ...
    @property
    def any_of(self) -> list[Filter]: ...
    @property
    def none_of(self) -> list[Filter]: ...

@final
class Hits:
    """Results, best first: score descending, then id bytes ascending. All arrays have n rows.

    Arrays are made anew each time that one is asked for.
    """

    @property
    def ids(self) -> NDArray[np.uint8]:
        """(n, 16)."""
    @property
    def slots(self) -> NDArray[np.uint32]:
        """Slots at the time of the search."""
    @property
    def scores(self) -> NDArray[np.float32]:
        """Final scores, 0..1."""
    @property
    def relevance(self) -> NDArray[np.float32]:
        """0..1, of the cosine and the words that match."""
    @property
    def recency(self) -> NDArray[np.float32]:
        """0..1."""
    @property
    def importance(self) -> NDArray[np.float32]:
        """0..1."""
    @property
    def cosine(self) -> NDArray[np.float32]:
        """-1..1; 0 without a query or a vector."""
    @property
    def lexical(self) -> NDArray[np.float32]:
        """BM25 of the query's words, above 0; 0 where no term matched."""
    @property
    def admitted(self) -> int:
        """Rows that the filter admitted; of a certified search, of those proposed."""
    @property
    def scanned(self) -> int:
        """Live rows that were looked at."""
    @property
    def rescored(self) -> int:
        """Rows that were scored with float32."""
    @property
    def examined(self) -> int:
        """Rows besides those proposed that a certified search found able to win."""
    @property
    def bound(self) -> float | None:
        """Where a certified search gave up: no row that it left out scores higher.

        None: no row that was left out belongs among the hits.
        """
    def rows(self) -> list[tuple[bytes, float, float, float, float, float, float]]:
        """Return (id, score, relevance, recency, importance, cosine, lexical) of each result.

        The same values as in the arrays, in one go: quicker where results are few.
        """
    def __len__(self) -> int: ...

@final
class Table:
    """One partition's rows. Thread-safe: searches run side by side, a change runs alone.

    Times are microseconds since the Unix epoch. Arrays must be C-contiguous and of the dtype
    given, and must not be changed by another thread during the call. Every change is applied as a
    whole or, when it raises, not at all.

    Args:
        dimension: length of vectors, 1..DIMENSION_MAX.

    Raises:
        ValueError: another dimension, or PILLION_RANKER_SIMD names an unusable path.
        TypeError: from any method, an array of another dtype or number of dimensions.
    """

    def __new__(cls, dimension: int) -> Table: ...
    @property
    def dimension(self) -> int: ...
    def __len__(self) -> int:
        """Return the number of live rows."""
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
        """Add n rows, or replace in place those whose id is present. Return their slots.

        Of an id that is twice in the batch the later row stays. `ids` is (n, 16), `vectors`
        (n, dimension), others (n,); row i has the labels
        `label_hashes[label_offsets[i]:label_offsets[i + 1]]`. Vectors are normalised here; those
        of rows without one are ignored. A row without a vector is a candidate of relevance 0.
        `valid_to` and `expires` are TIME_OPEN for open and never.

        Raises:
            ValueError: a value is not finite or out of range, a vector is all zeros, an id is all
                zeros (reserved), a shape is wrong; the message names the row and column.
            OverflowError: slot numbers are used up.
        """
    def set_vectors(self, ids: NDArray[np.uint8], vectors: NDArray[np.float32]) -> int:
        """Set vectors of rows that are present. Return how many ids are unknown (ignored).

        Raises:
            ValueError: a vector is not finite or all zeros, or a shape is wrong.
        """
    def set_texts(self, ids: NDArray[np.uint8], texts: Sequence[Sequence[tuple[str, int]]]) -> int:
        """Set texts of rows that are present. Return how many ids are unknown (ignored).

        A text is made of parts (text, weight), which are one bag of terms: a part counts by its
        weight in eighths, 1..PART_WEIGHT_MAX, and 8 is plain. A text without parts is none. Of an
        id that is there twice the later text stays. A text that is there already costs little.
        `upsert` leaves texts as they are; `remove` leaves nothing of them.

        Raises:
            ValueError: the lengths differ, more than TEXT_PARTS_MAX parts, a part of more than
                TEXT_BYTES_MAX bytes, a weight out of range.
            OverflowError: a weight beyond a byte, or a row beyond the 16,777,216th slot.
        """
    def remove(self, ids: NDArray[np.uint8]) -> int:
        """Remove rows and zero their bytes; their slots may be reused. Return how many there were.

        Raises:
            ValueError: the shape is not (n, 16).
        """
    def touch(self, ids: NDArray[np.uint8], last_used: NDArray[np.int64]) -> int:
        """Move `last_used` forward, never back. Return how many ids are unknown (ignored).

        Raises:
            ValueError: the shapes don't fit.
        """
    def contains(self, id: bytes) -> bool:
        """Return whether the row is present.

        Raises:
            ValueError: an id has 16 bytes.
        """
    def slots(self, ids: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Return the slot of each id, SLOT_ABSENT where there is none.

        Raises:
            ValueError: the shape is not (n, 16).
        """
    def ids_of(self, slots: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return the (n, 16) ids in the slots.

        Raises:
            ValueError: a slot is free.
        """
    def vectors_of(self, slots: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the (n, dimension) unit vectors in the slots.

        Raises:
            ValueError: a slot is free or its row has no vector.
        """
    def live_slots(self) -> NDArray[np.uint32]:
        """Return the slots, ascending, of rows that have a vector."""
    def memory_bytes(self) -> int:
        """Return the bytes in use. Memory reserved but never touched doesn't count."""
    def clear(self) -> None:
        """Remove every row, zero its bytes and give the memory back."""
    def search(
        self,
        *,
        query: NDArray[np.float32] | None,
        now: int,
        profile: Profile,
        filter: Filter,
        k: int,
        exact_float: bool = False,
        text: str | None = None,
    ) -> Hits:
        """Return the exact best k of all admitted rows.

        The int8 pass prunes by a proven bound and float32 decides; `exact_float` scans float32
        only, and the results are the same. `text` is the query in words; `query` its vector.
        Without either, relevance is 0 for all.

        Raises:
            ValueError: k is not in 1..RESULTS_MAX; the query is not finite, all zeros, or not of
                the table's dimension; the text has more than TEXT_BYTES_MAX bytes.
        """
    def score(
        self,
        *,
        query: NDArray[np.float32] | None,
        now: int,
        profile: Profile,
        filter: Filter,
        slots: NDArray[np.uint32],
        k: int,
        text: str | None = None,
    ) -> Hits:
        """Return the exact best k of the given slots.

        Free slots are skipped and repeated ones count once.

        Raises:
            ValueError: as `search`.
        """
    def certify(
        self,
        *,
        query: NDArray[np.float32] | None,
        now: int,
        profile: Profile,
        filter: Filter,
        slots: NDArray[np.uint32],
        horizon: float,
        rows_max: int,
        k: int,
        text: str | None = None,
    ) -> Hits:
        """Return the best k of all admitted rows, given what an index says of the query.

        `slots` are its nearest, and those of rows that it has not taken up; `horizon` is the
        cosine that no vector in another slot exceeds. Every other row that could win by its
        recency and importance is scored too, so the result is exact if the claim is true. At most
        `rows_max` such rows are looked at; where that is too few, `Hits.bound` says what was left
        out. Free slots are skipped and repeated ones count once.

        Raises:
            ValueError: as `search`; no query; a horizon that is not a number.
        """
    def lexical_scores(
        self, text: str, profile: Profile
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32], float]:
        """Return the slots, ascending, with a word of the query, their BM25, and the words' weight.

        A BM25 divided by that weight is the lexical part of relevance. Nothing is filtered.

        Raises:
            ValueError: the text has more than TEXT_BYTES_MAX bytes.
        """
    def count(self, filter: Filter, now: int | None = None) -> int:
        """Return how many rows the filter admits.

        `now` names the search that the count stands beside; admission doesn't depend on it.
        """
    def vitality(
        self,
        *,
        now: int,
        profile: Profile,
        filter: Filter,
        below: NDArray[np.float32],
    ) -> NDArray[np.uint8]:
        """Return the (n, 16) ids, ascending, of admitted rows that faded.

        A row faded when recency x importance is strictly under `below[kind]` (six values; index
        0 is unused). Pinned rows never fade.

        Raises:
            ValueError: `below` has not six values, or one is not a number.
        """
    def bench_scan_f32(self, query: NDArray[np.float32]) -> float:
        """For benchmarks: scan every float32 vector, return the best dot product."""
    def bench_scan_i8(self, query: NDArray[np.float32]) -> int:
        """For benchmarks: scan every int8 vector, return the best dot product."""
    def bench_read_f32(self) -> float:
        """For benchmarks: read every float32 vector, return the sum."""
    def bench_read_i8(self) -> int:
        """For benchmarks: read every int8 vector, return a checksum."""

@final
class Rows:
    """Rows of one partition in the order of their keys, side by side in memory.

    What is done to all of them releases the GIL. Where a method raises ValueError, the rows are
    for Python to do one by one: it says what is wrong with which.
    """

    def __new__(cls, rows: Sequence[tuple[bytes, int, bytes]]) -> Rows:
        """Pack rows in plain: key, version, value."""
    @staticmethod
    def of_records(records: Sequence[tuple[bytes, bytes]], seed: int, prefix_bytes: int) -> Rows:
        """Pack rows of a data file: key and record, whose checksums are looked at.

        Args:
            records: Of one database; the first `prefix_bytes` of a key stand for the partition.
            seed: The checksum of that database's number.
            prefix_bytes: How much of each key is left out.

        Raises:
            ValueError: a record is damaged.
        """
    def __len__(self) -> int: ...
    def key_ids(self) -> list[bytes]:
        """Return the ids of the keys that values are sealed with, each once."""
    def open(self, keys: Mapping[bytes, bytes | None], place: bytes, plain_until: int) -> None:
        """Open every sealed value where it stands; rows under a destroyed key leave.

        Args:
            keys: The data keys by id; None: it was destroyed.
            place: What each value is bound to before its key: its kind and the partition's tag.
            plain_until: The last revision that may have written values in plain.

        Raises:
            ValueError: a value does not open, or is in plain where none may be.
        """
    def bounds(self) -> tuple[bytes, bytes] | None:
        """Return the first and the last key; None where there are no rows."""
    def to_list(self) -> list[tuple[bytes, int, bytes]]:
        """Return the rows: key, version, value."""

@final
class Loader:
    """Puts the stored memories of one partition into tables. Safe to share between threads."""

    def __new__(cls, secret: bytes) -> Loader:
        """Hash names under the partition's secret."""
    def load(
        self, table: Table, memories: Rows, vectors: Sequence[Rows], accesses: Sequence[Rows]
    ) -> tuple[NDArray[np.uint32], int]:
        """Decode memories and put them into a table, with their vectors; return their slots.

        Args:
            table: Where.
            memories: Opened memories, under the keys that they are stored under.
            vectors: Opened vectors in the order of their keys across all; those of other memories
                are passed over, and one that cannot be compared counts as none.
            accesses: The same of the records of when memories were last used.

        Returns:
            The slots of the memories, and how many vectors could not be used.

        Raises:
            ValueError: a memory cannot be read, or the table refuses it; nothing was put in.
            OverflowError: as `Table.upsert`.
        """
    def columns(
        self,
        dimension: int,
        memories: Rows,
        vectors: Sequence[Rows],
        accesses: Sequence[Rows],
    ) -> dict[str, NDArray[Any]]:
        """For tests: return the arguments of `Table.upsert` that `load` makes."""
