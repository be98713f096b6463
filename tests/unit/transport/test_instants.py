"""Instants and durations keep their microseconds across the wire, over their whole range."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.transport.convert import instants
from pillion_proto.memory.v1 import types_pb2


@given(st.integers(INSTANT_MIN_US, INSTANT_MAX_US))
def test_an_instant_comes_back_as_it_went(instant):
    stamp = instants.instant_to_wire(instant)
    assert instants.instant_from_wire(stamp, "f") == instant
    assert stamp.ToDatetime().microsecond == instant % 1_000_000


@given(st.integers(INSTANT_MIN_US, INSTANT_MAX_US), st.integers(0, 999))
def test_digits_finer_than_a_microsecond_are_dropped(instant, nanos):
    stamp = instants.instant_to_wire(instant)
    stamp.nanos += nanos
    assert instants.instant_from_wire(stamp, "f") == instant


@pytest.mark.parametrize(
    "stamp",
    [
        Timestamp(seconds=-62_135_596_801, nanos=999_999_999),
        Timestamp(seconds=253_402_300_800),
        Timestamp(seconds=2**63 - 1),
        Timestamp(seconds=-(2**63)),
        Timestamp(nanos=-1),
        Timestamp(nanos=1_000_000_000),
    ],
)
def test_an_instant_out_of_range_is_refused(stamp):
    with pytest.raises(PillionError) as caught:
        instants.instant_from_wire(stamp, "at")
    assert caught.value.reason is Reason.INVALID_FIELD
    assert caught.value.violations[0].field == "at"


def test_the_epoch_is_present_and_not_absent():
    memory = types_pb2.Memory()
    instants.put_instant(memory.valid_from, 0)
    assert memory.HasField("valid_from")
    assert instants.optional_instant(memory, "valid_from", "f") == 0
    assert instants.optional_instant(memory, "valid_to", "f") is None


@given(st.integers(0, 10**15))
def test_a_duration_comes_back_as_it_went(duration):
    assert instants.duration_from_wire(instants.duration_to_wire(duration), "f") == duration


@pytest.mark.parametrize(
    "duration",
    [
        Duration(seconds=1, nanos=-1),
        Duration(seconds=-1, nanos=1),
        Duration(seconds=315_576_000_001),
        Duration(nanos=1_000_000_000),
    ],
)
def test_a_duration_that_is_none_is_refused(duration):
    with pytest.raises(PillionError):
        instants.duration_from_wire(duration, "half_life")
