"""docs/guarantees.md names tests; every one of them is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"\btest_\w+(?:\*\.py|\.py)?", PAGE)))
SOURCES = sorted((ROOT / "tests").rglob("test_*.py"))


def test_the_page_names_tests_for_every_promise():
    promises = re.findall(r"^\| (G\d+) \|.*\|(.*)\|$", PAGE, re.MULTILINE)
    assert [name for name, _ in promises] == [f"G{number}" for number in range(1, 11)]
    assert all("tests/" in held_by for _, held_by in promises)


@pytest.mark.parametrize("name", NAMED)
def test_a_named_test_exists(name):
    if name.endswith(".py"):
        assert any(source.match(name) for source in SOURCES)
    else:
        pattern = re.compile(rf"def {name}\(")
        assert any(pattern.search(source.read_text(encoding="utf-8")) for source in SOURCES)
