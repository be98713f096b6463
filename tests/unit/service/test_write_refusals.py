"""What Write refuses: the reason, the field, and that nothing was written."""

from __future__ import annotations

import math
from uuid import UUID

import pytest
from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.mutations import (
    AddMemory,
    CloseOpenItem,
    ConfirmMemory,
    Guard,
    MemoryPatch,
    PatchMemory,
    PutFact,
    RetractMemory,
)
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import START, uuid7
from pillion_testing.service import (
    ACME,
    ANY,
    EXISTS,
    MIRA,
    NEW,
    STATED,
    add,
    close_item,
    confirm,
    episode,
    fact,
    floats,
    key_of,
    memory,
    patch,
    put_fact,
    retract,
    version_is,
)

MIB = "x" * (1 << 20)
NIL = UUID(int=0)
UNKNOWN = uuid7(999)
FIELD = Reason.INVALID_FIELD
LIMIT = Reason.LIMIT_EXCEEDED
NAN = floats(1, math.nan)
FACT, MEMORY, EPISODE = "put_fact.fact", "add_memory.memory", "capture_episode.episode"
INFERRED = Source(SourceKind.INFERENCE)

MALFORMED = {
    "empty text": (add(""), FIELD, f"{MEMORY}.text"),
    "blank text": (add(" \n"), FIELD, f"{MEMORY}.text"),
    "1 MiB of text": (add(MIB), LIMIT, f"{MEMORY}.text"),
    "text that is not UTF-8": (add("\ud800"), FIELD, f"{MEMORY}.text"),
    "an attribute on a memory": (add(attribute="x"), FIELD, f"{MEMORY}.attribute"),
    "no subject id": (add(subject=Subject("user", "")), FIELD, f"{MEMORY}.subject.id"),
    "no subject type": (add(subject=Subject("", "m")), FIELD, f"{MEMORY}.subject.type"),
    "a nil id": (add(id=NIL), FIELD, f"{MEMORY}.id"),
    "a NaN vector": (add(vector=NAN), Reason.NOT_FINITE, f"{MEMORY}.vector"),
    "an infinite vector": (
        add(vector=floats(math.inf)),
        Reason.NOT_FINITE,
        f"{MEMORY}.vector",
    ),
    "a zero vector": (add(vector=floats(0, 0)), Reason.NOT_FINITE, f"{MEMORY}.vector"),
    "a crooked vector": (add(vector=b"12345"), FIELD, f"{MEMORY}.vector"),
    "a huge vector": (add(vector=floats(*[1.0] * 4097)), LIMIT, f"{MEMORY}.vector"),
    "importance above 1": (add(importance=1.01), FIELD, f"{MEMORY}.importance"),
    "importance below 0": (add(importance=-0.01), FIELD, f"{MEMORY}.importance"),
    "NaN confidence": (add(confidence=math.nan), Reason.NOT_FINITE, f"{MEMORY}.confidence"),
    "too many labels": (add(labels=tuple(map(str, range(33)))), LIMIT, f"{MEMORY}.labels"),
    "an empty label": (add(labels=("",)), FIELD, f"{MEMORY}.labels"),
    "a long label": (add(labels=("x" * 129,)), LIMIT, f"{MEMORY}.labels"),
    "a long PII label": (add(pii_labels=("x" * 65,)), LIMIT, f"{MEMORY}.pii_labels"),
    "too many sources": (add(derived_from=(UNKNOWN,) * 257), LIMIT, f"{MEMORY}.derived_from"),
    "a long quote": (
        add(source=Source(SourceKind.DOCUMENT, quote="x" * 4097)),
        LIMIT,
        f"{MEMORY}.source.quote",
    ),
    "an impossible instant": (add(valid_from=2**62), FIELD, f"{MEMORY}.valid_from"),
    "an end before the start": (
        add(valid_from=START, valid_to=START - 1),
        Reason.INTERVAL_EMPTY,
        f"{MEMORY}.valid_to",
    ),
    "an end before now": (add(valid_to=START), Reason.INTERVAL_EMPTY, f"{MEMORY}.valid_to"),
    "a fact's end before its start": (
        put_fact(valid_from=START, valid_to=START),
        Reason.INTERVAL_EMPTY,
        f"{FACT}.valid_to",
    ),
    "a fact's end before now": (
        put_fact(valid_to=START),
        Reason.INTERVAL_EMPTY,
        f"{FACT}.valid_to",
    ),
    "no attribute": (put_fact(attribute=""), FIELD, f"{FACT}.attribute"),
    "a long attribute": (put_fact(attribute="x" * 129), LIMIT, f"{FACT}.attribute"),
    "no value": (
        PutFact(memory(kind=MemoryKind.SEMANTIC, attribute="x"), ANY),
        FIELD,
        f"{FACT}.value",
    ),
    "a fact of another kind": (
        PutFact(memory(attribute="x", value=Value(ValueKind.TEXT, "v")), ANY),
        FIELD,
        f"{FACT}.kind",
    ),
    "a value that is too long": (put_fact("x" * (16 * 1024 + 1)), LIMIT, f"{FACT}.value"),
    "NaN": (put_fact(Value(ValueKind.DOUBLE, math.nan)), Reason.NOT_FINITE, f"{FACT}.value"),
    "what is not JSON": (put_fact(Value(ValueKind.JSON, "{")), FIELD, f"{FACT}.value"),
    "JSON with NaN": (put_fact(Value(ValueKind.JSON, "[NaN]")), FIELD, f"{FACT}.value"),
    "JSON beyond floats": (put_fact(Value(ValueKind.JSON, "1e999")), FIELD, f"{FACT}.value"),
    "JSON that repeats a key": (
        put_fact(Value(ValueKind.JSON, '{"a":1,"a":2}')),
        FIELD,
        f"{FACT}.value",
    ),
    "JSON nested without end": (
        put_fact(Value(ValueKind.JSON, "[" * 16_000)),
        FIELD,
        f"{FACT}.value",
    ),
    "JSON with a hidden surrogate": (
        put_fact(Value(ValueKind.JSON, '"\\ud800"')),
        FIELD,
        f"{FACT}.value",
    ),
    "JSON that grows when written out": (
        put_fact(Value(ValueKind.JSON, "[" + ",".join(["1e15"] * 3000) + "]")),
        LIMIT,
        f"{FACT}.value",
    ),
    "a value of another kind": (put_fact(Value(ValueKind.INTEGER, "1")), FIELD, f"{FACT}.value"),
    "an integer beyond 64 bits": (
        put_fact(Value(ValueKind.INTEGER, 2**63)),
        FIELD,
        f"{FACT}.value",
    ),
    "a value's nameless subject": (
        put_fact(Value(ValueKind.SUBJECT, Subject("user", ""))),
        FIELD,
        f"{FACT}.value.id",
    ),
    "an empty episode": (episode(""), FIELD, f"{EPISODE}.content"),
    "1 MiB of episode": (episode(MIB), LIMIT, f"{EPISODE}.content"),
    "an episode's nil id": (episode(id=NIL), FIELD, f"{EPISODE}.id"),
    "an episode's NaN vector": (
        episode(vector=NAN),
        Reason.NOT_FINITE,
        "capture_episode.vector",
    ),
    "an episode's external_ref": (
        episode(external_ref="x" * 257),
        LIMIT,
        f"{EPISODE}.external_ref",
    ),
    "a patch of nothing": (patch(UNKNOWN), FIELD, "patch_memory.update_mask"),
    "a patch of an unknown field": (
        PatchMemory(UNKNOWN, MemoryPatch(fields=frozenset({"subject"})), ANY),
        FIELD,
        "patch_memory.update_mask",
    ),
    "a patch to empty text": (patch(UNKNOWN, text=" "), FIELD, "patch_memory.patch.text"),
    "a patch to long PII labels": (
        patch(UNKNOWN, pii_labels=("x" * 65,)),
        LIMIT,
        "patch_memory.patch.pii_labels",
    ),
    "a patch to a zero vector": (
        patch(UNKNOWN, vector=floats(0)),
        Reason.NOT_FINITE,
        "patch_memory.patch.vector",
    ),
    "a patch that must not exist": (
        patch(UNKNOWN, NEW, text="x"),
        FIELD,
        "patch_memory.precondition",
    ),
    "a confirmation that is none": (
        ConfirmMemory(UNKNOWN, STATED, ANY),
        FIELD,
        "confirm_memory.source.kind",
    ),
    "version 0": (
        put_fact(when=version_is(0)),
        FIELD,
        "put_fact.precondition.version_equals",
    ),
    "an add over something": (
        AddMemory(memory(), EXISTS),
        FIELD,
        "add_memory.precondition",
    ),
    "a retraction of nothing": (RetractMemory(ANY), FIELD, "target"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_mutations_are_refused_where_they_are_wrong(service, name):
    mutation, reason, field = MALFORMED[name]
    service.write(add("there before"))
    with service.refuses(reason, f"mutations[1].{field}") as caught:
        service.write(add("good"), mutation)
    assert caught.value.metadata["index"] == "1"
    assert "x" * 100 not in caught.value.message, "an error repeats content"


@pytest.mark.parametrize("count", [0, limits.MUTATIONS_MAX + 1])
def test_the_number_of_mutations_is_bounded(service, count):
    with service.refuses(FIELD if count == 0 else LIMIT, "mutations"):
        service.write(*[add()] * count)


def test_a_long_request_id_is_refused(service):
    with service.refuses(LIMIT, "request_id"):
        service.write(add(), request_id="x" * 65)


@pytest.mark.parametrize(
    ("partition", "field"),
    [
        (Partition("", "t"), "partition.namespace"),
        (Partition("n", ""), "partition.tenant"),
        (Partition("n", "x" * 129), "partition.tenant"),
    ],
)
def test_a_partition_needs_names(service, partition, field):
    for call in (
        lambda: service.write(add(), request_id="r", partition=partition),
        lambda: service.import_(add(), partition=partition),
        lambda: service.get(UNKNOWN, partition=partition),
        lambda: service.list(partition=partition),
        lambda: service.search("x", partition=partition),
        lambda: service.forget(subject=MIRA, partition=partition),
        lambda: service.forget(ids=(UNKNOWN,), request_id="r", partition=partition),
        lambda: service.consolidate(request_id="r", partition=partition),
    ):
        with pytest.raises(PillionError) as caught:
            call()
        assert [one.field for one in caught.value.violations] == [field]
    assert service.store.partitions() in ([], [ACME])


MISSING = {
    "patch": patch(UNKNOWN, text="x"),
    "confirm": confirm(UNKNOWN),
    "retract": retract(UNKNOWN),
    "retract a fact": retract(key=key_of("unheard")),
    "close": close_item(UNKNOWN),
    "a source episode": add(source=Source(SourceKind.DOCUMENT, UNKNOWN)),
    "a fact's source episode": put_fact(source=Source(SourceKind.DOCUMENT, UNKNOWN)),
    "a source memory": add(derived_from=(UNKNOWN,)),
    "a fact's source memory": put_fact(derived_from=(UNKNOWN,)),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_there_is_not_found(service, name):
    with service.refuses(Reason.NOT_FOUND) as caught:
        service.write(add("good"), MISSING[name])
    assert caught.value.metadata["index"] == "1"


def test_another_tenants_ids_are_not_found(service):
    other = Partition("production", "acme2")
    theirs = service.one(add("secret"), partition=other).id
    told = service.one(episode("secret too"), partition=other).id
    for mutation in (
        patch(theirs, text="x"),
        confirm(theirs),
        retract(theirs),
        close_item(theirs),
        add(derived_from=(theirs,)),
        add(source=Source(SourceKind.DOCUMENT, told)),
    ):
        with service.refuses(Reason.NOT_FOUND) as caught:
            service.write(mutation)
        assert "secret" not in str(caught.value)
    for call in (
        lambda: service.get(theirs),
        lambda: service.get_episode(told),
        lambda: service.forget(ids=(theirs,)),
        lambda: service.forget(ids=(told,)),
        lambda: service.history(memory_id=theirs),
    ):
        with service.refuses(Reason.NOT_FOUND):
            call()
    guard = Guard(EXISTS, memory_id=theirs)
    with service.refuses(Reason.NOT_FOUND):
        service.write(add(), guards=(guard,))
    # The same id can be taken here, which tells nothing and touches nothing of theirs.
    service.write(add("mine", id=theirs))
    assert service.get(theirs, partition=other).text == "secret"


def test_an_id_is_taken_once(service):
    mine = uuid7(77)
    service.write(add("first", id=mine))
    for mutation in (add(id=mine), put_fact(id=mine)):
        with service.refuses(Reason.ALREADY_EXISTS) as caught:
            service.write(mutation)
        assert caught.value.metadata["id"] == str(mine)
    with service.refuses(Reason.ALREADY_EXISTS) as caught:
        service.write(add(id=uuid7(78)), add(id=uuid7(78)))
    assert caught.value.metadata["index"] == "1"
    service.write(episode("e", id=mine))  # episodes have ids of their own
    with service.refuses(Reason.ALREADY_EXISTS):
        service.write(episode("again", id=mine))


def test_preconditions_of_facts(service):
    with service.refuses(Reason.NOT_FOUND):
        service.write(put_fact(when=EXISTS))
    with service.refuses(Reason.VERSION_MISMATCH) as caught:
        service.write(put_fact(when=version_is(3)))
    assert caught.value.metadata["current_version"] == "0"
    first = service.put("a", when=NEW)
    with service.refuses(Reason.ALREADY_EXISTS) as caught:
        service.write(put_fact("b", when=NEW))
    assert caught.value.metadata["current_version"] == str(first.fact_version)
    service.clock.advance()
    second = service.put("b", when=version_is(first.fact_version))
    with service.refuses(Reason.VERSION_MISMATCH) as caught:
        service.write(put_fact("c", when=version_is(first.fact_version)))
    assert caught.value.metadata["expected_version"] == str(first.fact_version)
    assert caught.value.metadata["current_version"] == str(second.fact_version)


def test_preconditions_of_memories(service):
    made = service.one(add())
    with service.refuses(Reason.VERSION_MISMATCH) as caught:
        service.write(patch(made.id, version_is(made.version + 1), text="x"))
    assert caught.value.metadata["current_version"] == str(made.version)
    for mutation in (
        retract(made.id, when=version_is(99)),
        confirm(made.id, version_is(99)),
    ):
        with service.refuses(Reason.VERSION_MISMATCH):
            service.write(mutation)


def test_the_guard_at_fault_is_named(service):
    made = service.one(add())
    guards = (Guard(version_is(made.version), memory_id=made.id), Guard(NEW, memory_id=made.id))
    with service.refuses(Reason.ALREADY_EXISTS) as caught:
        service.write(add(), guards=guards)
    assert caught.value.metadata["guard_index"] == "1"
    with service.refuses(FIELD, "guards[0].precondition"):
        service.write(add(), guards=(Guard(ANY, memory_id=made.id),))
    with service.refuses(Reason.NOT_FOUND):
        service.write(add(), guards=(Guard(EXISTS, fact=key_of()),))
    service.write(add(), guards=guards[:1])


def test_what_has_ended_cannot_end_again(service):
    made = service.one(add(valid_from=START - 10))
    service.write(retract(made.id))
    with service.refuses(Reason.ALREADY_ENDED):
        service.write(retract(made.id))
    never = service.one(add())
    service.write(retract(never.id))  # at the very instant that it began: it never was so
    for mutation in (retract(never.id), confirm(never.id)):
        with service.refuses(Reason.ALREADY_ENDED):
            service.write(mutation)
    row = service.put("v")
    service.write(retract(row.id))
    with service.refuses(Reason.ALREADY_ENDED):
        service.write(retract(row.id))


def test_only_open_items_are_closed_and_once(service):
    other = service.one(add())
    with service.refuses(FIELD, "mutations[0].close_open_item.memory_id"):
        service.write(close_item(other.id))
    item = service.one(add("call back", kind=MemoryKind.OPEN_ITEM))
    with service.refuses(Reason.INTERVAL_EMPTY, "mutations[0].close_open_item.closed_at"):
        service.write(close_item(item.id))
    service.clock.advance()
    service.write(close_item(item.id))
    with service.refuses(Reason.ALREADY_ENDED):
        service.write(close_item(item.id))


def test_a_retracted_open_item_is_not_closed_back_into_the_present(service):
    item = service.one(add("call back", kind=MemoryKind.OPEN_ITEM))
    service.write(retract(item.id))
    service.clock.advance()
    with service.refuses(Reason.ALREADY_ENDED):
        service.write(close_item(item.id))
    assert service.found() == []


def test_a_request_id_with_another_body_is_refused(service):
    service.write(add("a"), request_id="r", digest=b"1")
    with service.refuses(Reason.REQUEST_ID_REUSED):
        service.write(add("b"), request_id="r", digest=b"2")


def test_a_write_that_outgrows_one_commit_is_refused_by_name(service):
    text = "x" * limits.TEXT_BYTES_MAX
    with service.refuses(LIMIT):
        service.write(*[episode(text) for _ in range(limits.MUTATIONS_MAX)])
    sources = tuple(service.one(add(str(number))).id for number in range(40))
    with service.refuses(LIMIT):
        service.write(*[add(derived_from=sources) for _ in range(100)])


def test_a_record_that_outgrows_the_store_is_refused_by_name(service):
    huge = fact(
        "v" * limits.VALUE_BYTES_MAX,
        text="x" * limits.TEXT_BYTES_MAX,
        source=Source(SourceKind.DOCUMENT, quote="q" * limits.QUOTE_BYTES_MAX),
        labels=tuple(f"{n:03d}" + "x" * 125 for n in range(32)),
    )
    service.write(PutFact(huge, ANY))  # every field at its limit still fits
    sources = []
    for start in range(0, 256, 64):
        answer = service.write(*[add(str(start + n)) for n in range(64)])
        sources += [one.id for one in answer.results]
    from dataclasses import replace

    service.write(PutFact(replace(huge, derived_from=tuple(sources), attribute="other"), ANY))


def test_inference_is_a_candidate_whatever_is_said(service):
    guess = service.put("a", source=INFERRED)
    assert service.get(guess.id).status is MemoryStatus.CANDIDATE
    assert service.current() is None
    for status in (MemoryStatus.STATED, MemoryStatus.CONFIRMED):
        with service.refuses(Reason.INVALID_FIELD, "mutations[0].put_fact.fact.status"):
            service.put("b", source=INFERRED, status=status)
        with service.refuses(Reason.INVALID_FIELD, "mutations[0].add_memory.memory.status"):
            service.write(add("b", source=INFERRED, status=status))


def test_a_close_that_is_given_in_another_partition_is_not_found(service):
    with service.refuses(Reason.NOT_FOUND):
        service.write(CloseOpenItem(UNKNOWN, EXISTS))
