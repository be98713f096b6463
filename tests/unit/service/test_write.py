"""What Write does: all or nothing, once, and what each kind of mutation leaves behind."""

from __future__ import annotations

import pytest
from pillion.domain.errors import Reason
from pillion.domain.limits import MUTATIONS_MAX, RECURRENCE_EPISODES_MAX
from pillion.domain.memory import (
    FOREVER,
    EndReason,
    MemoryKind,
    MemoryStatus,
    Recurrence,
    Source,
    SourceKind,
)
from pillion.domain.mutations import ConflictPolicy, Guard, Outcome
from pillion.domain.queries import Filter
from pillion.domain.values import Value, ValueKind
from pillion.service.draft import SCAN_STEP
from pillion_testing.fakes import START, uuid7
from pillion_testing.service import (
    ACME,
    NEW,
    add,
    close_item,
    confirm,
    episode,
    floats,
    key_of,
    patch,
    put_fact,
    retract,
    version_is,
)

CANDIDATE = MemoryStatus.CANDIDATE


def test_later_mutations_see_what_earlier_ones_did(service):
    mine = uuid7(500)
    answer = service.write(
        episode("it is due on Monday", id=uuid7(501)),
        add("due Monday", id=mine, source=Source(SourceKind.DOCUMENT, uuid7(501))),
        patch(mine, importance=0.9),
        put_fact("Monday", valid_from=START - 2),
        put_fact("Tuesday", valid_from=START - 1),
        retract(key=key_of(), valid_to=START),
    )
    assert service.get(mine).importance == 0.9
    assert [one.version for one in answer.results] == [answer.revision] * 6
    assert service.value_at(START - 2) == "Monday"
    assert service.value_at(START - 1) == "Tuesday"
    assert service.value_at(START) is None


def test_nothing_of_a_failing_batch_is_applied(service):
    good = [add("a"), episode("b"), put_fact("c"), add("d")]
    for place in range(len(good)):
        mutations = [*good[:place], retract(uuid7(999)), *good[place:]]
        with service.refuses(Reason.NOT_FOUND) as caught:
            service.write(*mutations)
        assert caught.value.metadata["index"] == str(place)


def test_validate_only_says_what_would_happen_and_does_nothing(service):
    first = service.put("a", valid_from=START - 5)
    before = service.records(), service.revision
    result = service.one(put_fact("b"), validate_only=True)
    assert (result.outcome, result.superseded_id) == (Outcome.SUPERSEDED, first.id)
    assert (service.records(), service.revision) == before


def test_a_retry_gets_the_first_answer(service):
    first = service.write(put_fact("a"), add("b"), episode("c"), request_id="r")
    service.clock.advance()
    service.put("z")
    again = service.write(put_fact("a"), add("b"), episode("c"), request_id="r")
    assert again.replayed
    assert not first.replayed
    assert again.results == first.results
    assert (again.revision, again.recorded_at) == (first.revision, first.recorded_at)


@pytest.mark.parametrize("when", [NEW, version_is(1)])
def test_a_retry_beside_its_first_try_gets_the_first_answer(service, monkeypatch, when):
    """The first try commits after the retry has looked for it, and then stands in its way."""
    if when is not NEW:
        service.put("a")
    service.clock.advance()
    look, tries = service.store.find_token, []

    def find_token(partition, token):
        found = look(partition, token)
        if not tries:
            tries.append("the first")
            tries.append(service.write(put_fact("b", when=when), request_id="r"))
        return found

    monkeypatch.setattr(service.store, "find_token", find_token)
    retry = service.write(put_fact("b", when=when), request_id="r")
    assert retry.replayed
    assert (retry.revision, retry.results) == (tries[1].revision, tries[1].results)


def test_the_same_request_id_means_other_things_to_other_verbs_and_tenants(service):
    from pillion.domain.scope import Partition

    service.write(add("a"), request_id="r")
    service.forget(subject=add().memory.subject, request_id="r")
    answer = service.write(add("a"), request_id="r", partition=Partition("production", "b"))
    assert not answer.replayed


def test_the_servers_defaults(service):
    made = service.get(service.one(add("hello")).id)
    assert (made.importance, made.confidence, made.status) == (0.5, 1.0, MemoryStatus.STATED)
    assert made.valid_from == made.created_at == made.updated_at == START
    assert (made.valid_to, made.expires_at, made.end_reason) == (FOREVER, FOREVER, EndReason.OPEN)
    row = service.get(service.put("2026-07-15", attribute="passport_deadline", context="work").id)
    assert row.text == "mira passport deadline (work): 2026-07-15"


def test_labels_are_sets(service):
    made = service.one(add(labels=("b", "a", "b"), pii_labels=("z", "z")))
    assert service.get(made.id).labels == ("a", "b")
    assert service.get(made.id).pii_labels == ("z",)
    service.write(patch(made.id, labels=("d", "c", "d")))
    assert service.get(made.id).labels == ("c", "d")


def test_an_episode_is_captured_with_the_memory_that_recalls_it(service):
    result = service.one(
        episode("hello", author="mira", labels=("x",), session_id="s", occurred_at=START - 9)
    )
    captured = service.get_episode(result.id)
    recalling = service.get(result.memory_id)
    assert captured.memory_id == recalling.id
    assert captured.content == recalling.text == "hello"
    assert recalling.source == Source(SourceKind.USER_STATEMENT, captured.id, "", "mira")
    assert (recalling.kind, recalling.valid_from) == (MemoryKind.EPISODIC, START - 9)
    bare = service.one(episode("quiet", indexed=False))
    assert bare.memory_id is None
    assert service.get_episode(bare.id).memory_id is None
    inferred = service.one(episode("I think so", source_kind=SourceKind.INFERENCE))
    assert service.get(inferred.memory_id).status is CANDIDATE


def test_a_patch_changes_what_it_names(service):
    made = service.one(
        add("hello", importance=0.9, labels=("a",), expires_at=START + 5, session_id="s")
    )
    old = service.get(made.id)
    service.clock.advance(1)
    result = service.one(patch(made.id, version_is(made.version), pinned=True, session_id="t"))
    new = service.get(made.id)
    assert result.outcome is Outcome.UPDATED
    assert new.version == result.version > made.version
    assert (new.pinned, new.session_id, new.updated_at) == (True, "t", START + 1)
    assert (new.importance, new.labels, new.expires_at) == (0.9, ("a",), START + 5)
    assert new.created_at == old.created_at
    service.write(patch(made.id, importance=None, expires_at=None, labels=()))
    cleared = service.get(made.id)
    assert (cleared.importance, cleared.expires_at, cleared.labels) == (0.5, FOREVER, ())


def test_a_patch_that_changes_nothing_keeps_the_version(service):
    made = service.one(add("hello"))
    result = service.one(patch(made.id, text="hello"))
    assert (result.outcome, result.version) == (Outcome.UNCHANGED, made.version)
    assert service.get(made.id).version == made.version


def test_a_patch_that_changes_nothing_of_what_this_write_changes_says_the_new_version(service):
    made = service.one(add("hello"))
    answer = service.write(patch(made.id, importance=0.9), patch(made.id, text="hello"))
    assert [one.version for one in answer.results] == [answer.revision] * 2
    fresh = uuid7(600)
    answer = service.write(add("x", id=fresh), patch(fresh, text="x"))
    assert answer.results[1].outcome is Outcome.UNCHANGED
    assert answer.results[1].version == answer.revision == service.get(fresh).version


def test_confirming(service):
    told = service.one(episode("yes")).id
    made = service.one(add("hello", confidence=0.4))
    result = service.one(confirm(made.id, episode_id=told))
    new = service.get(made.id)
    assert result.outcome is Outcome.UPDATED
    assert (new.status, new.confidence) == (MemoryStatus.CONFIRMED, 1.0)
    assert new.recurrence == Recurrence(1, (told,))
    service.write(confirm(made.id, episode_id=told))
    assert service.get(made.id).recurrence == Recurrence(2, (told,))


def test_confirmations_beyond_the_limit_are_counted_and_not_listed(service):
    made = service.one(add("hello"))
    for _ in range(RECURRENCE_EPISODES_MAX + 5):
        told = service.one(episode("yes", indexed=False)).id
        service.write(confirm(made.id, episode_id=told))
    recurrence = service.get(made.id).recurrence
    assert recurrence.count == RECURRENCE_EPISODES_MAX + 5
    assert len(recurrence.episode_ids) == RECURRENCE_EPISODES_MAX


def test_a_candidate_is_kept_beside_the_timeline(service):
    stated = service.put("stated", valid_from=START - 5)
    guess = service.put("guess", valid_from=START - 3, status=CANDIDATE)
    assert guess.outcome is Outcome.CREATED
    assert service.current().id == stated.id
    assert guess.id not in service.found()
    assert guess.id in service.found(filter=Filter(statuses=frozenset({CANDIDATE})))
    assert service.get(stated.id).version == stated.version
    result = service.one(confirm(guess.id))
    assert (result.id, result.outcome) == (guess.id, Outcome.SUPERSEDED)
    assert service.current().id == guess.id
    assert service.value_at(START - 4) == "stated"


def test_a_confirmed_guess_wins_over_what_somebody_stated_for_the_same_instant(service):
    stated = service.put("stated", valid_from=START - 5)
    guess = service.put("guess", valid_from=START - 5, source=Source(SourceKind.INFERENCE))
    result = service.one(confirm(guess.id))
    assert (result.id, result.outcome) == (guess.id, Outcome.CORRECTED)
    assert service.value_at() == "guess"
    assert service.get(stated.id).end_reason is EndReason.CORRECTED
    # ... and keeps that weight: a document does not take its place.
    service.put(
        "document",
        valid_from=START - 5,
        source=Source(SourceKind.DOCUMENT),
        policy=ConflictPolicy.PREFER_SOURCE,
    )
    assert service.value_at() == "guess"


def test_a_confirmed_guess_that_is_known_already_becomes_evidence(service):
    stated = service.put("v", valid_from=START - 5, confidence=0.5)
    guess = service.put("v", valid_from=START - 3, status=CANDIDATE)
    result = service.one(confirm(guess.id))
    assert (result.id, result.outcome) == (stated.id, Outcome.EVIDENCE)
    row = service.get(stated.id)
    assert (row.status, row.confidence) == (MemoryStatus.CONFIRMED, 1.0)
    served = service.get(guess.id)
    assert (served.end_reason, served.superseded_by) == (EndReason.WITHDRAWN, stated.id)
    assert service.found() == [stated.id]


def test_evidence_grows_the_row(service):
    one, two = (service.one(episode(str(n), indexed=False)).id for n in range(2))
    row = service.put(
        "v", valid_from=START - 9, confidence=0.4, source=Source(SourceKind.DOCUMENT, one)
    )
    for number, told in enumerate((one, two, two)):
        result = service.put(
            "v",
            valid_from=START - 8 + number,
            confidence=0.7,
            source=Source(SourceKind.DOCUMENT, told),
        )
        assert (result.id, result.outcome) == (row.id, Outcome.EVIDENCE)
    grown = service.get(row.id)
    assert grown.recurrence == Recurrence(3, (two,))
    assert grown.confidence == 0.7
    assert len(service.listed(Filter(valid_only=False))) == 1


def test_a_named_statement_that_became_evidence_is_not_counted_again(service):
    row = service.put("v", valid_from=START - 9)
    service.put("v", valid_from=START - 8, id=uuid7(700))
    with service.refuses(Reason.ALREADY_EXISTS):
        service.put("v", valid_from=START - 8, id=uuid7(700))
    assert service.get(row.id).recurrence.count == 1


def test_promoted_evidence_has_its_own_words_and_source(service):
    told = service.one(episode("still a", indexed=False)).id
    service.put("a", valid_from=START - 9)
    service.put(
        "a",
        valid_from=START - 5,
        text="still a, they said",
        source=Source(SourceKind.TOOL_RESULT, told, "still a"),
    )
    service.put("b", valid_from=START - 7)
    row = service.current(as_of=START - 5)
    assert (row.value.data, row.text) == ("a", "still a, they said")
    assert row.source == Source(SourceKind.TOOL_RESULT, told, "still a")


def test_retracting(service):
    row = service.put("v", valid_from=START - 9)
    result = service.one(retract(key=key_of(), valid_to=START - 4))
    assert (result.id, result.valid_to) == (row.id, START - 4)
    ended = service.get(row.id)
    assert (ended.end_reason, ended.retracted_at) == (EndReason.RETRACTED, START)
    assert service.value_at(START - 5) == "v"
    assert service.value_at(START - 4) is None
    service.write(retract(row.id, valid_to=START - 9))
    assert service.get(row.id).end_reason is EndReason.WITHDRAWN
    assert service.value_at(START - 5) is None


def test_a_row_that_takes_a_retracted_rows_end_says_when_that_was_retracted(service):
    service.put("a", valid_from=START - 9)
    service.write(retract(key=key_of(), valid_to=START - 2))
    service.clock.advance(1)
    late = service.put("b", valid_from=START - 5)
    row = service.get(late.id)
    assert (row.valid_to, row.end_reason, row.retracted_at) == (
        START - 2,
        EndReason.RETRACTED,
        START,
    )


def test_closing_an_open_item(service):
    item = service.one(add("call", kind=MemoryKind.OPEN_ITEM))
    service.clock.advance(10)
    result = service.one(close_item(item.id, closed_at=START + 5))
    closed = service.get(item.id)
    assert result.valid_to == closed.valid_to == closed.closed_at == START + 5
    assert service.found() == []
    late = service.one(
        add("ended before", kind=MemoryKind.OPEN_ITEM, valid_from=START, valid_to=START + 2)
    )
    service.write(close_item(late.id))
    assert service.get(late.id).valid_to == START + 2


def test_two_spellings_of_one_json_value_are_one_value(service):
    row = service.put(Value(ValueKind.JSON, '{"b": 1, "a": [1.0]}'), valid_from=START - 9)
    result = service.put(Value(ValueKind.JSON, '{ "a":[1.0],"b":1}'), valid_from=START - 8)
    assert (result.outcome, result.id) == (Outcome.EVIDENCE, row.id)
    other = service.put(Value(ValueKind.TEXT, '{"a":[1.0],"b":1}'))
    assert other.outcome is Outcome.SUPERSEDED


def test_the_integer_one_is_not_the_double_one(service):
    service.put(Value(ValueKind.INTEGER, 1), valid_from=START - 9)
    assert service.put(Value(ValueKind.DOUBLE, 1.0)).outcome is Outcome.SUPERSEDED


def test_contexts_have_timelines_of_their_own(service):
    service.put("a", valid_from=START - 9)
    service.put("b", valid_from=START - 5, context="work")
    assert service.value_at() == "a"
    assert service.value_at(key=key_of(context="work")) == "b"


def test_guards_protect_records_that_are_only_read(service):
    row = service.put("v", valid_from=START - 9)
    guard = Guard(version_is(row.fact_version), fact=key_of())
    service.write(add("derived from v"), guards=(guard,))
    service.put("w")
    with service.refuses(Reason.VERSION_MISMATCH):
        service.write(add("too late"), guards=(guard,))


@pytest.mark.parametrize("first", [True, False])
def test_vectors_of_one_partition_have_one_dimension(service, first):
    service.write(add("a", vector=floats(1, 2)))
    mutations = [add("b", vector=floats(1, 2, 3)), add("c", vector=floats(3, 4))]
    if not first:
        mutations.reverse()
    index = 0 if first else 1
    with service.refuses(Reason.DIMENSION_MISMATCH, f"mutations[{index}].add_memory.memory.vector"):
        service.write(*mutations)
    with service.refuses(Reason.DIMENSION_MISMATCH, "mutations[0].put_fact.fact.vector"):
        service.put("v", vector=floats(1))
    with service.refuses(Reason.DIMENSION_MISMATCH, "mutations[0].capture_episode.vector"):
        service.write(episode("v", vector=floats(1)))
    assert service.partition == ACME


def test_a_patched_vector_replaces_the_old_one_and_new_text_outdates_it(service):
    made = service.one(add("a", vector=floats(1, 0)))
    service.write(patch(made.id, vector=floats(0, 1)))
    assert service.vector(made.id) == floats(0, 1)
    service.write(patch(made.id, text="b"))
    assert service.vector(made.id) == b""
    service.write(patch(made.id, text="c", vector=floats(1, 1)))
    assert service.vector(made.id) == floats(1, 1)


def test_evidence_that_is_promoted_keeps_the_vector_that_came_with_it(service):
    service.put("a", valid_from=START - 9, vector=floats(1, 0))
    service.put("a", valid_from=START - 5, text="a, still", vector=floats(0, 1))
    service.put("b", valid_from=START - 7, vector=floats(1, 1))
    assert service.vector(service.current(as_of=START - 5).id) == floats(0, 1)


def test_the_vector_of_evidence_must_fit_too(service):
    service.put("a", valid_from=START - 9, vector=floats(1, 0))
    with service.refuses(Reason.DIMENSION_MISMATCH, "mutations[0].put_fact.fact.vector"):
        service.put("a", valid_from=START - 5, vector=floats(1))


class Counting:
    """Counts what is asked of a store: calls, and the rows of its scans."""

    def __init__(self, store):
        self.calls = self.rows = 0
        self._scan, self._read = store.scan, store.read
        store.scan, store.read = self.scan, self.read

    def scan(self, *args, **more):
        page = self._scan(*args, **more)
        self.calls += 1
        self.rows += len(page.rows)
        return page

    def read(self, *args, **more):
        self.calls += 1
        return self._read(*args, **more)


def state_often(service, count=500):
    """State "a" every other microsecond from START - 1000 on."""
    for start in range(0, count, MUTATIONS_MAX):
        numbers = range(start, min(count, start + MUTATIONS_MAX))
        service.write(*(put_fact("a", valid_from=START - 1000 + 2 * n) for n in numbers))


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("place", [2, 250, 499, 501])
@pytest.mark.parametrize("value", ["a", "b"])
def test_a_fact_stated_very_often_costs_as_little_as_any_other(service, ends, place, value):
    """Neither before the instant nor after it is the evidence gone through."""
    end = START + 5 if ends else None
    row = service.put("a", valid_from=START - 1001, valid_to=end)
    if ends:
        service.put("c", valid_from=end)
    state_often(service)
    assert service.get(row.id).recurrence.count == 500
    counting = Counting(service.store)
    service.put(value, valid_from=START - 1001 + 2 * place)
    # A handful for the memories themselves, whatever the number of statements.
    assert counting.calls <= 14
    assert counting.rows <= 3 * SCAN_STEP


def test_evidence_asleep_in_a_gap_is_passed_over_in_large_steps(service):
    service.put("a", valid_from=START - 1001)
    state_often(service)
    service.write(retract(key=key_of(), valid_to=START - 1000))
    counting = Counting(service.store)
    result = service.put("b", valid_from=START - 501, valid_to=START - 400)
    assert (result.outcome, result.valid_to) == (Outcome.CREATED, START - 400)
    assert counting.calls < 12
