"""Counters of lengths: for budgets in characters or bytes instead of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class CharacterCounter:
    """Counts Unicode code points."""

    estimates: Final = False

    def count(self, text: str) -> int:
        """Return the code points of a text."""
        return len(text)


class ByteCounter:
    """Counts bytes of UTF-8."""

    estimates: Final = False

    def count(self, text: str) -> int:
        """Return the bytes of a text."""
        return len(text.encode("utf-8", "surrogatepass"))


def create_characters(options: Mapping[str, object]) -> CharacterCounter:
    """Return the counter of characters; it has no options."""
    del options
    return CharacterCounter()


def create_bytes(options: Mapping[str, object]) -> ByteCounter:
    """Return the counter of bytes; it has no options."""
    del options
    return ByteCounter()
