"""What the checks of the kit share: a store in a scratch directory, a clock to move, helpers."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pillion_storage.api import (
    KEY_SPACE_END,
    Batch,
    Committed,
    Partition,
    Row,
    Store,
    StoreError,
    StoreSettings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class FakeClock:
    """A clock that stands still until it is moved. Microseconds."""

    def __init__(self, now_us: int = 1_000_000) -> None:
        self.now_us = now_us

    def __call__(self) -> int:
        """Give the time."""
        return self.now_us


class ConformanceBase:
    """Opens a fresh store for each check. Subclasses say how, in ``open``."""

    partition = Partition("test", "acme")
    other = Partition("test", "other")

    def open(self, settings: StoreSettings) -> Store:
        """Open a store of the kind to check."""
        raise NotImplementedError

    def setup_method(self) -> None:
        """Run before each check."""
        self.scratch = Path(tempfile.mkdtemp(prefix="pillion-conformance-"))
        self.clock = FakeClock()
        self.settings = StoreSettings(
            directory=self.scratch / "store",
            size_bytes_initial=1 << 20,
            size_bytes_max=256 << 20,
            clock_us=self.clock,
        )
        self.store = self.open(self.settings)

    def teardown_method(self) -> None:
        """Run after each check."""
        self.store.close()
        shutil.rmtree(self.scratch)

    def reopen(self, **changes: object) -> None:
        """Close the store and open it again, perhaps with other settings."""
        self.store.close()
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        self.store = self.open(self.settings)

    def put(self, key: bytes, value: bytes) -> int:
        """Commit one put; return its revision."""
        return self.done(Batch(puts={key: value}))

    def delete(self, key: bytes) -> int:
        """Commit one delete; return its revision."""
        return self.done(Batch(deletes=[key]))

    def done(self, batch: Batch) -> int:
        """Commit a batch that must succeed; return its revision."""
        outcome = self.store.commit(self.partition, batch)
        assert isinstance(outcome, Committed), outcome
        return outcome.revision

    def value(self, key: bytes, *, at: int | None = None) -> bytes | None:
        """Read one value."""
        entry = self.store.read(self.partition, [key], at=at).entries.get(key)
        return None if entry is None else entry.value

    def rows(self, *, at: int | None = None, limit: int = 3, reverse: bool = False) -> list[Row]:
        """Scan the whole partition, in pages."""
        start, end = b"", KEY_SPACE_END
        found: list[Row] = []
        while True:
            page = self.store.scan(self.partition, start, end, limit=limit, reverse=reverse, at=at)
            keys = [row.key for row in (*found[-1:], *page.rows)]
            assert keys == sorted(set(keys), reverse=reverse), "rows are out of order"
            found += page.rows
            at = page.revision
            if page.next_start is None:
                return found
            assert page.rows, "a page that is not the last is empty"
            start, end = (start, page.next_start) if reverse else (page.next_start, end)


@contextmanager
def raises(kind: type[StoreError]) -> Iterator[list[StoreError]]:
    """Check that the block raises ``kind``; the list holds the error afterwards."""
    caught: list[StoreError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def failures(conformance: type[ConformanceBase], *, first_only: bool = False) -> dict[str, str]:
    """Run the checks of a class without a test runner; return what failed, and how."""
    failed = {}
    for name in sorted(dir(conformance)):
        if not name.startswith("test_"):
            continue
        instance = conformance()
        instance.setup_method()
        try:
            getattr(instance, name)()
        except Exception:  # noqa: BLE001 -- whatever a check raises is its failure
            failed[name] = traceback.format_exc()
        finally:
            instance.teardown_method()
        if failed and first_only:
            break
    return failed
