"""Words: terms as the golden file has them, and BM25 in Rust as in the reference, bit for bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pillion_ranker as ranker
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion_ranker.reference import ReferenceTable

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "tokens.json").read_text())
PROFILE = ranker.Profile()
WORDS = ["cat", "cats", "the", "Hund", "und", "viagem", "viagens", "não", "кошка", "кошки", "東京"]
EVERYTHING = ranker.Filter(statuses=0, exclude_flags=0)

sentences = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
parts = st.lists(st.tuples(sentences, st.sampled_from([8, 8, 4, 1, 64])), max_size=3)
# An id and its text; None: the row goes.
steps = st.lists(st.tuples(st.integers(1, 9), st.none() | parts), max_size=30)


def one_row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A batch of one plain row without a vector."""
    times = dict.fromkeys(("created", "last_used", "valid_from", "recorded"), np.array([0]))
    ends = dict.fromkeys(("valid_to", "expires"), np.array([ranker.TIME_OPEN]))
    shares = dict.fromkeys(("importance", "confidence"), np.array([0.5], np.float32))
    hashes = dict.fromkeys(("subject", "context", "attribute"), np.array([0], np.uint64))
    columns: dict[str, Any] = {
        "ids": ids_of(number),
        "kind": np.array([1], np.uint8),
        "status": np.array([2], np.uint8),
        "flags": np.array([0], np.uint16),
        "label_offsets": np.array([0, 0], np.uint32),
        "label_hashes": np.array([], np.uint64),
        "has_vector": np.array([False]),
        "vectors": np.zeros((1, 2), np.float32),
    }
    return times | ends | shares | hashes | columns | changes


def ids_of(*numbers: int) -> np.ndarray:
    return np.array([[number] * 16 for number in numbers], np.uint8)


@pytest.mark.parametrize("case", GOLDEN["texts"], ids=lambda case: case["text"][:20])
def test_terms_are_those_of_the_golden_file(case: dict) -> None:
    terms, languages = ranker.tokenize(case["text"])
    names = [name for n, name in enumerate(GOLDEN["languages"]) if languages >> n & 1]
    assert (" ".join(terms), names) == (case["terms"], case["languages"])


@pytest.mark.parametrize("case", GOLDEN["queries"], ids=lambda case: case["text"][:20])
def test_words_of_a_query_are_those_of_the_golden_file(case: dict) -> None:
    mask = sum(1 << GOLDEN["languages"].index(name) for name in case["languages"])
    words = ranker.query_words(case["text"], mask)
    assert [" ".join(terms) for terms in words] == case["words"]


@settings(max_examples=150, deadline=None)
@given(history=steps, query=sentences, k1=st.sampled_from([0.9, 0.0, 3.0]), b=st.floats(0, 1))
def test_bm25_is_that_of_the_texts_that_are_left(
    history: list, query: str, k1: float, b: float
) -> None:
    """After any order of inserts, updates and removals: frequencies, lengths and mean are exact."""
    real, reference, fresh = ranker.Table(2), ReferenceTable(2), ranker.Table(2)
    left: dict[int, list] = {}
    for number, text in history:
        for table in (real, reference):
            if text is None:
                table.remove(ids_of(number))
            else:
                if number not in left:
                    table.upsert(**one_row(number))
                table.set_texts(ids_of(number), [text])
        if text is None:
            left.pop(number, None)
        else:
            left[number] = text
    for number, text in left.items():
        fresh.upsert(**one_row(number))
        fresh.set_texts(ids_of(number), [text])
    profile = ranker.Profile(bm25_k1=k1, bm25_b=b)
    slots, scores, total = real.lexical_scores(query, profile)
    expected = reference.lexical_scores(query, profile)
    np.testing.assert_array_equal(slots, expected[0])
    np.testing.assert_array_equal(scores, expected[1])
    assert total == expected[2]
    assert (scores > 0).all()
    assert (scores <= total * (1 + 1e-6)).all()
    anew = fresh.lexical_scores(query, profile)
    assert sorted(scores.tolist()) == sorted(anew[1].tolist())
    assert total == anew[2]


def test_a_removed_row_leaves_nothing_to_find() -> None:
    table = ranker.Table(2)
    empty = table.memory_bytes()
    table.upsert(**one_row())
    rows_only = table.memory_bytes()
    table.set_texts(ids_of(1), [[("an unlisted word", 8)]])
    assert table.memory_bytes() > rows_only > empty
    assert table.lexical_scores("unlisted", PROFILE)[0].tolist() == [0]
    assert table.set_texts(ids_of(1, 7), [[], [("unlisted", 8)]]) == 1
    assert table.lexical_scores("unlisted", PROFILE)[0].size == 0
    table.set_texts(ids_of(1), [[("unlisted", 8)]])
    table.remove(ids_of(1))
    # Its slot is used again by a row that nobody gave a text.
    assert table.upsert(**one_row(2)).tolist() == [0]
    assert table.lexical_scores("unlisted", PROFILE)[0].size == 0


def test_an_update_of_columns_leaves_the_text() -> None:
    table = ranker.Table(2)
    table.upsert(**one_row())
    table.set_texts(ids_of(1), [[("cat", 8)]])
    table.upsert(**one_row(importance=np.array([1.0], np.float32)))
    assert table.lexical_scores("cats", PROFILE)[0].tolist() == [0]


def test_words_alone_order_rows_without_vectors() -> None:
    table = ranker.Table(2)
    texts = ["the passport expires in June", "the cat expires", "nothing of it"]
    for number, text in enumerate(texts, start=1):
        table.upsert(**one_row(number))
        table.set_texts(ids_of(number), [[(text, 8)]])
    asked = {"query": None, "now": 0, "profile": PROFILE, "filter": EVERYTHING, "k": 3}
    hits = table.search(**asked, text="When does my passport expire?")
    assert [row[0][0] for row in hits.rows()] == [1, 2, 3]
    assert hits.relevance[0] > hits.relevance[1] > hits.relevance[2] == 0
    assert hits.lexical[1] > hits.lexical[2] == 0
    assert hits.cosine.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ([[("a", 0)]], ValueError),
        ([[("a", 65)]], ValueError),
        ([[("a", 300)]], OverflowError),
        ([[("a" * (ranker.TEXT_BYTES_MAX + 1), 8)]], ValueError),
        ([[("a", 8)] * (ranker.TEXT_PARTS_MAX + 1)], ValueError),
        ([], ValueError),
    ],
)
def test_a_text_beyond_the_limits_changes_nothing(texts: list, error: type[Exception]) -> None:
    table = ranker.Table(2)
    table.upsert(**one_row())
    table.set_texts(ids_of(1), [[("cat", 8)]])
    with pytest.raises(error):
        table.set_texts(ids_of(1), texts)
    assert table.lexical_scores("cat", PROFILE)[0].tolist() == [0]


def test_a_query_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="text"):
        ranker.Table(2).lexical_scores("a" * (ranker.TEXT_BYTES_MAX + 1), PROFILE)
