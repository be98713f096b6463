"""Answers put together from kept encodings are the same bytes as those made as messages."""

from __future__ import annotations

import struct
from dataclasses import fields
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.memory import (
    FOREVER,
    EndReason,
    Memory,
    MemoryKind,
    MemoryStatus,
    Recurrence,
    Source,
    SourceKind,
)
from pillion.domain.queries import Exactness, Found, Hit, SearchAnswer, SearchPath
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion.transport.convert import answers
from pillion.transport.convert.encoded import (
    EncodedMemories,
    encode_get,
    encode_search,
    varint,
)
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import search_pb2

ids = st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number))
id_lists = st.lists(ids, max_size=3).map(tuple)
texts = st.text(max_size=300)
names = st.text(max_size=12)
name_lists = st.lists(names, max_size=3).map(tuple)
instants = st.integers(INSTANT_MIN_US, INSTANT_MAX_US)
ends = st.just(FOREVER) | instants
subjects = st.builds(Subject, names, names)
shares = st.floats(0, 1) | st.sampled_from([0.0, -0.0, 1.0, 1e-50])
revisions = st.integers(0, 2**63 - 1) | st.integers(0, 300)
values = st.none() | st.one_of(
    st.builds(Value, st.just(ValueKind.TEXT), texts),
    st.builds(Value, st.just(ValueKind.INTEGER), st.integers(-(2**63), 2**63 - 1)),
    st.builds(Value, st.just(ValueKind.DOUBLE), st.floats(allow_nan=False)),
    st.builds(Value, st.just(ValueKind.BOOLEAN), st.booleans()),
    st.builds(Value, st.just(ValueKind.INSTANT), instants),
    st.builds(Value, st.just(ValueKind.SUBJECT), subjects),
    st.builds(Value, st.just(ValueKind.JSON), st.just('{"a":1}')),
)
MADE = {
    "id": ids,
    "subject": subjects,
    "kind": st.sampled_from(MemoryKind),
    "text": texts,
    "source": st.builds(Source, st.sampled_from(SourceKind), st.none() | ids, names, names),
    "valid_from": instants,
    "created_at": instants,
    "updated_at": instants,
    "context": names,
    "attribute": names,
    "value": values,
    "importance": shares,
    "confidence": shares,
    "status": st.sampled_from(MemoryStatus),
    "pinned": st.booleans(),
    "pii_labels": name_lists,
    "labels": name_lists,
    "derived_from": id_lists,
    "consolidated_into": st.none() | ids,
    "valid_to": ends,
    "end_reason": st.sampled_from(EndReason),
    "superseded_by": st.none() | ids,
    "supersedes": st.none() | ids,
    "last_used_at": st.just(0) | instants,
    "use_count": st.integers(0, 2**31 - 1),
    "recurrence": st.builds(Recurrence, st.integers(0, 9), id_lists),
    "confirmation": st.none()
    | st.builds(Source, st.sampled_from(SourceKind), st.none() | ids, names, texts),
    "expires_at": ends,
    "expired_at": ends,
    "retracted_at": ends,
    "closed_at": ends,
    "retention_class": names,
    "schema_version": st.integers(0, 9),
    "in_set": st.booleans(),
    "session_id": names,
    "vector_pending": st.booleans(),
    "version": revisions,
    "fact_version": revisions,
}
memories = st.fixed_dictionaries(MADE).map(lambda made: Memory(**made))
partitions = st.builds(Partition, names, names)
hits = st.builds(
    Hit,
    memories,
    shares,
    shares,
    shares,
    shares,
    st.none() | st.floats(-1, 1, width=32),
    older=st.booleans(),
    folded=id_lists,
    lexical=st.none() | st.floats(0, 64, width=32),
)
search_answers = st.builds(
    SearchAnswer,
    hits=st.lists(hits, max_size=4).map(tuple),
    revision=revisions,
    exactness=st.sampled_from(Exactness),
    path=st.sampled_from(SearchPath),
    admitted=revisions,
    vectors_pending=revisions,
    bound=st.none() | shares,
)


def test_the_shapes_that_are_written_by_hand_are_known_here():
    """Whoever adds a field meets this test, and thinks of `encoded` and of the values above."""
    assert set(MADE) == {one.name for one in fields(Memory)}
    assert Hit._fields == (
        "memory", "score", "relevance", "recency", "importance", "cosine", "vector",
        "path", "older", "folded", "lexical",
    )  # fmt: skip
    assert {one.name for one in fields(SearchAnswer)} == {
        "hits", "revision", "exactness", "path", "admitted", "vectors_pending", "bound", "plan",
        "trace",  # an answer with one is never written by hand
    }  # fmt: skip
    assert {one.name for one in fields(Found)} == {"memory", "episode", "vector"}
    for message, names_by_number in (
        (wire.GetResponse, {1: "record", 2: "revision"}),
        (wire.Record, {1: "memory", 2: "episode"}),
        (
            search_pb2.SearchHit,
            {1: "memory", 2: "score", 3: "parts", 4: "older_statement", 5: "folded_ids", 6: "path"},
        ),
    ):
        assert {one.number: one.name for one in message.DESCRIPTOR.fields} == names_by_number


@given(memories, partitions, revisions)
def test_a_get_is_the_same_bytes(memory, here, revision):
    plain = answers.get_to_wire(Found(memory=memory), revision, here).SerializeToString()
    encoded = EncodedMemories()
    for _ in range(2):  # made, and made of what is kept
        assert encode_get(memory, revision, here, encoded) == plain


@given(search_answers, partitions, partitions, st.booleans())
def test_a_search_is_the_same_bytes(answer, here, there, parts):
    encoded = EncodedMemories(entries_max=2)
    for place in (here, there, here):
        plain = answers.search_to_wire(answer, place, include_parts=parts).SerializeToString()
        assert encode_search(answer, place, encoded, include_parts=parts) == plain


@given(st.integers(0, 2**64 - 1))
def test_a_number_is_written_as_protobuf_does(number):
    if number < 2**63:
        assert wire.GetResponse(revision=number).SerializeToString() == (
            b"\x10" + varint(number) if number else b""
        )
    read = sum((byte & 0x7F) << (7 * at) for at, byte in enumerate(varint(number)))
    assert read == number


@pytest.mark.parametrize("score", [0.0, -0.0, 1e-50, 0.1, 1.0])
def test_a_score_of_nothing_is_left_out_and_every_other_is_there(score):
    message = search_pb2.SearchHit(score=score)
    present = struct.pack("<f", score) != struct.pack("<f", 0.0)
    assert bool(message.SerializeToString()) == present


def test_what_is_kept_is_bounded_and_never_anothers():
    encoded = EncodedMemories(entries_max=2)
    here, there = Partition("a", "b"), Partition("a", "c")
    for number in range(20):
        # Each is let go of at once, so that its place in memory is taken by the next.
        memory = Memory(
            id=UUID(int=number),
            subject=Subject("user", "mira"),
            kind=MemoryKind.EPISODIC,
            text=f"text {number}",
            source=Source(SourceKind.DOCUMENT),
            valid_from=0,
            created_at=0,
            updated_at=0,
        )
        for place in (here, there):
            answer = wire.GetResponse.FromString(encode_get(memory, 1, place, encoded))
            assert answer.record.memory.text == f"text {number}"
            assert answer.record.memory.partition.tenant == place.tenant
        assert len(encoded._kept) <= 2
