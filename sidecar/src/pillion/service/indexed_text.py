"""What of a memory is searched by its words. A load says the same in Rust (``rows.rs``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pillion.domain.memory import Memory

# In eighths, as the ranker counts: each word once.
PLAIN_WEIGHT: Final = 8


def indexed_text(memory: Memory) -> tuple[tuple[str, int], ...]:
    """Return the parts of a memory's indexed text, each with its weight in eighths."""
    return ((memory.text, PLAIN_WEIGHT),)
