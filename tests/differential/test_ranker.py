"""`Table` in Rust against `ReferenceTable` in numpy: same stores, same questions, same answers.

Float32 sums may differ in the last bits between the two, so ranks are compared up to 1e-6 in
score; where every number is exact in float32 they are compared bit for bit. Between Rust's own
ways to an answer (int8 with re-ranking, float32 scan, scoring of all slots) there is no tolerance.
"""

import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pillion_ranker as ranker
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion_ranker.reference import ReferenceTable

TOLERANCE = 1e-6
NOW = 1_800_000_000_000_000
DAY = 86_400_000_000
GOLDEN = Path(__file__).parents[1] / "vectors" / "ranker_scores.json"

TIMES = [0, NOW - 400 * DAY, NOW - 30 * DAY, NOW - 1, NOW, NOW + 1, NOW + DAY]
OPEN_TIMES = [*TIMES, ranker.TIME_OPEN]
HASHES = [0, 1, 2, 3, 2**64 - 1]
LABELS = [7, 8, 9]
NUMBERS = ("scores", "relevance", "recency", "importance", "cosine", "lexical")
# Words of three languages, stop words among them, which are terms and rarely asked for.
WORDS = ["cat", "cats", "the", "is", "Hund", "Hunde", "und", "кошка", "кошки", "и", "ORD-7", "東京"]
QUESTIONS = [None, "", "?!", "the cat", "cats", "is it the", "Hunde und Katzen", "кошкой, ORD-7"]


def batch(rng: np.random.Generator, numbers: list[int], dimension: int) -> dict[str, Any]:
    """Rows of the given id numbers, with values from small pools so that ties are common."""
    n = len(numbers)
    ids = np.zeros((n, 16), np.uint8)
    ids[:, 0] = numbers
    ids[:, 15] = 1
    counts = rng.integers(0, 3, n)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.uint32)
    if rng.random() < 0.5:
        vectors = rng.integers(-2, 3, (n, dimension)).astype(np.float32)
    else:
        vectors = rng.standard_normal((n, dimension), dtype=np.float32)
    has_vector = (rng.random(n) < 0.8) & vectors.any(axis=1)
    unit = np.array([0.0, 0.25, 0.5, 1.0], np.float32)
    return {
        "ids": ids,
        "created": rng.choice(TIMES, n),
        "last_used": rng.choice(TIMES, n),
        "valid_from": rng.choice([-(2**63), *TIMES], n),
        "valid_to": rng.choice(OPEN_TIMES, n),
        "recorded": rng.choice(TIMES, n),
        "expires": rng.choice(OPEN_TIMES, n),
        "importance": rng.choice(unit, n),
        "confidence": rng.choice(unit, n),
        "kind": rng.integers(1, 6, n, dtype=np.uint8),
        "status": rng.integers(1, 4, n, dtype=np.uint8),
        "flags": rng.choice(np.array([0, 0, 1, 2, 4, 8, 9, 16], np.uint16), n)
        | rng.choice(np.array([0, 1, 5, 7], np.uint16), n) << ranker.SOURCE_SHIFT,
        "subject": rng.choice(np.array(HASHES, np.uint64), n),
        "context": rng.choice(np.array(HASHES, np.uint64), n),
        "attribute": rng.choice(np.array(HASHES, np.uint64), n),
        "label_offsets": offsets,
        "label_hashes": rng.choice(np.array(LABELS, np.uint64), offsets[-1]),
        "has_vector": has_vector,
        "vectors": vectors,
    }


def one_row(**changes: Any) -> dict[str, Any]:
    """A batch of one plain row of dimension 2, with changes to its columns."""
    columns: dict[str, Any] = {
        "ids": np.full((1, 16), 1, np.uint8),
        **dict.fromkeys(
            ("created", "last_used", "valid_from", "recorded"), np.array([NOW], np.int64)
        ),
        "valid_to": np.array([ranker.TIME_OPEN]),
        "expires": np.array([ranker.TIME_OPEN]),
        "importance": np.array([0.5], np.float32),
        "confidence": np.array([0.5], np.float32),
        "kind": np.array([1], np.uint8),
        "status": np.array([2], np.uint8),
        "flags": np.array([0], np.uint16),
        **dict.fromkeys(("subject", "context", "attribute"), np.array([0], np.uint64)),
        "label_offsets": np.array([0, 0], np.uint32),
        "label_hashes": np.array([], np.uint64),
        "has_vector": np.array([True]),
        "vectors": np.array([[1.0, 0.0]], np.float32),
    }
    assert changes.keys() <= columns.keys()
    return columns | changes


def filters() -> st.SearchStrategy[dict[str, Any]]:
    """What a filter is made of, now and then with filters within it, and within those."""
    nested = flat_filters().map(lambda wanted: ranker.Filter(**wanted))
    deeper = st.lists(nested, min_size=1, max_size=2).map(
        lambda some: ranker.Filter(statuses=0, exclude_flags=0, none_of=some)
    )
    some = st.just([]) | st.lists(nested | deeper, min_size=1, max_size=2)
    return st.tuples(flat_filters(), some, some).map(
        lambda parts: parts[0] | {"any_of": parts[1], "none_of": parts[2]}
    )


def flat_filters() -> st.SearchStrategy[dict[str, Any]]:
    hashes = st.lists(st.sampled_from(HASHES), max_size=3)
    many = st.sampled_from([list(range(3, 20)), list(range(100, 120))])
    labels = st.lists(st.sampled_from(LABELS), max_size=2)
    instant = st.none() | st.sampled_from(TIMES)
    least = st.sampled_from([0.0, 0.25, 0.5])
    flag_masks = st.sampled_from([(0, 6), (0, 0), (8, 6), (1, 0), (0, 31), (9, 2)])
    every = {
        "kinds": st.sampled_from([0, 0, 0b10, 0b111100]),
        "statuses": st.sampled_from([0b1100, 0, 0b10, 0b1110]),
        "subjects": hashes | many,
        "contexts": hashes,
        "attributes": hashes,
        "labels_all": labels,
        "labels_any": labels,
        "labels_none": labels,
        "labels_each": st.lists(labels, max_size=2),
        "valid_from_from": instant,
        "valid_from_to": instant,
        "valid_at": instant,
        "recorded_at": instant,
        "created_from": instant,
        "created_to": instant,
        "not_expired_at": instant,
        "min_importance": least,
        "min_confidence": least,
        "min_score": least,
        "min_relevance": least,
    }

    def with_flags(parts: tuple[dict[str, Any], tuple[int, int]]) -> dict[str, Any]:
        chosen, (include, exclude) = parts
        return chosen | {"include_flags": include, "exclude_flags": exclude}

    # Few criteria at a time: all at once admit nothing.
    some = st.lists(st.sampled_from(sorted(every)), max_size=3, unique=True)
    chosen = some.flatmap(lambda names: st.fixed_dictionaries({n: every[n] for n in names}))
    return st.tuples(chosen, flag_masks).map(with_flags)


def profiles() -> st.SearchStrategy[ranker.Profile]:
    weight = st.sampled_from([0.0, 0.15, 0.25, 0.6, 3.0])
    half_life = st.sampled_from([1.0, 30.0 * DAY, 365.0 * DAY, math.inf])
    weights = st.tuples(weight, weight, weight).filter(any)

    def make(values: tuple[Any, ...]) -> ranker.Profile:
        (relevance, recency, importance), half_lives, by_attribute, anchor, *rest = values
        floor, factors, words = rest
        return ranker.Profile(
            w_relevance=relevance,
            w_recency=recency,
            w_importance=importance,
            half_life=[0.0, *half_lives],
            attribute_half_life=by_attribute[0],
            attribute_kinds=by_attribute[1],
            recency_anchor=anchor,
            relevance_floor=floor,
            consolidated_factor=factors[0],
            source_factor=[1.0, *factors[1]],
            lexical_weight=words[0],
            bm25_k1=words[1],
            bm25_b=words[2],
        )

    return st.tuples(
        weights,
        st.lists(half_life, min_size=5, max_size=5),
        st.tuples(
            st.just({}) | st.dictionaries(st.sampled_from([*HASHES, 7]), half_life, max_size=4),
            st.sampled_from([0b111110, 0b111110, 0b100, 0]),
        ),
        st.sampled_from([0, 1]),
        st.sampled_from([-1.0, 0.0, 0.3, 0.85]),
        st.tuples(
            st.sampled_from([0.0, 0.5, 1.0]),
            st.just([1.0] * 7)
            | st.lists(st.sampled_from([0.0, 0.3, 0.9, 1.0]), min_size=7, max_size=7),
        ),
        st.tuples(
            st.sampled_from([0.6, 0.0, 1.0]),
            st.sampled_from([0.9, 0.0, 50.0]),
            st.sampled_from([0.4, 0.0, 1.0]),
        ),
    ).map(make)


class Pair:
    """The same calls on both tables; what they return must be equal."""

    def __init__(self, dimension: int) -> None:
        self.real = ranker.Table(dimension)
        self.reference = ReferenceTable(dimension)

    def both(self, method: str, *args: Any, **kwargs: Any) -> Any:
        real = getattr(self.real, method)(*args, **kwargs)
        reference = getattr(self.reference, method)(*args, **kwargs)
        np.testing.assert_array_equal(real, reference, err_msg=method)
        assert len(self.real) == len(self.reference)
        return real


def some_parts(rng: np.random.Generator) -> list[tuple[str, int]]:
    """A text of few words, in one part or in several."""
    return [
        (" ".join(rng.choice(WORDS, rng.integers(0, 6))), int(rng.choice([8, 8, 4, 1, 64])))
        for _ in range(rng.choice([0, 1, 1, 1, 3]))
    ]


@st.composite
def stores(draw: st.DrawFn) -> Pair:
    """A store after a random history of every kind of change."""
    dimension = draw(st.sampled_from([1, 2, 3, 16, 17, 64, 70]))
    pair = Pair(dimension)
    numbers = st.lists(st.integers(0, 25), max_size=25)
    changes = ["upsert", "upsert", "upsert", "remove", "touch", "set_vectors", "set_texts", "clear"]
    for change in draw(st.lists(st.sampled_from(changes), max_size=6)):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        columns = batch(rng, draw(numbers), dimension)
        ids, vectors = columns["ids"], columns["vectors"]
        match change:
            case "upsert":
                pair.both("upsert", **columns)
            case "remove":
                pair.both("remove", ids)
            case "touch":
                pair.both("touch", ids, columns["last_used"])
            case "set_vectors":
                usable = vectors.any(axis=1)
                pair.both("set_vectors", ids[usable], vectors[usable])
            case "set_texts":
                pair.both("set_texts", ids, [some_parts(rng) for _ in ids])
            case "clear" if rng.random() < 0.2:
                pair.both("clear")
    return pair


def queries(dimension: int) -> st.SearchStrategy[np.ndarray | None]:
    def make(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        if seed % 2:
            return rng.standard_normal(dimension, dtype=np.float32)
        values = rng.integers(-2, 3, dimension).astype(np.float32)
        values[0] = 1.0
        return values

    return st.none() | st.integers(0, 2**32 - 1).map(make)


def assert_same_bits(one: Any, other: Any) -> None:
    for column in (
        "ids",
        "slots",
        "scores",
        "relevance",
        "recency",
        "importance",
        "cosine",
        "lexical",
    ):
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column), column)
    assert one.admitted == other.admitted
    assert one.rows() == other.rows()


def assert_agrees(hits: Any, everything: Any, least: dict[str, float], k: int) -> None:
    """`hits` are the best k of `everything`, the reference's scores of all admitted rows."""
    assert (hits.admitted, hits.scanned) == (everything.admitted, everything.scanned)
    assert len(hits) <= k
    row_of = {identity.tobytes(): n for n, identity in enumerate(everything.ids)}
    found = [row_of[identity.tobytes()] for identity in hits.ids]
    assert len(set(found)) == len(found)
    np.testing.assert_array_equal(hits.slots, everything.slots[found])
    for column in NUMBERS:
        np.testing.assert_allclose(
            getattr(hits, column), getattr(everything, column)[found], rtol=0, atol=TOLERANCE
        )
    order = [
        (-score, identity.tobytes()) for score, identity in zip(hits.scores, hits.ids, strict=True)
    ]
    assert order == sorted(order)
    assert (hits.scores >= np.float32(least["min_score"])).all()
    assert (hits.relevance >= np.float32(least["min_relevance"])).all()
    certain = (everything.scores >= least["min_score"] + TOLERANCE * (least["min_score"] > 0)) & (
        everything.relevance >= least["min_relevance"] + TOLERANCE * (least["min_relevance"] > 0)
    )
    certain[found] = False
    left_out = everything.scores[certain]
    if len(hits) < k:
        assert not left_out.size
    else:
        assert (left_out <= hits.scores[-1] + TOLERANCE).all()


@settings(max_examples=400, deadline=None)
@given(data=st.data(), pair=stores(), profile=profiles(), wanted=filters())
def test_answers_are_those_of_the_reference(
    data: st.DataObject, pair: Pair, profile: ranker.Profile, wanted: dict[str, Any]
) -> None:
    query = data.draw(queries(pair.real.dimension))
    k = data.draw(st.sampled_from([1, 2, 5, 40, ranker.RESULTS_MAX]))
    asked = {"query": query, "now": NOW, "profile": profile, "filter": ranker.Filter(**wanted)}
    asked["text"] = data.draw(st.sampled_from(QUESTIONS))
    least = {name: wanted.get(name, 0.0) for name in ("min_score", "min_relevance")}
    unbounded = ranker.Filter(**wanted | {"min_score": 0.0, "min_relevance": 0.0})
    everything = pair.reference.search(**asked | {"filter": unbounded}, k=ranker.RESULTS_MAX)

    hits = pair.real.search(**asked, k=k)
    assert_agrees(hits, everything, least, k)
    assert_same_bits(hits, pair.real.search(**asked, k=k, exact_float=True))
    every_slot = np.arange(60, dtype=np.uint32)
    assert_same_bits(hits, pair.real.score(**asked, k=k, slots=every_slot))
    pair.both("count", unbounded, NOW)

    some = np.array(data.draw(st.lists(st.integers(0, 40), max_size=10)), np.uint32)
    scored = pair.reference.score(**asked | {"filter": unbounded}, k=ranker.RESULTS_MAX, slots=some)
    assert_agrees(pair.real.score(**asked, k=k, slots=some), scored, least, k)


def proposal(table: Any, query: np.ndarray, n: int) -> tuple[np.ndarray, float]:
    """What an index without a fault says: the n nearest slots and the cosine of the last."""
    slots = table.live_slots()
    if not slots.size:
        return slots, -1.0
    unit = query.astype(np.float64) / np.linalg.norm(query.astype(np.float64))
    cosines = table.vectors_of(slots) @ unit.astype(np.float32)
    order = np.argsort(-cosines, kind="stable")[:n]
    return slots[order], float(cosines[order[-1]])


@settings(max_examples=300, deadline=None)
@given(data=st.data(), pair=stores(), profile=profiles(), wanted=filters())
def test_certified_answers_are_those_of_brute_force(
    data: st.DataObject, pair: Pair, profile: ranker.Profile, wanted: dict[str, Any]
) -> None:
    """Given an honest horizon, by the Rust and by the reference's plain form of the argument."""
    query = data.draw(queries(pair.real.dimension).filter(lambda one: one is not None))
    asked: dict[str, Any] = {
        "query": query,
        "now": NOW,
        "profile": profile,
        "filter": ranker.Filter(**wanted),
        "k": data.draw(st.sampled_from([1, 2, 5, 40])),
        "text": data.draw(st.sampled_from(QUESTIONS)),
    }
    for tables in (pair.real, pair.reference):
        near, horizon = proposal(tables, query, data.draw(st.sampled_from([1, 3, 10, 100])))
        lagging = np.array(data.draw(st.lists(st.integers(0, 40), max_size=4)), np.uint32)
        slots = np.concatenate((near, lagging))
        found = tables.certify(**asked, slots=slots, horizon=horizon, rows_max=100)
        everything = tables.search(**asked)
        for column in (
            "ids",
            "slots",
            "scores",
            "relevance",
            "recency",
            "importance",
            "cosine",
            "lexical",
        ):
            np.testing.assert_array_equal(getattr(found, column), getattr(everything, column))
        assert found.bound is None
        assert found.examined + np.unique(slots).size >= len(found)


@settings(max_examples=150, deadline=None)
@given(pair=stores(), profile=profiles(), wanted=filters(), below=st.sampled_from([0.1, 0.3, 2]))
def test_the_other_reads_are_those_of_the_reference(
    pair: Pair, profile: ranker.Profile, wanted: dict[str, Any], below: float
) -> None:
    ids = np.zeros((26, 16), np.uint8)
    ids[:, 0] = range(26)
    ids[:, 15] = 1
    slots = pair.both("slots", ids)
    live = slots[slots != ranker.SLOT_ABSENT]
    pair.both("ids_of", live)
    pair.both("contains", ids[3].tobytes())
    with_vector = pair.both("live_slots")
    np.testing.assert_allclose(
        pair.real.vectors_of(with_vector), pair.reference.vectors_of(with_vector), atol=TOLERANCE
    )
    pair.both(
        "vitality",
        now=NOW,
        profile=profile,
        filter=ranker.Filter(**wanted),
        below=np.full(6, below, np.float32),
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data(), k=st.sampled_from([1, 3, 10, 100]))
def test_where_numbers_are_exact_order_and_ties_are_too(data: st.DataObject, k: int) -> None:
    """Basis vectors, dyadic weights and ages: no rounding anywhere, so no tolerance either."""
    n = data.draw(st.integers(0, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    columns = batch(rng, list(range(n)), 20)
    columns["ids"] = rng.integers(1, 256, (n, 16), dtype=np.uint8)
    columns["vectors"] = np.eye(20, dtype=np.float32)[rng.integers(0, 3, n)] * np.float32(8)
    columns["valid_from"] = NOW - rng.integers(0, 3, n) * 1024
    pair = Pair(20)
    pair.both("upsert", **columns)
    asked: dict[str, Any] = {
        "query": np.eye(20, dtype=np.float32)[0],
        "now": NOW,
        "profile": ranker.Profile(
            w_relevance=0.5, w_recency=0.25, w_importance=0.25, half_life=[0.0] + [1024.0] * 5
        ),
        "filter": ranker.Filter(statuses=0, exclude_flags=0),
        "k": k,
    }
    assert_same_bits(pair.real.search(**asked), pair.reference.search(**asked))


def test_rows_are_the_arrays() -> None:
    table = ranker.Table(2)
    table.upsert(**one_row())
    for hits in (search(table, query=np.array([1.0, 0.5], np.float32)), search(table, k=1)):
        columns = [getattr(hits, name) for name in NUMBERS]
        assert hits.rows() == [(bytes([1] * 16), *(column.item() for column in columns))]
    table.clear()
    assert search(table).rows() == []


def test_all_equal_rows_are_ordered_by_id() -> None:
    rng = np.random.default_rng(5)
    n = 10_000  # more than one chunk
    columns = {name: np.repeat(value, n, axis=0) for name, value in one_row().items()}
    columns["ids"] = rng.permuted(
        np.arange(1, 16 * n + 1, dtype=np.uint32).view(np.uint8).reshape(-1, 16)[:n]
    )
    columns["label_offsets"] = np.zeros(n + 1, np.uint32)
    table = ranker.Table(2)
    table.upsert(**columns)
    hits = table.search(
        query=np.array([1.0, 1.0], np.float32),
        now=NOW,
        profile=ranker.Profile(),
        filter=ranker.Filter(),
        k=100,
    )
    expected = sorted(identity.tobytes() for identity in columns["ids"])[:100]
    assert [identity.tobytes() for identity in hits.ids] == expected


def test_a_large_table_is_pruned_and_still_exact() -> None:
    """The int8 pass must rule out most rows, or it is of no use; and lose none that counts."""
    rng = np.random.default_rng(11)
    table = ranker.Table(64)
    n = 12_000
    columns = batch(rng, [0] * n, 64)
    columns["ids"] = rng.integers(1, 256, (n, 16), dtype=np.uint8)
    columns["vectors"] = rng.standard_normal((n, 64), dtype=np.float32)
    columns["has_vector"][:] = True
    table.upsert(**columns)
    table.remove(columns["ids"][:1700])
    for profile in (ranker.Profile(), ranker.Profile(relevance_floor=0.4, recency_anchor=1)):
        for k in (1, 10, 500):
            asked: dict[str, Any] = {
                "query": rng.standard_normal(64, dtype=np.float32),
                "now": NOW,
                "profile": profile,
                "filter": ranker.Filter(),
                "k": k,
            }
            pruned = table.search(**asked)
            assert_same_bits(pruned, table.search(**asked, exact_float=True))
            assert len(pruned) == k
            assert pruned.rescored < pruned.admitted / 2


def test_an_attribute_decays_by_its_own_half_life() -> None:
    """Attribute 1 decays in a day, attribute 2 never, and of kind 5 the profile decides."""
    day = 86_400 * 10**6
    rows = [(1, 1), (1, 2), (1, 3), (5, 1)]
    cells = {name: np.repeat(value, len(rows), axis=0) for name, value in one_row().items()}
    cells["ids"] = np.arange(1, 16 * len(rows) + 1, dtype=np.uint8).reshape(-1, 16)
    cells["kind"] = np.array([kind for kind, _ in rows], np.uint8)
    cells["attribute"] = np.array([attribute for _, attribute in rows], np.uint64)
    cells["valid_from"][:] = NOW - 30 * day
    cells["label_offsets"] = np.zeros(len(rows) + 1, np.uint32)
    profile = ranker.Profile(
        attribute_half_life={1: float(day), 2: math.inf},
        attribute_kinds=ranker.mask_of(1, 2, 3, 4),
    )
    for table in (ranker.Table(2), ReferenceTable(2)):
        table.upsert(**cells)
        hits = table.search(query=None, now=NOW, profile=profile, filter=ranker.Filter(), k=4)
        found = {cells["ids"].tolist().index(one.tolist()): n for n, one in enumerate(hits.ids)}
        recency = [float(hits.recency[found[n]]) for n in range(len(rows))]
        assert recency == pytest.approx([2.0**-30, 1.0, 0.5, 1.0])


def test_golden_scores() -> None:
    golden = json.loads(GOLDEN.read_text())
    query = np.array([1.0, 0.0], np.float32)
    for case in golden["cases"]:
        profile = dict(golden["profiles"][case["profile"]])
        profile["half_life"] = [float(value) for value in profile["half_life"]]
        cosine, row = case["cosine"], case["row"]
        columns = one_row(
            has_vector=np.array([cosine is not None]),
            vectors=np.array([[cosine or 0.0, math.sqrt(1 - (cosine or 0.0) ** 2)]], np.float32),
            kind=np.array([row["kind"]], np.uint8),
            valid_from=np.array([row["valid_from"]]),
            last_used=np.array([row["last_used"]]),
            importance=np.array([row["importance"]], np.float32),
            flags=np.array([row["flags"]], np.uint16),
        )
        for table in (ranker.Table(2), ReferenceTable(2)):
            table.upsert(**columns)
            hits = table.search(
                query=query,
                now=golden["now"],
                profile=ranker.Profile(**profile),
                filter=ranker.Filter(),
                k=1,
            )
            got = {
                "relevance": hits.relevance[0],
                "recency": hits.recency[0],
                "score": hits.scores[0],
            }
            assert got == pytest.approx(case["expected"], abs=TOLERANCE), case


BAD_VALUES: list[tuple[str, Any]] = [
    ("importance", np.array([math.nan], np.float32)),
    ("importance", np.array([1.5], np.float32)),
    ("confidence", np.array([-0.1], np.float32)),
    ("confidence", np.array([math.inf], np.float32)),
    ("kind", np.array([0], np.uint8)),
    ("kind", np.array([6], np.uint8)),
    ("status", np.array([4], np.uint8)),
    ("flags", np.array([32], np.uint16)),
    ("vectors", np.array([[0.0, 0.0]], np.float32)),
    ("vectors", np.array([[math.nan, 1.0]], np.float32)),
    ("vectors", np.array([[math.inf, 1.0]], np.float32)),
    ("ids", np.zeros((1, 16), np.uint8)),
]


@pytest.mark.parametrize(("column", "value"), BAD_VALUES)
def test_one_bad_value_refuses_the_whole_batch(column: str, value: np.ndarray) -> None:
    good, bad = one_row(), one_row(**{column: value})
    columns = {name: np.concatenate((good[name], bad[name])) for name in good}
    columns["label_offsets"] = np.zeros(3, np.uint32)
    for table in (ranker.Table(2), ReferenceTable(2)):
        with pytest.raises(ValueError, match=rf"row 1, column {column}"):
            table.upsert(**columns)
        assert len(table) == 0


@pytest.mark.parametrize(
    ("column", "value", "error"),
    [
        ("ids", np.ones((1, 15), np.uint8), ValueError),
        ("vectors", np.ones((1, 3), np.float32), ValueError),
        ("created", np.zeros(2, np.int64), ValueError),
        ("label_offsets", np.array([0, 1], np.uint32), ValueError),
        ("label_offsets", np.array([1, 0], np.uint32), ValueError),
        ("vectors", np.ones((1, 4), np.float32)[:, ::2], ValueError),
        ("created", np.zeros(1, np.int32), TypeError),
        ("vectors", np.ones((1, 2), np.float64), TypeError),
    ],
)
def test_a_malformed_batch_is_refused_by_name(
    column: str, value: np.ndarray, error: type[Exception]
) -> None:
    table = ranker.Table(2)
    with pytest.raises(error) as refusal:
        table.upsert(**one_row(**{column: value}))
    notes = getattr(refusal.value, "__notes__", [])
    assert column in " ".join([str(refusal.value), *notes])
    assert len(table) == 0


def search(table: ranker.Table, **changes: Any) -> ranker.Hits:
    asked: dict[str, Any] = {
        "query": None,
        "now": NOW,
        "profile": ranker.Profile(),
        "filter": ranker.Filter(),
        "k": 10,
    }
    return table.search(**asked | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": 0}, "k: 0"),
        ({"k": 1001}, "k: 1001"),
        ({"query": np.zeros(2, np.float32)}, "query: must be finite"),
        ({"query": np.array([math.nan, 0], np.float32)}, "query: must be finite"),
        ({"query": np.ones(3, np.float32)}, "query: 3 values"),
        ({"query": np.ones(4, np.float32)[::2]}, "query: the array must be C-contiguous"),
    ],
)
def test_a_malformed_search_is_refused(changes: dict[str, Any], message: str) -> None:
    table = ranker.Table(2)
    table.upsert(**one_row())
    with pytest.raises(ValueError, match=message):
        search(table, **changes)


@pytest.mark.parametrize(
    "values",
    [
        {"w_recency": -0.1},
        {"w_relevance": math.nan},
        {"w_importance": math.inf},
        {"w_relevance": 0.0, "w_recency": 0.0, "w_importance": 0.0},
        {"half_life": [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]},
        {"half_life": [0.0, 1.0, 1.0, math.nan, 1.0, 1.0]},
        {"half_life": [1.0]},
        {"attribute_half_life": {1: 0.0}},
        {"attribute_half_life": {1: math.nan}},
        {"attribute_half_life": dict.fromkeys(range(65_537), 1.0)},
        {"attribute_kinds": 1},
        {"attribute_kinds": 64},
        {"recency_anchor": 2},
        {"relevance_floor": 1.0},
        {"relevance_floor": math.nan},
        {"consolidated_factor": 1.1},
        {"source_factor": [0.9] + [1.0] * 7},
        {"source_factor": [1.0] * 7 + [1.5]},
        {"source_factor": [1.0] * 7},
    ],
)
def test_a_bad_profile_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each is the only thing wrong
        ranker.Profile(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"kinds": 1},
        {"kinds": 64},
        {"statuses": 16},
        {"include_flags": 32},
        {"include_flags": 2},  # excluded by default: both at once admit nothing
        {"min_score": math.nan},
        {"min_relevance": 1.1},
        {"min_importance": -0.1},
        {"subjects": list(range(ranker.FILTER_VALUES_MAX + 1))},
    ],
)
def test_a_bad_filter_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        ranker.Filter(**values)


def test_defaults_are_the_documented_ones() -> None:
    profile = ranker.Profile()
    weights = (profile.w_relevance, profile.w_recency, profile.w_importance)
    assert weights == pytest.approx((0.60, 0.25, 0.15))
    assert profile.half_life == [0, 30 * DAY, 365 * DAY, math.inf, 30 * DAY, math.inf]
    assert (profile.attribute_half_life, profile.attribute_kinds) == ({}, 0b111110)
    assert (profile.recency_anchor, profile.relevance_floor) == (ranker.ANCHOR_VALID_FROM, 0)
    assert profile.consolidated_factor == 0.5
    wanted = ranker.Filter()
    assert wanted.statuses == ranker.mask_of(ranker.STATUS_STATED, ranker.STATUS_CONFIRMED)
    assert wanted.exclude_flags == ranker.FLAG_RETRACTED | ranker.FLAG_EXPIRED


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"query": None}, "query"), ({"horizon": math.nan}, "horizon"), ({"k": 0}, "k")],
)
def test_a_malformed_proposal_is_refused(changes: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {
        "query": np.array([1.0, 0.0], np.float32),
        "now": NOW,
        "profile": ranker.Profile(),
        "filter": ranker.Filter(),
        "slots": np.array([], np.uint32),
        "horizon": 0.5,
        "rows_max": 9,
        "k": 3,
    } | changes
    for table in (ranker.Table(2), ReferenceTable(2)):
        with pytest.raises(ValueError, match=f"^{message}: "):
            table.certify(**asked)


def test_free_slots_are_refused_where_an_answer_would_be_a_lie() -> None:
    table = ranker.Table(2)
    (slot,) = table.upsert(**one_row(has_vector=np.array([False])))
    with pytest.raises(ValueError, match=f"slot {slot}"):
        table.vectors_of(np.array([slot], np.uint32))
    table.remove(one_row()["ids"])
    for method in (table.ids_of, table.vectors_of):
        with pytest.raises(ValueError, match=f"slot {slot}"):
            method(np.array([slot], np.uint32))
    (again,) = table.upsert(**one_row())
    assert again == slot


def test_memory_grows_with_rows_and_goes_with_clear() -> None:
    table = ranker.Table(384)
    assert table.memory_bytes() == 0
    n = 10_000
    columns = batch(np.random.default_rng(3), [0] * n, 384)
    columns["ids"] = np.random.default_rng(4).integers(1, 256, (n, 16), dtype=np.uint8)
    columns["label_offsets"][:] = 0
    columns["label_hashes"] = np.zeros(0, np.uint64)
    table.upsert(**columns)
    vector_bytes = 384 * (4 + 1)
    assert n * vector_bytes < table.memory_bytes() < n * (vector_bytes + 160)
    table.clear()
    assert table.memory_bytes() == 0


def test_a_search_sees_a_batch_whole_or_not_at_all() -> None:
    """A writer replaces all rows again and again; each search must see one generation of them."""
    table = ranker.Table(2)
    n, generations = 500, 200
    columns = {name: np.repeat(value, n, axis=0) for name, value in one_row().items()}
    columns["ids"] = np.arange(1, 4 * n + 1, dtype=np.uint32).view(np.uint8).reshape(n, 16)
    columns["label_offsets"] = np.zeros(n + 1, np.uint32)
    table.upsert(**columns)
    query = np.array([1.0, 0.5], np.float32)
    done = threading.Event()
    torn: list[str] = []
    searches: list[int] = []

    def write() -> None:
        try:
            for generation in range(generations):
                importance = np.full(n, generation / generations, np.float32)
                table.upsert(**columns | {"importance": importance})
        finally:
            done.set()

    def read() -> None:
        count = 0
        last = False
        while not last:
            last = done.is_set()
            hits = search(table, query=query, k=1000)
            count += 1
            if len(hits) != n or len(set(hits.importance.tolist())) != 1:
                torn.append(f"{len(hits)} rows, importance {set(hits.importance.tolist())}")
        searches.append(count)

    threads = [threading.Thread(target=write), *(threading.Thread(target=read) for _ in range(2))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not torn
    assert len(searches) == 2
    assert search(table).importance[0] == np.float32((generations - 1) / generations)
