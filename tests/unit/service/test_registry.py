"""The type registry: what is registered, what it refuses, and that nothing slips past it."""

import json
import threading
from uuid import UUID

import pytest
from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryStatus, Source, SourceKind
from pillion.domain.mutations import ConflictPolicy, Outcome
from pillion.domain.schemas import Cardinality, ExistingValues
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion_storage import codec
from pillion_storage.api import Batch
from pillion_storage.keys import BY_ATTRIBUTE_KEY
from pillion_testing.fakes import DAY, Patience, uuid7
from pillion_testing.service import (
    ACME,
    EXISTS,
    MIRA,
    NEW,
    confirm,
    fact,
    key_of,
    put_fact,
    ram_service,
    refusal,
    retract,
    version_is,
)

STRING = {"type": "string", "maxLength": 5}
INFERRED = Source(SourceKind.INFERENCE)
OTHER = Partition("production", "other")
VIOLATION = Reason.SCHEMA_VIOLATION
VALUE = "mutations[0].put_fact.fact.value"


@pytest.fixture
def service():
    made = ram_service()
    yield made
    made.close()


def test_a_registration_has_versions_that_stay_readable(service):
    first = service.register(STRING, when=NEW, pii_labels=("b", "a", "a"), subject_types=("user",))
    assert first.schema.schema_version == 1
    assert first.schema.pii_labels == ("a", "b")
    assert first.schema.version == first.revision == service.revision
    second = service.register(
        {"type": "string"}, when=version_is(first.schema.version), subject_types=("user",)
    )
    assert second.schema.schema_version == 2
    assert service.schema() == service.schema(version=2) == second.schema
    assert service.schema(version=1) == first.schema
    for version in (3, 2**31 - 1):
        with service.refuses(Reason.NOT_FOUND):
            service.schema(version=version)
    with service.refuses(Reason.INVALID_FIELD, "schema_version"):
        service.schema(version=-1)


def test_preconditions_hold_of_the_registration(service):
    with service.refuses(Reason.NOT_FOUND):
        service.register(STRING, when=EXISTS)
    service.register(STRING, when=NEW)
    with service.refuses(Reason.ALREADY_EXISTS):
        service.register(STRING, when=NEW)
    with service.refuses(Reason.VERSION_MISMATCH):
        service.register({"type": "integer"}, when=version_is(99))
    service.register({"type": "integer"}, when=EXISTS)


def test_the_same_again_is_no_new_version(service):
    first = service.register('{"type":"string","maxLength":5}', subject_types=("b", "a"))
    again = service.register(
        '{ "maxLength": 5, "type": "string" }', subject_types=("a", "b", "a"), when=EXISTS
    )
    assert again.schema == first.schema
    assert service.revision == first.revision
    assert (
        service.register(STRING, subject_types=("a", "b"), half_life=DAY).schema.schema_version == 2
    )


def test_a_request_id_registers_once(service):
    first = service.register(STRING, when=NEW, request_id="r", digest=b"1")
    assert service.register(STRING, when=NEW, request_id="r", digest=b"1") == first
    service.register({"type": "integer"})
    assert service.register(STRING, when=NEW, request_id="r", digest=b"1") == first
    with service.refuses(Reason.REQUEST_ID_REUSED):
        service.register(STRING, when=NEW, request_id="r", digest=b"2")
    assert service.schema().schema_version == 2


def test_the_same_again_with_a_request_id_is_remembered_too(service):
    first = service.register(STRING)
    again = service.register(STRING, request_id="r")
    assert again.schema == first.schema
    service.register({"type": "integer"})
    assert service.register(STRING, request_id="r") == again
    assert service.schema().schema_version == 2


def test_validate_only_changes_nothing(service):
    before = service.records()
    made = service.register(STRING, validate_only=True)
    assert (made.schema.schema_version, made.schema.version) == (1, 0)
    assert service.records() == before
    assert service.store.partitions() == []
    service.put("too long a value")
    before = service.records()
    refused = refusal(lambda: service.register(STRING, validate_only=True))
    assert refused.reason is VIOLATION
    assert (
        service.register(STRING, validate_only=True, existing=ExistingValues.MAY_DIFFER).misfits
        == 1
    )
    assert service.records() == before


# --- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, Value(ValueKind.TEXT, "x")),
        ({"type": "integer", "maximum": 2**63 - 1}, Value(ValueKind.INTEGER, 2**63 - 1)),
        ({"type": "number"}, Value(ValueKind.DOUBLE, 0.5)),
        ({"type": "integer"}, Value(ValueKind.DOUBLE, 2.0)),
        ({"type": "boolean"}, Value(ValueKind.BOOLEAN, True)),
        ({"type": "string", "format": "date-time"}, Value(ValueKind.INSTANT, 1)),
        (
            {"properties": {"type": {"const": "user"}}, "required": ["type", "id"]},
            Value(ValueKind.SUBJECT, Subject("user", "x")),
        ),
        ({"type": "array", "items": {"type": "integer"}}, Value(ValueKind.JSON, "[1,2]")),
    ],
)
def test_a_value_is_checked_as_json(service, schema, value):
    service.register(schema)
    made = service.put(value)
    assert service.get(made.id).schema_version == 1
    service.register({"not": schema}, attribute="never")
    with service.refuses(VIOLATION, VALUE) as caught:
        service.put(value, attribute="never")
    assert caught.value.metadata["schema_version"] == "1"


def test_a_refusal_never_quotes_the_value(service):
    service.register({"properties": {"name": STRING}, "additionalProperties": False})
    secret = json.dumps({"name": "sesame-open", "password-of-mira": 1})
    error = refusal(lambda: service.put(Value(ValueKind.JSON, secret)))
    assert error.reason is VIOLATION
    assert len(error.violations) == 2
    shown = f"{error.message} {error.violations} {error.metadata}"
    assert "sesame" not in shown
    assert "password" not in shown
    assert "/properties/name/maxLength" in shown


def test_other_subjects_than_registered_are_refused(service):
    service.register(subject_types=("project",))
    with service.refuses(VIOLATION, "mutations[0].put_fact.fact.subject.type"):
        service.put("v")
    service.put("v", subject=Subject("project", "x"))


def test_a_fact_takes_the_defaults_of_its_attribute(service):
    service.register(
        retention_class="short", pii_labels=("email",), conflict_policy=ConflictPolicy.CORRECT
    )
    first = service.put("a", valid_from=5, pii_labels=("name",))
    row = service.get(first.id)
    assert (row.retention_class, row.pii_labels) == ("short", ("email", "name"))
    assert service.put("b", valid_from=5).outcome is Outcome.CORRECTED
    with service.refuses(Reason.FACT_CONFLICT):
        service.put("c", valid_from=5, policy=ConflictPolicy.REJECT)
    own = service.put("d", valid_from=9, retention_class="long")
    assert service.get(own.id).retention_class == "long"


def test_a_candidate_is_checked_again_when_it_is_confirmed(service):
    guess = service.put("too long by far", source=INFERRED)
    service.register(STRING)  # a guess is no value that is held
    with service.refuses(VIOLATION, "mutations[0].confirm_memory.memory_id"):
        service.one(confirm(guess.id))
    with service.refuses(VIOLATION, VALUE):
        service.put("too long by far", source=INFERRED)
    fits = service.put("fits", source=INFERRED)
    service.register({"type": "string", "maxLength": 6})
    service.one(confirm(fits.id))
    row = service.current()
    assert (row.status, row.schema_version) == (MemoryStatus.CONFIRMED, 2)


def test_an_import_refuses_what_does_not_fit_and_takes_the_rest(service):
    service.register(STRING)
    ack = service.import_(put_fact("long value"), put_fact("ok"))
    assert ack.written == 1
    (refused,) = ack.rejections
    assert (refused.index, refused.error.reason) == (0, VIOLATION)


def test_a_repeated_import_is_not_checked_again(service):
    item = put_fact("long value", id=uuid7(5), when=NEW)
    service.import_(item)
    service.register(STRING, existing=ExistingValues.MAY_DIFFER)
    ack = service.import_(item)
    assert (ack.existing, ack.rejections) == (1, ())


def test_unregistered_attributes_are_refused_where_that_is_set():
    service = ram_service(refuse_unregistered=True)
    with service.refuses(Reason.ATTRIBUTE_UNREGISTERED, "mutations[0].put_fact.fact.attribute"):
        service.put("v")
    service.register()
    service.put("v")
    service.close()


# --- values that are there ---------------------------------------------------------------------


def test_values_that_do_not_fit_refuse_a_registration(service):
    old = service.put("long before", valid_from=1)
    now = service.put("too long", valid_from=10)
    short = service.put("ok", subject=Subject("user", "ben"))
    service.register(attribute="other")
    before = service.records()
    refused = refusal(lambda: service.register(STRING))
    assert service.records() == before
    assert (refused.reason, refused.metadata["misfits"]) == (VIOLATION, "1")
    assert [one.field for one in refused.violations] == ["schema.json_schema"]
    assert str(now.id) in refused.message
    assert str(old.id) not in refused.message
    made = service.register(STRING, existing=ExistingValues.MAY_DIFFER)
    assert (made.misfits, made.misfit_ids) == (1, (now.id,))
    assert service.get(short.id).schema_version == 0
    service.one(retract(now.id))
    assert service.register({"type": "string", "maxLength": 4}).misfits == 0


def test_expired_and_ended_values_need_not_fit(service):
    service.put("far too long", expires_at=service.clock.now + DAY)
    ended = service.put("far too long", subject=Subject("user", "b"), valid_from=1, valid_to=9)
    service.clock.advance(2 * DAY)
    assert service.register(STRING).misfits == 0
    assert service.get(ended.id).value.data == "far too long"


def test_cardinality_and_subjects_stay_once_there_are_facts(service):
    service.register(cardinality=Cardinality.SET)
    service.register(subject_types=("user", "project"))  # no facts yet
    service.put("v")
    service.put("x", attribute="unregistered")
    both = ("user", "project")
    for field, more in (
        ("cardinality", {"cardinality": Cardinality.SET, "subject_types": both}),
        ("subject_types", {"existing": ExistingValues.MAY_DIFFER}),
        ("cardinality", {"attribute": "unregistered", "cardinality": Cardinality.SET}),
    ):
        refused = refusal(lambda more=more: service.register(**more))
        assert refused.reason is VIOLATION
        assert [one.field for one in refused.violations] == [f"schema.{field}"]
    assert service.schema().schema_version == 2


def test_a_data_file_of_an_earlier_version_gets_its_index_once(service):
    for number in range(1203):
        service.put(f"value {number}", subject=Subject("user", f"{number}"))
    service.put("other", attribute="b")
    service.write(*(put_fact("v", attribute="c", id=uuid7(n)) for n in range(1, 4)))
    index = [key for key in service.records() if key[:1] == b"b"]
    assert len(index) == 1205  # evidence is no memory
    for start in range(0, len(index), 1000):
        service.store.commit(ACME, Batch(deletes=index[start : start + 1000]))
    expected = refusal(lambda: service.register(STRING, validate_only=True)).metadata["misfits"]
    refused = refusal(lambda: service.register(STRING))
    assert refused.metadata["misfits"] == expected == "1203"
    assert sorted(key for key in service.records() if key[:1] == b"b") == sorted(index)
    assert codec.unpack(service.records()[BY_ATTRIBUTE_KEY][1]) == b""


def test_an_index_that_was_cut_short_is_gone_on_with(service):
    for number in range(1203):
        service.put("value", subject=Subject("user", f"{number}"))
    index = [key for key in service.records() if key[:1] == b"b"]
    for start in range(0, len(index), 1000):
        service.store.commit(ACME, Batch(deletes=index[start : start + 1000]))

    class Short(Patience):
        left = 3

        def check(self):
            self.left -= 1
            if self.left <= 0:
                raise PillionError(Reason.DEADLINE_EXCEEDED, "late")

    assert refusal(lambda: service.register(STRING, deadline=Short())).reason is (
        Reason.DEADLINE_EXCEEDED
    )
    assert 0 < len([key for key in service.records() if key[:1] == b"b"]) < 1203
    assert refusal(lambda: service.register({"type": "integer"})).metadata["misfits"] == "1203"


# --- proposals ---------------------------------------------------------------------------------


def proposing(service, during, **more):
    """Register, and do something between the proposal and its end."""
    survey = service.use_cases.registrar._survey
    seen = []

    def surveyed(attempt, revision):
        found = survey(attempt, revision)
        seen.append(during())
        return found

    service.use_cases.registrar._survey = surveyed
    try:
        return service.register(**more), seen[0]
    finally:
        service.use_cases.registrar._survey = survey


def test_writers_satisfy_a_proposal_too(service):
    service.register({"type": "string"})

    def during():
        service.put("fits")
        assert service.get(service.current().id).schema_version == 1
        return refusal(lambda: service.put("too long"))

    made, refused = proposing(service, during, json_schema=STRING)
    assert refused.reason is VIOLATION
    assert made.schema.schema_version == 2
    assert service.value_at() == "fits"


def test_while_the_number_of_values_may_change_writers_wait(service):
    _, refused = proposing(
        service, lambda: refusal(lambda: service.put("v")), cardinality=Cardinality.SET
    )
    assert refused.reason is Reason.OVERLOADED
    assert refused.retry_after_ms
    assert service.use_cases.registrar is not None


def test_a_second_registration_waits_for_the_first(service):
    _, refused = proposing(
        service, lambda: refusal(lambda: service.register({"type": "integer"})), json_schema=STRING
    )
    assert refused.reason is Reason.ALREADY_RUNNING
    assert service.schema().schema_version == 1


def test_a_proposal_is_no_version_yet(service):
    def during():
        assert service.schemas() == ([], "")
        return refusal(lambda: service.schema(version=1))

    _, refused = proposing(service, during, json_schema=STRING)
    assert refused.reason is Reason.NOT_FOUND


def test_a_proposal_that_a_crash_left_lapses(service):
    service.register({"type": "string"})

    def crash():
        raise KeyboardInterrupt

    service.use_cases.registrar._withdraw = lambda *_: None
    with pytest.raises(KeyboardInterrupt):
        proposing(service, crash, json_schema=STRING)
    del service.use_cases.registrar._withdraw
    with service.refuses(VIOLATION, VALUE):
        service.put("too long")
    service.clock.advance(DAY)
    service.put("too long")
    assert service.schema().schema_version == 1
    assert service.register({"type": "string", "maxLength": 9}).schema.schema_version == 2


def test_a_proposal_that_lapses_under_a_writer_is_not_taken(service):
    """The survey took too long: what a writer did meanwhile may not fit."""

    def during():
        service.clock.advance(DAY)
        service.put("does not fit at all")

    refused = refusal(lambda: proposing(service, during, json_schema=STRING))
    assert refused.reason is Reason.OVERLOADED
    with service.refuses(Reason.NOT_FOUND):
        service.schema()


def race(service, attribute):
    """Write and register at once; return why each was refused, if it was."""
    outcomes = []
    gate = threading.Barrier(2)

    def write():
        gate.wait()
        outcomes.append(refusal(lambda: service.put("too long", attribute=attribute)))

    thread = threading.Thread(target=write)
    thread.start()
    gate.wait()
    registered = refusal(lambda: service.register(STRING, attribute=attribute))
    thread.join()
    return registered, outcomes[0]


def test_no_value_slips_past_a_registration_that_writers_race(service):
    """Whatever the order: either the registration saw the value, or the value was refused."""
    for number in range(60):
        registered, written = race(service, f"a{number}")
        assert (registered is None) != (written is None), number
        assert {one.reason for one in (registered, written) if one} == {VIOLATION}


# --- showing -----------------------------------------------------------------------------------


def test_attributes_are_listed_by_name_in_pages(service):
    names = [f"attribute {number:03d}" for number in range(130)]
    for name in reversed(names):
        service.register(attribute=name)
    service.register({"type": "string"}, attribute=names[3])
    page, token = service.schemas(50)
    service.register(attribute="attribute 060b")
    seen = [one.attribute for one in page]
    while token:
        page, token = service.schemas(50, token)
        seen += [one.attribute for one in page]
    assert seen == names
    assert len(service.schemas()[0]) == limits.PAGE_SIZE_DEFAULT
    assert len(service.schemas(1000)[0]) == limits.ATTRIBUTES_PAGE_MAX
    assert service.schemas()[0][3].schema_version == 2
    with service.refuses(Reason.INVALID_FIELD, "page_size"):
        service.schemas(-1)
    service.put("a", attribute="b")
    service.put("a", attribute="c")
    other = service.list(page_size=1).next_token
    assert other
    for bad in ("x", other):
        with service.refuses(Reason.PAGE_TOKEN_INVALID):
            service.schemas(1, bad)


def test_a_partition_takes_so_many_attributes(service, monkeypatch):
    monkeypatch.setattr(limits, "ATTRIBUTES_MAX", 3)
    for number in range(3):
        service.register(attribute=f"a{number}")
    with service.refuses(Reason.LIMIT_EXCEEDED):
        service.register(attribute="a3")
    service.register(STRING, attribute="a1")


def test_partitions_have_registries_of_their_own(service):
    service.register(STRING)
    with service.refuses(Reason.NOT_FOUND, partition=OTHER):
        service.schema(partition=OTHER)
    assert service.schemas(partition=OTHER) == ([], "")
    assert service.store.partitions() == [ACME]
    service.write(put_fact("too long here"), partition=OTHER)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("attribute", {"attribute": ""}),
        ("attribute", {"attribute": "x" * 129}),
        ("subject_types", {"subject_types": ("",)}),
        ("subject_types", {"subject_types": tuple(map(str, range(33)))}),
        ("pii_labels", {"pii_labels": ("",)}),
        ("retention_class", {"retention_class": "x" * 129}),
        ("half_life", {"half_life": 1}),
        ("half_life", {"half_life": -1}),
        ("json_schema", {"json_schema": ""}),
        ("json_schema", {"json_schema": "{"}),
        ("json_schema", {"json_schema": "[]"}),
        ("json_schema", {"json_schema": '"\ud800"'}),
        ("json_schema", {"json_schema": {"type": "strin"}}),
        ("json_schema", {"json_schema": {"pattern": "(?=a)"}}),
        ("json_schema", {"json_schema": {"$ref": "http://localhost/x.json"}}),
    ],
)
def test_a_malformed_registration_names_its_field(service, field, more):
    refused = refusal(lambda: service.register(**more))
    assert [one.field for one in refused.violations] == [f"schema.{field}"]
    assert service.store.partitions() == []


def test_the_largest_schema_fits_a_record(service):
    letters = "".join(chr(33 + (n * 7919 + n * n * 31) % 90) for n in range(80_000))
    text = json.dumps(
        {"const": letters.replace('"', "'").replace("\\", "/")[: 65536 - 13]}, separators=(",", ":")
    )
    text = json.dumps({"const": json.loads(text)["const"][: 65536 - 12]}, separators=(",", ":"))
    assert len(text.encode()) <= limits.SCHEMA_BYTES_MAX
    made = service.register(text)
    assert service.schema().json_schema == made.schema.json_schema == text
    refused = refusal(lambda: service.register(text + " " * 65536))
    assert refused.reason is Reason.LIMIT_EXCEEDED


def test_evidence_of_a_registered_fact_needs_to_fit_as_well(service):
    service.register(STRING)
    service.put("a", valid_from=1)
    assert service.put("a", valid_from=2).outcome is Outcome.EVIDENCE
    with service.refuses(VIOLATION, VALUE):
        service.put(Value(ValueKind.INTEGER, 2), valid_from=3)
    assert isinstance(service.current(key_of()).id, UUID)
    assert fact("a").subject == MIRA
