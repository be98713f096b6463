"""The token counters: the rules of the port, the estimate's arithmetic, exact ones by a file."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.bootstrap import _token_counters
from pillion.config import Settings, SettingsError
from pillion.token_counters import estimate, lengths, tiktoken_file
from pillion.token_counters.errors import CounterMisconfiguredError, CounterNotConfiguredError
from pillion.token_counters.registry import create_counters
from pillion.token_counters.testing import CHECKS, ConformanceError

FACTORIES = {
    "bytes": lengths.create_bytes,
    "characters": lengths.create_characters,
    "estimate": estimate.create,
}


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(name, check):
    check(FACTORIES[name]({}))


class Faulty:
    """Counts words, with one fault."""

    def __init__(self, fault):
        self.fault = fault
        self.calls = 0

    @property
    def estimates(self):
        return "yes" if self.fault == "says" else True

    def count(self, text):  # noqa: PLR0911  (one for each fault)
        self.calls += 1
        words = len(text.split())
        match self.fault:
            case "negative":
                return words - 1 if not text.strip() and text else words
            case "float":
                return float(words)
            case "forgetful":
                return words + self.calls % 2
            case "something":
                return words + 1
            case "square":
                return words * words
            case "shrinking":
                return words % 7
        return words


def check_all(counter):
    for check in CHECKS:
        check(counter)


@pytest.mark.parametrize(
    "fault", ["says", "negative", "float", "forgetful", "something", "square", "shrinking"]
)
def test_each_fault_is_found(fault):
    with pytest.raises(ConformanceError):
        check_all(Faulty(fault))
    check_all(Faulty(None))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("tea", 1),
        ("seventh", 1),
        ("internationalisation", 4),  # 20 letters: 1 + 13 / 5, rounded up
        ("2026-07-15", 10),  # every digit and every sign
        ("Переехала", 3),  # 9 / 3.4
        ("café", 2),  # 4 / 3.6
        ("天气很好", 4),  # 4 x 0.85
        ("🎉!", 2),
    ],
)
def test_the_estimate(text, tokens):
    assert estimate.create({}).count(text) == tokens


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
def test_the_short_way_for_ascii_is_the_rule(text):
    """An umlaut at the end takes the long way, and costs one token more."""
    counter = estimate.create({})
    assert counter.count(text) == counter.count(text + " \u00fc") - 1


def test_the_default_is_always_there():
    made = create_counters({}, {})
    assert list(made) == ["estimate"]
    assert made["estimate"].estimates


def test_one_that_needs_options_is_left_out_until_it_gets_them():
    factories = FACTORIES | {"tiktoken": tiktoken_file.create}
    made = create_counters(factories, {})
    assert sorted(made) == ["bytes", "characters", "estimate"]
    with pytest.raises(CounterMisconfiguredError, match=r"^tiktoken: it needs the option file"):
        create_counters(factories, {"tiktoken": {}})


def test_what_cannot_be_is_refused_at_start_up():
    with pytest.raises(CounterMisconfiguredError, match="none is called 'nosuch'"):
        create_counters(FACTORIES, {"nosuch": {}})
    with pytest.raises(CounterMisconfiguredError, match="it makes no counter"):
        create_counters({"odd": lambda _: object()}, {})


def test_a_wrong_setting_is_named_at_start_up():
    with pytest.raises(SettingsError, match=r"^token_counters: none is called 'nosuch'"):
        _token_counters(Settings(token_counters={"nosuch": {"file": "x"}}))
    assert "estimate" in _token_counters(Settings())


def vocabulary(path, lines):
    path.write_bytes(b"".join(lines))
    return {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def line(token, rank):
    return base64.b64encode(token) + b" " + str(rank).encode() + b"\n"


BYTES = [line(bytes([value]), value) for value in range(256)]


def test_tiktoken_says_what_is_wrong_and_quotes_nothing(tmp_path):
    path = tmp_path / "secret-name"
    with pytest.raises(CounterNotConfiguredError):
        tiktoken_file.create({})
    wrong = [
        ({"file": str(tmp_path / "secret-name-of-none")}, "cannot be read"),
        ({"files": "x"}, r"wrong options: file, files"),
        (vocabulary(path, BYTES) | {"sha256": "0" * 64}, "its hash"),
        ({"file": str(path)}, "its hash"),  # by default only o200k_base will do
        (vocabulary(tmp_path / "a", [b"not base64 at all\n"]), "not in tiktoken's format"),
        (vocabulary(tmp_path / "b", BYTES[1:]), "lacks single bytes"),
        (vocabulary(tmp_path / "c", [*BYTES, line(b"ab", 7)]), "gives a rank twice"),
    ]
    for options, message in wrong:
        with pytest.raises(CounterMisconfiguredError, match=message) as caught:
            tiktoken_file.create(options)
        assert "secret-name" not in str(caught.value)


def test_a_vocabulary_is_read(tmp_path):
    options = vocabulary(tmp_path / "v", [*BYTES, line(b"ab", 256)])
    ranks = tiktoken_file.read_vocabulary(tiktoken_file.TiktokenOptions(**options))
    assert len(ranks) == 257
    assert ranks[b"ab"] == 256


def test_tiktoken_counts_by_the_file(tmp_path):
    pytest.importorskip("tiktoken", reason="the extra 'tiktoken' is not installed")
    options = vocabulary(tmp_path / "v", [*BYTES, line(b"ab", 256), line(b" ab", 257)])
    counter = tiktoken_file.create(options)
    assert not counter.estimates
    counts = [counter.count(text) for text in ("", "ab", "ab ab", "abc", "<|endoftext|>")]
    assert counts == [0, 1, 2, 2, 13]
    check_all(counter)
