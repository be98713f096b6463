"""A service over a fresh RAM store for each test."""

from __future__ import annotations

import pytest
from pillion_testing.service import ram_service


@pytest.fixture
def service():
    made = ram_service()
    yield made
    made.close()
