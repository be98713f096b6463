"""A partition at its newest commit, with its values opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.api import Entry, Row
from pillion_storage.sealed.envelope import VALUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.api import HeadView


class SealedView:
    """See ``pillion_storage.api.HeadView``. A value whose key was destroyed is passed over."""

    __slots__ = ("_open", "_tag", "_view", "revision")

    def __init__(
        self,
        view: HeadView,
        tag: bytes,
        opened: Callable[[bytes, bytes, bytes, bytes, int], bytes | None],
    ) -> None:
        self._view = view
        self._tag = tag
        self._open = opened
        self.revision = view.revision

    def get(self, key: bytes) -> Entry | None:
        """See ``HeadView.get``."""
        entry = self._view.get(key)
        if entry is None:
            return None
        value = self._open(self._tag, VALUE, key, entry.value, entry.version)
        return None if value is None else Entry(entry.version, value)

    def last(self, start: bytes, end: bytes) -> Row | None:
        """See ``HeadView.last``."""
        while (row := self._view.last(start, end)) is not None:
            value = self._open(self._tag, VALUE, row.key, row.value, row.version)
            if value is not None:
                return Row(row.key, row.version, value)
            end = row.key
        return None
