"""The checker, built once; without it a test is skipped, or fails where it must be there."""

from __future__ import annotations

import pytest
from pillion_histories import checking


@pytest.fixture(scope="session")
def checker(tmp_path_factory):
    try:
        return checking.build(tmp_path_factory.mktemp("checker"))
    except checking.NoCheckerError as missing:
        if checking.required():
            pytest.fail(f"{checking.REQUIRED_VARIABLE} is set, and {missing}")
        pytest.skip(str(missing))
