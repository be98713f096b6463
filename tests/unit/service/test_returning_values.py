"""What a registration with MUST_FIT vouches for: values that had ended do not come back unfit.

The registration itself looks only at values that hold then or later.
"""

from __future__ import annotations

import contextlib

import pytest
from pillion.domain.errors import Reason
from pillion.domain.mutations import ConflictPolicy
from pillion.domain.schemas import ExistingValues
from pillion_testing.fakes import DAY, START
from pillion_testing.service import patch, ram_service, restore, retract

STRING = {"type": "string", "maxLength": 5}
LONG = "far too long"


@pytest.fixture
def service():
    with contextlib.closing(ram_service()) as made:
        yield made


@pytest.fixture(params=list(ExistingValues))
def existing(request):
    return request.param


@contextlib.contextmanager
def refused_if_vouched(service, existing, row):
    """What a registration with MUST_FIT refuses, one with MAY_DIFFER lets through."""
    if existing is ExistingValues.MAY_DIFFER:
        yield
        return
    before = service.revision
    with service.refuses(Reason.SCHEMA_VIOLATION) as caught:
        yield
    assert caught.value.metadata["schema_version"] == "1"
    assert caught.value.metadata["existing_id"] == str(row.id)
    assert LONG not in str(caught.value)
    assert service.revision == before


def test_by_the_withdrawal_of_what_came_after(service, existing):
    old = service.put(LONG, valid_from=START - 9)
    new = service.put("short", valid_from=START - 5)
    assert service.register(STRING, existing=existing).misfits == 0
    with refused_if_vouched(service, existing, old):
        service.one(retract(new.id, valid_to=START - 5))
    holds = LONG if existing is ExistingValues.MAY_DIFFER else "short"
    assert service.value_at(START) == holds


def test_by_a_correction_that_ends_earlier(service, existing):
    old = service.put(LONG, valid_from=START - 9)
    service.put("short", valid_from=START - 5)
    service.register(STRING, existing=existing)
    policy = ConflictPolicy.CORRECT
    with refused_if_vouched(service, existing, old):
        service.put("brief", valid_from=START - 5, valid_to=START - 1, policy=policy)
    service.put("brief", valid_from=START - 5, policy=policy)
    assert service.value_at(START) == "brief"


@pytest.mark.parametrize("instant", [9, 5])
def test_by_a_restore(service, existing, instant):
    old = service.put(LONG, valid_from=START - 9)
    service.one(retract(old.id, valid_to=START - instant))
    service.register(STRING, existing=existing)
    with refused_if_vouched(service, existing, old):
        service.one(restore(old.id))


def test_by_a_later_expiry(service, existing):
    old = service.put(LONG, expires_at=service.clock.now + DAY)
    service.clock.advance(2 * DAY)
    service.register(STRING, existing=existing)
    with refused_if_vouched(service, existing, old):
        service.one(patch(old.id, expires_at=service.clock.now + DAY))


def test_the_past_may_differ(service):
    """A value that comes back for a time that is over is history."""
    old = service.put(LONG, valid_from=START - 9)
    middle = service.put("brief", valid_from=START - 7)
    service.put("short", valid_from=START - 5)
    service.register(STRING)
    service.one(retract(middle.id, valid_to=START - 7))
    assert service.value_at(START - 6) == LONG
    service.one(retract(old.id, valid_to=START - 8))
    service.one(restore(old.id))
    assert service.value_at(START - 6) == LONG


def test_a_later_registration_that_lets_values_differ_vouches_no_more(service):
    service.put(LONG, valid_from=START - 9)
    new = service.put("short", valid_from=START - 5)
    service.register(STRING)
    service.register({**STRING, "maxLength": 6}, existing=ExistingValues.MAY_DIFFER)
    service.one(retract(new.id, valid_to=START - 5))
    assert service.value_at(START) == LONG
