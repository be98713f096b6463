"""What becomes of the recorded past, and of memos, when some records never were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec
from pillion_storage.keys import HASH_BYTES, INSTANT_BYTES, instant_of
from pillion_storage.scrubbing import Kept, KeptKind

from pillion.service.erasure_steps import left_of
from pillion.service.timeline_erasure import entry_without

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pillion.service.erasure_records import ErasurePlan

_MEMORY: Final = b"m"
_ENTRIES: Final = b"ti"
_SLEEP: Final = b"w"


class Scrubbing:
    """Changes what a partition keeps; see ``Scrubs.scrub``."""

    def __init__(self, plan: ErasurePlan, stuck: AbstractSet[bytes], revision: int) -> None:
        """Prepare.

        Args:
            plan: What goes and what changes.
            stuck: Keys that were deleted and live again: of these goes what was before.
            revision: After which nothing of what goes was current.
        """
        self._gone = frozenset(plan.gone)
        self._changed = frozenset(one.bytes for one in plan.changed)
        self._timelines = plan.timelines
        self._fingerprints = plan.fingerprints
        self._stuck = stuck
        self._revision = revision
        self.changed = 0
        self.dropped = 0

    def change(self, kept: Kept) -> bytes | None:
        """Return what becomes of something kept; None: it goes."""
        if kept.kind is not KeptKind.VALUE:
            return kept.data
        left = self._value(kept)
        if left is None and kept.live:
            return kept.data  # a live writer's, or what the proof will name
        self.changed += left is not None and left is not kept.data
        self.dropped += left is None
        return left

    def _value(self, kept: Kept) -> bytes | None:
        key = kept.key
        family = key[:1]
        if key in self._stuck and not kept.live and kept.version <= self._revision:
            return None
        if family == _MEMORY and key[1:] in self._changed:
            memory = codec.decode_memory(UUID(bytes=key[1:]), kept.data, kept.version)
            left = left_of(memory, self._gone)
            if left is None:
                return None
            return kept.data if left is memory else codec.encode_memory(left)
        timeline = key[1 : 1 + HASH_BYTES]
        if family in _ENTRIES and timeline in self._timelines:
            return entry_without(key, kept.data, self._gone)
        if family == _SLEEP and timeline in self._timelines and not kept.live:
            sleep = codec.decode_sleep(instant_of(key[-INSTANT_BYTES:]), kept.data)
            return None if sleep.fingerprint in self._fingerprints else kept.data
        return kept.data
