"""Whether what is said of a statement's origin can be so. Pure: values in, an error or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError
from pillion.domain.memory import MemoryStatus, SourceKind

if TYPE_CHECKING:
    from pillion.domain.memory import Episode, Source

_OF_A_USER: Final = frozenset({SourceKind.USER_STATEMENT, SourceKind.USER_CONFIRMATION})


def check_status(field: str, source: Source, status: MemoryStatus | None) -> None:
    """Refuse an inference that is to be stored as something that was said.

    Args:
        field: The path of the memory in the request.
        source: Who states it.
        status: What the caller wants it to be; None: the server's choice.

    Raises:
        PillionError: INVALID_FIELD.
    """
    if source.kind is SourceKind.INFERENCE and status not in (None, MemoryStatus.CANDIDATE):
        raise PillionError.of_field(
            f"{field}.status",
            "an INFERENCE is a CANDIDATE until a user confirms it or enough episodes repeat it",
        )


def check_origin(source: Source, episode: Episode) -> None:
    """Refuse a source whose episode contradicts it. Fields are named from the source's memory on.

    Comparison is exact, character by character: neither case nor Unicode form is folded.

    Raises:
        PillionError: INVALID_FIELD: the quote is not in the episode, or a user is said to have
            stated what the episode says a model inferred.
    """
    if source.quote not in episode.content:
        raise PillionError.of_field(
            "source.quote", f"is not in the episode {episode.id}: copy the exact words"
        )
    if source.kind in _OF_A_USER and episode.source_kind is SourceKind.INFERENCE:
        raise PillionError.of_field(
            "source.kind",
            f"the episode {episode.id} is an INFERENCE: what a model said is no user's statement",
        )
