"""Migrations: values, timelines and text follow; live writers win; ends right after a kill."""

import contextlib
import json

import pytest
from pillion.domain.errors import Reason
from pillion.domain.migrations import DefaultProperty, Replace, Wrap
from pillion.domain.mutations import ConflictPolicy, EmbeddingMode, Outcome
from pillion.domain.operations import OperationState
from pillion.domain.schemas import Cardinality, ExistingValues
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import DAY, FakeEmbedder
from pillion_testing.migrating import INFERRED, NUMBER, TEXT, TO_INT, ByHand, history, versions
from pillion_testing.service import (
    Service,
    confirm,
    member_of,
    put_fact,
    ram_service,
    refusal,
    restore,
    retract,
)


@pytest.fixture
def hand():
    made = ByHand()
    yield made
    made.service.close()


def test_values_their_text_and_their_timeline_follow(hand):
    history(hand)
    service = hand.service
    rows = {one.id for one in service.listed()}
    answer = hand.migrate(TO_INT)
    assert (answer.values, answer.misfit_ids) == (5, ())
    done = hand.finish(answer.operation)
    assert done.state is OperationState.SUCCEEDED
    assert (done.migration.migrated, done.migration.misfits, done.total) == (5, 0, 5)
    assert {one.id for one in service.listed()} == rows
    for number in range(5):
        row = service.current(as_of=10 * number + 7)
        assert row.value == Value(ValueKind.INTEGER, number)
        assert row.schema_version == 2
        assert str(number) in row.text
        assert [one.memory.value.data for one in service.history(memory_id=row.id)[0]][-1] == number
    # The evidence followed too: what arrives late finds it.
    number = service.put(Value(ValueKind.INTEGER, 9), valid_from=13)
    assert number.outcome is Outcome.INSERTED
    assert service.value_at(14) == 9
    assert service.value_at(16) == 1
    again = service.put(Value(ValueKind.INTEGER, 4), valid_from=46)
    assert again.outcome is Outcome.EVIDENCE
    assert not [key for key in service.records() if key[:1] == b"u"]


def test_a_dry_run_says_what_would_happen_and_changes_nothing(hand):
    hand.service.put("1")
    bad = hand.service.put("x", subject=Subject("user", "b"))
    versions(hand.service)
    before = hand.service.records()
    answer = hand.migrate(TO_INT, dry_run=True)
    assert (answer.operation, answer.values, answer.misfit_ids) == (None, 1, (bad.id,))
    assert hand.service.records() == before


def test_misfits_are_left_alone_and_named(hand):
    bad = hand.service.put("x")
    good = hand.service.put("2", subject=Subject("user", "b"))
    guess = hand.service.put("3", subject=Subject("user", "c"), source=INFERRED)
    versions(hand.service)
    before = hand.service.get(bad.id)
    done = hand.finish(hand.migrate(TO_INT).operation)
    assert (done.migration.migrated, done.migration.misfit_ids) == (2, (bad.id,))
    assert hand.service.get(bad.id) == before
    assert hand.service.get(good.id).value.data == 2
    assert hand.service.one(confirm(guess.id)).outcome is not None
    assert hand.service.get(guess.id).value.data == 3


def test_without_steps_what_fits_gets_the_version(hand):
    row = hand.service.put("1")
    hand.service.register(TEXT)
    hand.finish(hand.migrate(to=1).operation)
    assert hand.service.get(row.id).schema_version == 1
    assert hand.service.put("1").outcome is Outcome.EVIDENCE


def test_only_older_values_are_touched(hand):
    hand.service.register(TEXT)
    hand.service.put("1")
    hand.service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
    new = hand.service.put(Value(ValueKind.INTEGER, 7), subject=Subject("user", "b"))
    before = hand.service.get(new.id)
    assert hand.finish(hand.migrate(TO_INT).operation).migration.migrated == 1
    assert hand.service.get(new.id) == before


def test_a_row_that_left_the_timeline_stays_in_history_as_it_was(hand):
    row = hand.service.put("1", valid_from=5)
    hand.service.put("2", valid_from=5, policy=ConflictPolicy.CORRECT)
    versions(hand.service)
    assert hand.finish(hand.migrate(TO_INT).operation).migration.migrated == 1
    assert hand.service.get(row.id).value.data == "1"


def test_live_writers_win(hand):
    history(hand, 200)
    operation = hand.migrate(TO_INT).operation
    assert hand.step(operation)
    commit = hand.service.store.commit
    wrote = []

    def meanwhile(partition, batch):
        if not wrote:
            wrote.append(None)
            hand.service.put(Value(ValueKind.INTEGER, 77), valid_from=3)
        return commit(partition, batch)

    hand.operator._store = type(
        "Store", (), {"__getattr__": lambda _, name: getattr(hand.service.store, name)}
    )()
    hand.operator._store.commit = meanwhile
    done = hand.finish(operation)
    assert done.state is OperationState.SUCCEEDED
    assert hand.service.value_at(4) == 77
    assert done.migration.misfits == 0
    assert all(one.schema_version == 2 for one in hand.service.listed())


def test_a_second_migration_waits(hand):
    history(hand)
    first = hand.migrate(TO_INT, request_id="r", body_digest=b"d")
    assert refusal(lambda: hand.migrate(TO_INT)).reason is Reason.ALREADY_RUNNING
    again = hand.migrate(TO_INT, request_id="r", body_digest=b"d")
    assert again == first
    refused = refusal(lambda: hand.migrate(request_id="r", body_digest=b"other"))
    assert refused.reason is Reason.REQUEST_ID_REUSED
    hand.finish(first.operation)
    assert hand.finish(hand.migrate(TO_INT).operation).total == 0


def test_an_attribute_may_be_registered_while_it_is_migrated(hand):
    history(hand, 100)
    operation = hand.migrate(TO_INT).operation
    hand.step(operation)
    hand.service.register({"type": "integer", "minimum": 0}, existing=ExistingValues.MAY_DIFFER)
    assert refusal(lambda: hand.migrate(to=3)).reason is Reason.ALREADY_RUNNING
    assert hand.finish(operation).state is OperationState.SUCCEEDED
    assert hand.finish(hand.migrate(to=3).operation).migration.migrated == 100


def test_it_goes_on_where_it_was(hand):
    history(hand, 200)
    operation = hand.migrate(TO_INT).operation
    hand.step(operation)
    part = hand.get(operation)
    assert 0 < part.done < part.total == 200
    other = ByHand.__new__(ByHand)
    other.service = Service(hand.service.store, clock=hand.service.clock, ids=hand.service.ids)
    # The new process's own thread goes on with it.
    waited = other.service.use_cases.operations.wait(
        other.service.partition, str(operation.id), other.service.patience
    )
    assert waited.state is OperationState.SUCCEEDED
    assert waited.migration.migrated == 200
    assert hand.service.value_at(7) == 0


@pytest.mark.parametrize("stop", ["running", "cancelled"])
def test_a_roll_back_gives_back_what_was(hand, stop):
    history(hand, 150)
    before = hand.stated()
    operation = hand.migrate(TO_INT).operation
    for _ in range(2):
        hand.step(operation)
    assert hand.stated() != before
    if stop == "cancelled":
        assert hand.cancel(operation).state is OperationState.CANCELLED
        assert not hand.step(operation)
    undo = hand.roll_back(operation)
    assert hand.get(operation).state is OperationState.CANCELLED
    assert not hand.step(operation)
    done = hand.finish(undo)
    assert done.state is OperationState.SUCCEEDED
    assert (done.migration.migrated, done.migration.misfits) == (done.total, 0)
    assert hand.stated() == before
    hand.service.register(TEXT)
    late = hand.service.put("9", valid_from=13)
    assert late.outcome is Outcome.INSERTED
    assert [hand.service.value_at(at) for at in (12, 14, 16)] == ["1", "9", "1"]
    assert not [key for key in hand.service.records() if key[:1] == b"u"]
    assert hand.finish(hand.migrate(TO_INT, to=3).operation).migration.migrated == 0


def test_a_roll_back_leaves_what_others_changed_meanwhile(hand):
    service = hand.service
    service.register(TEXT)
    for number in range(100):
        service.put(str(number), subject=Subject("user", str(number)))
    service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
    operation = hand.migrate(TO_INT).operation
    hand.step(operation)
    (changed,) = [one for one in service.listed() if one.subject.id == "3"]
    assert changed.schema_version == 2
    service.one(retract(changed.id, valid_to=service.clock.now + DAY))
    after = service.get(changed.id)
    done = hand.finish(hand.roll_back(operation))
    assert done.migration.misfit_ids == (changed.id,)
    assert service.get(changed.id) == after
    assert [one.value.data for one in service.listed() if one.schema_version == 2] == [3]


def test_what_has_ended_does_not_go_back(hand):
    history(hand)
    operation = hand.migrate(TO_INT).operation
    hand.finish(operation)
    for other in (operation, hand.migrate(TO_INT).operation):
        if other is not operation:
            hand.finish(other)
        assert refusal(lambda other=other: hand.roll_back(other)).reason is Reason.ALREADY_ENDED
    assert hand.cancel(operation).state is OperationState.SUCCEEDED


def test_text_that_was_the_callers_own_stays(hand):
    own = hand.service.put("1", text="Mira said one")
    versions(hand.service)
    hand.finish(hand.migrate(TO_INT).operation)
    assert hand.service.get(own.id).text == "Mira said one"


ONE_TO_TWO = (Replace(Value(ValueKind.TEXT, "1"), Value(ValueKind.TEXT, "2")),)


def test_a_new_text_gets_a_new_vector():
    hand = ByHand(embedder=FakeEmbedder())
    row = hand.service.one(put_fact("1"), mode=EmbeddingMode.INLINE)
    before = hand.service.vector(row.id)
    assert before
    hand.service.register(TEXT)
    hand.finish(hand.migrate(ONE_TO_TWO, to=1).operation)
    assert "2" in hand.service.get(row.id).text
    assert hand.service.vector(row.id) != before
    hand.service.close()


def test_a_vector_that_a_client_made_stays(hand):
    vector = b"\0\0\x80?" * 8
    row = hand.service.put("1", vector=vector)
    hand.service.register(TEXT)
    hand.finish(hand.migrate(ONE_TO_TWO, to=1).operation)
    assert "2" in hand.service.get(row.id).text
    assert hand.service.vector(row.id) == vector


def test_a_timeline_larger_than_a_commit_is_migrated_in_parts(hand):
    service = hand.service
    big = "x" * 15_000
    for number in range(40):
        service.put(Value(ValueKind.JSON, json.dumps([number, big])), valid_from=number + 1)
        service.put(Value(ValueKind.JSON, json.dumps([number, big])), valid_from=number + 1)
    service.register({"type": "array"})
    service.register({"type": "object"}, existing=ExistingValues.MAY_DIFFER)
    done = hand.finish(hand.migrate((Wrap("v"),)).operation)
    assert done.migration.migrated == 40
    assert json.loads(service.value_at(20))["v"][0] == 19


def test_what_cannot_be_asked_for_is_refused(hand):
    service = hand.service
    assert refusal(lambda: hand.migrate(to=1)).reason is Reason.NOT_FOUND
    service.register(TEXT)
    for to in (0, 2, -1):
        refused = refusal(lambda to=to: hand.migrate(to=to))
        assert [one.field for one in refused.violations] == ["to_schema_version"]
    refused = refusal(lambda: hand.migrate((DefaultProperty("a", "{"),), to=1))
    assert [one.field for one in refused.violations] == ["steps[0].default_property.json_value"]
    refused = refusal(lambda: hand.migrate((Wrap(""),), to=1))
    assert refused.reason is Reason.INVALID_FIELD
    assert refusal(lambda: hand.migrate(TO_INT * 33, to=1)).reason is Reason.LIMIT_EXCEEDED
    service.register(cardinality=Cardinality.SET)
    assert refusal(lambda: hand.migrate(TO_INT, to=2)).reason is Reason.NOT_SERVED
    operations = service.use_cases.operations
    for name in ("", "x", "01890000-0000-7000-8000-000000000001"):
        refused = refusal(lambda name=name: operations.get(service.partition, name))
        assert refused.reason is Reason.NOT_FOUND


def test_the_members_of_a_set_are_stamped(hand):
    service = hand.service
    service.register(TEXT, cardinality=Cardinality.SET)
    for value in ("a", "b", "a"):
        service.put(value, valid_from=service.clock.now)
        service.clock.advance()
    service.put("c", source=INFERRED)
    service.register({"type": "string", "maxLength": 9}, cardinality=Cardinality.SET)
    done = hand.finish(hand.migrate().operation)
    assert (done.state, done.migration.migrated) == (OperationState.SUCCEEDED, 3)
    assert {one.schema_version for one in service.listed()} == {2}
    row = service.current(member_of("a"))
    assert (row.value.data, row.fact_version) == ("a", service.current(member_of("b")).fact_version)
    assert service.put("a").outcome is Outcome.EVIDENCE
    service.one(retract(key=member_of("b")))
    assert service.current(member_of("b")) is None


def test_operations_are_listed_the_latest_first_and_another_tenant_sees_none(hand):
    service = hand.service
    service.register(TEXT)
    made = []
    for _ in range(5):
        made.append(hand.migrate(to=1).operation)
        hand.finish(made[-1])
    operations = service.use_cases.operations
    page, token = operations.page(service.partition, page_size=2, page_token="")
    seen = [one.id for one in page]
    while token:
        page, token = operations.page(service.partition, page_size=2, page_token=token)
        seen += [one.id for one in page]
    assert seen == [one.id for one in reversed(made)]
    other = Partition("production", "other")
    assert operations.page(other, page_size=0, page_token="") == ([], "")
    refused = refusal(lambda: operations.get(other, str(made[0].id)))
    assert refused.reason is Reason.NOT_FOUND
    service.clock.advance(8 * DAY)
    hand.migrate(to=1)
    assert len(operations.page(service.partition, page_size=0, page_token="")[0]) == 1


def test_replace_and_the_same_value_next_to_each_other(hand):
    service = hand.service
    service.put("a", valid_from=1)
    service.put("b", valid_from=5)
    service.put("c", valid_from=9)
    service.register(TEXT)
    steps = (Replace(Value(ValueKind.TEXT, "b"), Value(ValueKind.TEXT, "a")),)
    hand.finish(hand.migrate(steps, to=1).operation)
    assert [service.value_at(at) for at in (2, 6, 10)] == ["a", "a", "c"]
    assert service.put("x", valid_from=7).outcome is Outcome.INSERTED
    assert [service.value_at(at) for at in (2, 6, 8, 10)] == ["a", "a", "x", "c"]


UPPER = tuple(
    Replace(Value(ValueKind.TEXT, one), Value(ValueKind.TEXT, one.upper())) for one in "ac"
)


def retracted(service, instant):
    """A row with evidence that names a later end, and what is retracted of it from an instant."""
    service.put("a", valid_from=1, valid_to=30)
    row = service.put("c", valid_from=3, valid_to=9)
    for begin, end in ((5, 8), (6, 14), (12, 20)):
        assert service.put("c", valid_from=begin, valid_to=end).outcome is Outcome.EVIDENCE
    service.write(retract(row.id, valid_to=instant))
    return row.id


def said(service):
    return [service.value_at(at) for at in range(33)]


@pytest.mark.parametrize("instant", [3, 4, 5, 6, 7, 12, 13, 19])
@pytest.mark.parametrize("back", [False, True])
def test_a_restore_after_a_migration_gives_back_all_that_was_taken(hand, instant, back):
    """As without a migration: the rest of a row in its new value, a withdrawn row in its old."""
    with contextlib.closing(ram_service()) as twin:
        other = retracted(twin, instant)
        row = retracted(hand.service, instant)
        hand.service.register(TEXT)
        operation = hand.migrate(UPPER, to=1).operation
        if back:
            hand.step(operation)
            assert hand.service.value_at(2) == "A"
            hand.finish(hand.roll_back(operation))
        else:
            assert hand.finish(operation).state is OperationState.SUCCEEDED
        new = {"a": "a", "c": "c"} if back else {"a": "A", "c": "c" if instant == 3 else "C"}
        assert said(hand.service) == [one and new[one] for one in said(twin)]
        hand.service.write(restore(row))
        twin.write(restore(other))
        assert said(hand.service) == [one and new[one] for one in said(twin)]
        assert said(twin)[8:20] == ["c"] * 12
        # Evidence that is awake again supports its row: where something else ends, it goes on.
        for service in (hand.service, twin):
            service.put("x", valid_from=10, valid_to=11)
        new["x"] = "x"
        assert said(hand.service) == [one and new[one] for one in said(twin)]
