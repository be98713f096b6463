"""Values cross the wire unchanged, and what could only fail later is refused before it is sent."""

import dataclasses
import math
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from pillion_client import (
    AddMemory,
    CaptureEpisode,
    Episode,
    Filter,
    HistoryEntry,
    Memory,
    Patch,
    PutFact,
    Ranking,
    Source,
    Subject,
    TimeWindow,
    _from_wire,
    _requests,
    unconditional,
    version_equals,
)
from pillion_client import _to_wire as wire
from pillion_proto.memory.v1 import memory_service_pb2 as pb
from pillion_proto.memory.v1 import search_pb2, types_pb2

NAIVE = datetime(2026, 6, 1, 9)  # noqa: DTZ001  (what must be refused)
SAID = Source("user_statement")
INSTANTS = st.datetimes(
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-(2**53), 2**53),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
VALUES = st.one_of(
    st.text(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    INSTANTS,
    st.builds(Subject, st.text(), st.text()),
    st.none(),
    st.lists(JSON),
    st.dictionaries(st.text(), JSON),
)


@given(VALUES)
def test_a_value_comes_back_as_it_was(value):
    data = wire.value(value).SerializeToString()
    back = _from_wire.value(types_pb2.Value.FromString(data))
    assert back == value
    assert type(back) is type(value)


@given(INSTANTS)
def test_an_instant_comes_back_in_utc(moment):
    back = _from_wire.instant(wire.instant(moment))
    assert back == moment
    assert back.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "build",
    [
        lambda: wire.value(NAIVE),
        lambda: _requests.mutation(AddMemory("user:mira", "x", source=SAID, valid_from=NAIVE)),
        lambda: _requests.mutation(
            CaptureEpisode("user:mira", "x", source_kind="document", occurred_at=NAIVE)
        ),
        lambda: _requests.read_options({"as_of": NAIVE}),
        lambda: _requests.read_options({"known_at": NAIVE}),
        lambda: wire.time_window(TimeWindow(start=NAIVE)),
    ],
)
def test_a_time_without_an_offset_is_refused(build):
    with pytest.raises(ValueError, match="no offset"):
        build()


def test_what_is_no_time_and_no_value_says_what_to_give():
    with pytest.raises(TypeError, match=r"'2026-06-01' is no datetime: give for example datetime"):
        _requests.read_options({"as_of": "2026-06-01"})
    with pytest.raises(TypeError, match=r"cannot be a Source: .* model_dump"):
        wire.value(Source("document"))


@pytest.mark.parametrize(
    ("components", "why"),
    [
        ([1.0, math.nan], "component 1 is nan"),
        ([math.inf, 1.0], "component 0 is inf"),
        ([1.0, 1e300], "component 1 is inf as a float32"),
        ([0.0, 0.0], "all components are zero"),
        ([], "at least one component"),
        ([[1.0], [2.0]], "one dimension"),
    ],
)
def test_a_vector_that_points_nowhere_is_refused(components, why):
    with pytest.raises(ValueError, match=why):
        wire.vector(components)


def test_a_vector_travels_as_little_endian_float32():
    assert wire.vector([1.0, -2.5]) == np.array([1.0, -2.5], dtype="<f4").tobytes()
    assert wire.vector(np.array([1.0, -2.5], dtype=">f8")) == wire.vector([1.0, -2.5])
    back = _from_wire.vector(wire.vector([1.0, -2.5]))
    assert back.dtype == np.float32
    assert not back.flags.writeable
    assert back.tolist() == [1.0, -2.5]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**63, ValueError),
        (-(2**63) - 1, ValueError),
        (math.nan, ValueError),
        (math.inf, ValueError),
        ({"a": math.nan}, ValueError),
        ({"a": NAIVE}, TypeError),
        (b"bytes", TypeError),
        (1j, TypeError),
    ],
)
def test_a_value_without_a_place_in_the_contract_is_refused(value, error):
    with pytest.raises(error):
        wire.value(value)


@pytest.mark.parametrize("kind", list(wire._PREFIXES))
def test_an_enumeration_mirrors_the_contract(kind):
    members = wire.enum_members(kind)
    assert set(members.values()) == set(kind)
    for number, member in members.items():
        assert wire.enum_number(kind, member) == number
        assert wire.enum_number(kind, member.value) == number


def test_an_unknown_member_is_refused_and_the_known_ones_named():
    with pytest.raises(ValueError, match="episodic"):
        _requests.mutation(AddMemory("user:mira", "x", source=SAID, kind="epic"))


def test_a_number_from_a_newer_server_reads_as_unspecified():
    memory = _from_wire.memory(types_pb2.Memory(kind=4000, status=4000, source={"kind": 4000}))
    assert (memory.kind, memory.status, memory.source.kind) == ("unspecified",) * 3


def fields(model):
    return {field.name for field in dataclasses.fields(model)}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Memory, types_pb2.Memory),
        (Episode, types_pb2.Episode),
        (HistoryEntry, pb.HistoryEntry),
        (Filter, search_pb2.Filter),
        (Ranking, search_pb2.RankingProfile),
    ],
)
def test_a_model_has_the_fields_of_its_message(model, message):
    assert fields(model) == {field.name for field in message.DESCRIPTOR.fields}


def filled(message):
    """Return the message with every field set to something that is not its default."""
    for number, field in enumerate(message.DESCRIPTOR.fields, start=1):
        if field.message_type is not None:
            target = getattr(message, field.name)
            if field.is_repeated:
                continue
            if isinstance(target, Timestamp):
                target.seconds = 1_780_000_000 + number
            else:
                filled(target)
            continue
        value = {
            FieldDescriptor.CPPTYPE_STRING: b"\0\0\x80?"
            if field.type == FieldDescriptor.TYPE_BYTES
            else f"{field.name}",
            FieldDescriptor.CPPTYPE_BOOL: True,
            FieldDescriptor.CPPTYPE_ENUM: 1,
            FieldDescriptor.CPPTYPE_FLOAT: 0.25,
            FieldDescriptor.CPPTYPE_DOUBLE: 0.25,
        }.get(field.cpp_type, number)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    return message


@pytest.mark.parametrize(
    ("message", "convert"),
    [
        (types_pb2.Memory(value={"string_value": "x"}), _from_wire.memory),
        (types_pb2.Episode(), _from_wire.episode),
    ],
)
def test_every_field_is_converted_into_its_own_place(message, convert):
    filled(message)
    if message.DESCRIPTOR.name == "Memory":
        message.ClearField("value")  # a oneof: test_a_value_comes_back_as_it_was has each kind
    model = convert(message)
    for field in message.DESCRIPTOR.fields:
        got = getattr(model, field.name)
        if field.name == "value":
            assert got is None
        elif field.name == "vector":
            assert got.tolist() == [1.0]
        elif field.is_repeated:
            assert got == (field.name,)
        elif field.message_type is not None and field.message_type.name == "Timestamp":
            assert got == _from_wire.instant(getattr(message, field.name))
        elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            assert got == field.name
        elif field.enum_type is not None:
            assert got.name == field.enum_type.values_by_number[1].name[-len(got.name) :]
        elif field.message_type is None:
            assert got == getattr(message, field.name)
    absent = convert(type(message)())
    assert absent != model


def test_a_put_fact_fills_the_message():
    change = PutFact(
        "user:mira",
        "passport_deadline",
        "2026-06-30",
        source=Source("user_statement", "ep", "It is now", "user:mira"),
        precondition=version_equals(4),
        context="travel",
        valid_from=datetime(2026, 6, 3, 10, tzinfo=UTC),
        labels=("a",),
        importance=0.0,
        conflict_policy="correct",
    )
    put = _requests.mutation(change).put_fact
    assert put.precondition.version_equals == 4
    assert put.conflict_policy == pb.CONFLICT_POLICY_CORRECT
    assert put.fact.kind == types_pb2.MEMORY_KIND_SEMANTIC
    assert put.fact.value.string_value == "2026-06-30"
    assert put.fact.HasField("importance")
    assert not put.fact.HasField("confidence")
    assert (put.fact.source.episode_id, put.fact.source.quote) == ("ep", "It is now")


def test_a_patch_clears_what_is_none_and_refuses_what_cannot_change():
    patch = _requests.mutation(
        Patch("m", {"text": "new", "importance": None}, unconditional)
    ).patch_memory
    assert list(patch.update_mask.paths) == ["importance", "text"]
    assert not patch.patch.HasField("importance")
    for changes in ({}, {"subject": "user:b"}):
        with pytest.raises(ValueError, match="can change are"):
            _requests.mutation(Patch("m", changes, unconditional))


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_is_positive(version):
    with pytest.raises(ValueError, match="must_not_exist"):
        version_equals(version)


@pytest.mark.parametrize("text", ["mira", ":mira", "user:", ""])
def test_a_text_without_type_and_id_is_no_subject(text):
    with pytest.raises(ValueError, match="type:id"):
        Subject.parse(text)


def test_a_subject_reads_back_what_it_prints():
    assert Subject.parse("urn:a:b") == Subject("urn", "a:b")
    assert str(Subject.parse("user:mira")) == "user:mira"


@pytest.mark.parametrize(
    "chosen",
    [{}, {"ids": ["a"], "subject": "user:mira"}, {"contexts": ("work",)}],
)
def test_forget_wants_exactly_one_selector(chosen):
    with pytest.raises(ValueError, match=r"exactly one|name the subject"):
        _requests.forget_selector(**chosen)


def test_a_filter_and_single_conditions_exclude_each_other():
    assert _requests.selected(None, {"kinds": ["episodic"], "as_of": None}).kinds == [1]
    assert _requests.selected(None, {}) is None
    with pytest.raises(ValueError, match="not both"):
        _requests.selected(Filter(), {"kinds": ["episodic"]})
