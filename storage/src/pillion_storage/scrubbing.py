"""What an erasure asks of a store beside ``Store``: to change what it keeps of the past.

Everything else that writes makes new versions. Scrubbing changes kept bytes where they stand, so
that what was erased was never in them: versions, revisions and the feed's keys stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pillion.domain.scope import Partition


class KeptKind(Enum):
    """What something kept is."""

    VALUE = "value"
    MEMO = "memo"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that a partition keeps: never empty.

    Attributes:
        kind: What it is.
        key: The value's key; the memo's token id; empty for a note.
        version: The revision that wrote it.
        data: Its bytes.
        live: Whether it is a value that is current.
    """

    kind: KeptKind
    key: bytes
    version: int
    data: bytes
    live: bool


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """How much was changed in its place, and how much went."""

    changed: int = 0
    dropped: int = 0

    def __add__(self, other: ScrubReport) -> ScrubReport:
        """Return the sum of two."""
        return ScrubReport(self.changed + other.changed, self.dropped + other.dropped)


@runtime_checkable
class Scrubs(Protocol):
    """A store that can change what it keeps, in its place."""

    def scrub(
        self,
        partition: Partition,
        change: Callable[[Kept], bytes | None],
        *,
        key_ids: Collection[bytes] = (),
    ) -> ScrubReport:
        """Show everything that a partition keeps to ``change``, and keep what that returns.

        The same bytes: it stays as it is. Others: they take its place, under the same version.
        None: an ended version is gone, as if its key had been absent meanwhile, and with it the
        memos of the commits that wrote and ended it; a memo is dropped, a note is empty.

        Goes through current values, ended ones, memos and notes in steps, other commits in
        between: what those put is shown or is newer than the call; nothing that was kept when it
        began is passed over. ``change`` is called on a thread of the store and must be quick. A
        repeated call finds what the last one left; after an unclean stop call it again.

        Args:
            partition: Where.
            change: What becomes of each. Must not return None for a live value.
            key_ids: A store that seals shows only what is sealed with these keys (and what is in
                plain), and seals it with their owners' keys of today, changed or not. Others
                ignore it.

        Raises:
            ValueError: a live value was to go.
            StoreFull: no space; what was done by then stays done.
            Corrupt: something that is shown does not open or match its checksum.
        """
        ...


@runtime_checkable
class Compacts(Protocol):
    """A store whose files keep bytes of what was deleted until it is told otherwise."""

    def compact(self) -> int:
        """Write the file anew with what is kept and nothing else, and overwrite the old one.

        Writers wait meanwhile; readers for the moment in which the files change places. After a
        stop at any point there is the old file or the new one, whole.

        Returns:
            Bytes of the new file.

        Raises:
            StoreFull: no space for a second file; nothing changed.
            StoreFailed: the disk failed.
        """
        ...

    def find_bytes(self, pieces: Collection[bytes]) -> list[bytes]:
        """Return those of some pieces (8 bytes and more each) that are anywhere in the file."""
        ...
