"""The public conformance kit: what every store must do, whoever wrote it.

With pytest, subclass and collect::

    class TestMyStore(StoreConformance):
        def open(self, settings):
            return my_store.open_store(settings)

Without it, ``failures(TestMyStore)`` runs every check and returns what failed. Declared features
must work and undeclared ones must refuse; neither way is skipped.
"""

from pillion_storage.testing.base import ConformanceBase, FakeClock, failures
from pillion_storage.testing.bounds import BoundsConformance
from pillion_storage.testing.commits import CommitConformance
from pillion_storage.testing.concurrency import ConcurrencyConformance
from pillion_storage.testing.feed import FeedConformance
from pillion_storage.testing.forgetting import ForgettingConformance
from pillion_storage.testing.history import HistoryConformance
from pillion_storage.testing.lifecycle import LifecycleConformance
from pillion_storage.testing.scans import ScanConformance
from pillion_storage.testing.tokens import TokenConformance
from pillion_storage.testing.views import ViewConformance


class StoreConformance(
    CommitConformance,
    ScanConformance,
    ViewConformance,
    HistoryConformance,
    FeedConformance,
    TokenConformance,
    ForgettingConformance,
    BoundsConformance,
    ConcurrencyConformance,
    LifecycleConformance,
):
    """All of the kit. Override ``open``."""


__all__ = ["ConformanceBase", "FakeClock", "StoreConformance", "failures"]
