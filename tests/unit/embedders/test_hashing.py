# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""The hashing embedder: the same vector everywhere and for ever, and near spellings near."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.embedders import hashing
from pillion.embedders.errors import EmbedderMisconfigured

EMBEDDER = hashing.create({})

# The three largest components by size, made once: a change here orphans stored vectors, so it
# needs another VERSION.
GOLDEN = {
    "": [(0, 1.0), (1, 0.0), (2, 0.0)],
    "Mira moved to Lisbon.": [(131, 0.2697), (476, -0.2697), (556, -0.2697)],
    "天气很好": [(679, -0.4472), (131, -0.2236), (155, -0.2236)],
    "🎉🎉": [(406, 1.0), (0, 0.0), (1, 0.0)],
}


def largest(text: str) -> list[tuple[int, float]]:
    vector = EMBEDDER.embed_passages([text])[0]
    order = sorted(range(len(vector)), key=lambda i: (-abs(round(float(vector[i]), 5)), i))[:3]
    return [(i, round(float(vector[i]), 4)) for i in order]


@pytest.mark.parametrize("text", GOLDEN)
def test_golden(text: str) -> None:
    assert EMBEDDER.identity.version == "1"
    assert largest(text) == GOLDEN[text]


def test_another_process_makes_the_same_vector() -> None:
    code = (
        "from pillion.embedders import hashing;"
        "print(hashing.create({}).embed_passages(['Käsekuchen in 北京 🎉']).tobytes().hex())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert printed == {EMBEDDER.embed_passages(["Käsekuchen in 北京 🎉"]).tobytes().hex()}


def cosine(a: str, b: str) -> float:
    one, other = EMBEDDER.embed_passages([a, b])
    return float(one @ other)


@pytest.mark.parametrize(
    ("near", "far"),
    [
        (("the deployment failed", "deploy failure"), ("the deployment failed", "a red sofa")),
        (("Käsekuchen", "Käse"), ("Käsekuchen", "Sofa")),
        (("我们去北京", "北京的天气"), ("我们去北京", "猫睡觉")),
        (("CAFÉ ＡＢＣ", "cafe\u0301 abc"), ("CAFÉ ＡＢＣ", "tea xyz")),
    ],
)
def test_near_spellings_are_nearer(near: tuple[str, str], far: tuple[str, str]) -> None:
    assert cosine(*near) > cosine(*far) + 0.15


@given(st.text(max_size=200))
def test_every_text_has_a_unit_vector(text: str) -> None:
    vector = EMBEDDER.embed_queries([text])[0]
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_huge_text_is_bounded_work() -> None:
    a, b = EMBEDDER.embed_passages(["word " * 1_000_000, "word " * 10_000])
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_dimension_is_an_option_and_part_of_the_space() -> None:
    small = hashing.create({"dimension": 384})
    assert small.embed_passages(["a"]).shape == (1, 384)
    assert not small.identity.same_space(EMBEDDER.identity)
    with pytest.raises(EmbedderMisconfigured, match="dimension"):
        hashing.create({"dimension": 3})
