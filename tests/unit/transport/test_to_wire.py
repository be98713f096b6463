"""What goes to the wire: no field is forgotten, and absent stays absent."""

from uuid import UUID

import pytest
from pillion.domain import commands, memory, mutations, queries, schemas
from pillion.domain.errors import PillionError
from pillion.domain.memory import Episode, Recurrence, Source, SourceKind
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion.transport.convert import answers, forgetting, records, scalars
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import schema_service_pb2, search_pb2, types_pb2

HERE = Partition("production", "acme")
OTHER = UUID("01890000-0000-7000-8000-000000000002")
# Of the wire's fields, those that nothing in the domain fills yet.
NOT_YET = {"legal_hold"}


def a_memory(**changes):
    return memory.Memory(
        **{
            "id": UUID("01890000-0000-7000-8000-000000000001"),
            "subject": Subject("user", "mira"),
            "kind": memory.MemoryKind.SEMANTIC,
            "text": "a text of ordinary length that a person might have said in a talk",
            "source": Source(SourceKind.USER_STATEMENT, OTHER),
            "valid_from": 1_700_000_000_000_001,
            "created_at": 2,
            "updated_at": 3,
            "version": 7,
        }
        | changes
    )


def a_full_memory():
    return a_memory(
        context="work",
        attribute="deadline",
        value=Value(ValueKind.TEXT, "soon"),
        source=Source(SourceKind.TOOL_RESULT, OTHER, "q", "a"),
        pinned=True,
        pii_labels=("email",),
        labels=("a", "b"),
        derived_from=(OTHER,),
        consolidated_into=OTHER,
        valid_to=4,
        superseded_by=OTHER,
        supersedes=OTHER,
        last_used_at=5,
        use_count=6,
        recurrence=Recurrence(2, (OTHER,)),
        confirmation=Source(SourceKind.USER_CONFIRMATION, OTHER, "yes", "mira"),
        expires_at=8,
        retracted_at=9,
        closed_at=10,
        retention_class="short",
        schema_version=11,
        session_id="s",
        vector_pending=True,
        fact_version=12,
    )


def present(message):
    return {field.name for field, _ in message.ListFields()}


def test_no_field_of_a_memory_is_forgotten():
    target = types_pb2.Memory()
    records.fill_memory(target, a_full_memory(), HERE, b"vector")
    missing = set(types_pb2.Memory.DESCRIPTOR.fields_by_name) - present(target) - NOT_YET
    assert missing == set()
    assert (target.valid_to.nanos, target.expires_at.nanos) == (4000, 8000)
    told = target.confirmation
    assert (told.kind, told.episode_id, told.quote, told.author) == (2, str(OTHER), "yes", "mira")
    assert target.partition == types_pb2.Partition(namespace="production", tenant="acme")
    assert target.recorded_at == target.updated_at


def test_what_a_memory_does_not_have_is_absent():
    target = types_pb2.Memory()
    records.fill_memory(target, a_memory(), HERE)
    assert present(target) == {
        "id", "partition", "subject", "kind", "text", "importance", "confidence", "status",
        "source", "valid_from", "created_at", "updated_at", "recorded_at", "version",
    }  # fmt: skip


def test_the_end_of_recall_is_the_earlier_of_expiry_and_forget():
    target = types_pb2.Memory()
    records.fill_memory(target, a_memory(expires_at=9, expired_at=4), HERE)
    assert target.expires_at.nanos == 4000


def test_no_field_of_an_episode_is_forgotten():
    episode = Episode(
        id=OTHER,
        subject=Subject("user", "mira"),
        content="c",
        source_kind=SourceKind.DOCUMENT,
        occurred_at=1,
        recorded_at=2,
        context="work",
        author="a",
        session_id="s",
        external_ref="e",
        labels=("l",),
        retention_class="r",
        expires_at=3,
        memory_id=OTHER,
        version=4,
    )
    target = types_pb2.Episode()
    records.fill_episode(target, episode, HERE)
    assert set(types_pb2.Episode.DESCRIPTOR.fields_by_name) == present(target)


@pytest.mark.parametrize(
    "value",
    [
        Value(ValueKind.TEXT, ""),
        Value(ValueKind.INTEGER, 0),
        Value(ValueKind.DOUBLE, 0.0),
        Value(ValueKind.BOOLEAN, data=False),
        Value(ValueKind.INSTANT, 0),
        Value(ValueKind.INSTANT, -1),
        Value(ValueKind.SUBJECT, Subject("a", "b")),
        Value(ValueKind.JSON, '{"a":1}'),
    ],
)
def test_a_value_comes_back_as_it_went(value):
    target = types_pb2.Value()
    records.fill_value(target, value)
    sent = types_pb2.Value.FromString(target.SerializeToString())
    assert scalars.value_from_wire(sent, "v") == value


ENUMS = [
    (memory.MemoryKind, types_pb2.MemoryKind),
    (memory.MemoryStatus, types_pb2.MemoryStatus),
    (memory.SourceKind, types_pb2.SourceKind),
    (mutations.ConflictPolicy, wire.ConflictPolicy),
    (mutations.EmbeddingMode, wire.EmbeddingMode),
    (schemas.Cardinality, schema_service_pb2.Cardinality),
    (schemas.ExistingValues, schema_service_pb2.ExistingValues),
    (mutations.Outcome, wire.MutationOutcome),
    (queries.RecencyAnchor, search_pb2.RecencyAnchor),
    (queries.Exactness, search_pb2.Exactness),
    (queries.SearchPath, search_pb2.SearchPath),
    (commands.SkipReason, types_pb2.ClusterSkipReason),
]


@pytest.mark.parametrize(("domain", "contract"), ENUMS)
def test_the_domains_enums_are_those_of_the_contract(domain, contract):
    descriptor = contract.DESCRIPTOR
    prefix = descriptor.values[0].name.removesuffix("UNSPECIFIED")
    wire_names = {one.name.removeprefix(prefix): one.number for one in descriptor.values[1:]}
    assert {one.name: one.value for one in domain} == wire_names


def test_the_modes_of_forget_are_those_of_the_contract():
    for mode in commands.ForgetMode:
        assert wire.ForgetMode.Name(mode) == f"FORGET_MODE_{mode.name}"


def test_a_rejection_names_reason_field_and_place():
    error = PillionError.of_field("put_fact.fact.id", "it is not a UUID")
    ack = commands.ImportAck(
        revision=0,
        written=0,
        existing=1,
        rejections=(commands.ImportRejection(3, error),),
        vectors_pending=2,
    )
    made = answers.import_ack_to_wire(9, ack).ack
    assert made.rejections[0] == wire.ImportRejection(
        index=3,
        reason="INVALID_FIELD",
        field="put_fact.fact.id",
        message="put_fact.fact.id: it is not a UUID",
    )
    assert (made.sequence, made.existing, made.vectors_pending) == (9, 1, 2)


def test_an_acknowledgement_of_nothing_is_still_one():
    ack = commands.ImportAck(revision=0, written=0, existing=0, rejections=(), vectors_pending=0)
    assert answers.import_ack_to_wire(0, ack).WhichOneof("kind") == "ack"


def test_reports_of_nothing_are_still_reports():
    consolidated = commands.ConsolidateReport(
        clusters=0, created=(), consolidated=0, skipped=(), promoted=(), dry_run=False, more=False,
        revision=0,
    )  # fmt: skip
    assert answers.consolidate_to_wire(consolidated, HERE).WhichOneof("outcome") == "report"
    forgotten = commands.ForgetReport(
        memories=0, episodes=0, derived=0, sample_ids=(), dry_run=False, revision=0
    )
    assert forgetting.forget_to_wire(forgotten).WhichOneof("outcome") == "report"


def test_parts_are_given_only_when_asked_for():
    hit = queries.Hit(a_memory(), 0.5, 0.0, 0.0, 0.0, None)
    answer = search_answer([hit, hit._replace(cosine=-0.5)])
    asked = answers.search_to_wire(answer, HERE, include_parts=True)
    assert [one.HasField("parts") for one in asked.hits] == [True, True]
    assert [one.parts.HasField("cosine") for one in asked.hits] == [False, True]
    unasked = answers.search_to_wire(answer, HERE, include_parts=False)
    assert not unasked.hits[0].HasField("parts")


def search_answer(hits):
    return queries.SearchAnswer(
        hits=tuple(hits),
        revision=1,
        exactness=queries.Exactness.EXACT,
        path=queries.SearchPath.SCAN,
        admitted=10,
        vectors_pending=0,
    )
