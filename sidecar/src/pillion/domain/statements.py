"""What a summarizer gives back: sentences, each with the sources that say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtractedStatement:
    """One statement and the positions, in the list that was summarized, of the texts that state it.

    `source_indexes` is ascending, without repeats and never empty: a statement without a source
    has no provenance and must not be stored.
    """

    text: str
    source_indexes: tuple[int, ...]
