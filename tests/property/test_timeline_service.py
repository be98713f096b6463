"""Laws of a fact's timeline through the whole service, over the RAM store.

After every step the timeline is read at every revision so far: what was once recorded stays.
"""

from __future__ import annotations

import contextlib
import itertools
import random as random_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import FOREVER, EndReason, MemoryStatus, Source, SourceKind
from pillion.domain.mutations import ConflictPolicy, Outcome
from pillion.domain.timeline import SOURCE_PRECEDENCE
from pillion_storage import codec
from pillion_storage.keys import id_of, instant_of, memory_key, prefix_end
from pillion_testing.fakes import SECOND, START
from pillion_testing.service import (
    Service,
    confirm,
    key_of,
    put_fact,
    ram_service,
    refusal,
    restore,
    retract,
)
from pillion_testing.timeline import POLICIES, Steps

KEY = key_of()
SPAN = 11
INSTANTS = st.integers(0, SPAN)
VALUES = st.sampled_from(["a", "b", "c"])
PROBES = range(-1, SPAN + 8)
# An inference is a guess, and never on a timeline by itself.
SAYING = [one for one in SourceKind if one is not SourceKind.INFERENCE]


def at(instant: int) -> int:
    """A small number as an instant, well before the service's now."""
    return START + (instant - 100) * SECOND


def rows_at(service: Service, revision: int | None = None):
    """The rows of the key's timeline as recorded at a revision: entries and their memories."""
    keys = service.use_cases.reader._keys.of(service.partition)
    prefix = keys.entries(KEY)
    page = service.store.scan(
        service.partition, prefix, prefix_end(prefix), limit=10_000, at=revision
    )
    rows = []
    for row in page.rows:
        entry = codec.decode_entry(instant_of(row.key[-8:]), row.value)
        if entry.is_row:
            key = memory_key(entry.memory_id)
            stored = service.store.read(service.partition, (key,), at=revision).entries[key]
            memory = codec.decode_memory(entry.memory_id, stored.value, stored.version)
            assert (memory.valid_from, memory.valid_to) == (entry.valid_from, entry.valid_to)
            assert memory.on_timeline
            assert memory.value.fingerprint == entry.fingerprint
            rows.append(memory)
    return rows


def coverage_of(rows) -> list[str | None]:
    """What the rows say at each probe, having checked that at most one of them says anything."""
    shown = []
    for probe in PROBES:
        holding = [one for one in rows if one.valid_from <= at(probe) < one.valid_to]
        assert len(holding) <= 1, f"two rows hold at {probe}"
        shown.append(holding[0].value.data if holding else None)
    return shown


def check_shape(rows) -> None:
    """Rows do not overlap, none is empty, and ends say why they are ends."""
    for one, following in itertools.pairwise(rows):
        assert one.valid_to <= following.valid_from
    for one in rows:
        assert one.valid_from < one.valid_to
        assert (one.valid_to == FOREVER) == (one.end_reason is EndReason.OPEN)


class Recorder:
    """Remembers the coverage of every revision, and looks again after each step."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.seen: dict[int, list[str | None]] = {}

    def look(self) -> list[str | None]:
        rows = rows_at(self.service)
        check_shape(rows)
        self.seen[self.service.revision] = coverage_of(rows)
        return self.seen[self.service.revision]

    def look_back(self) -> None:
        for revision, coverage in self.seen.items():
            assert coverage_of(rows_at(self.service, revision)) == coverage


def model_coverage(statements: dict[int, str]) -> list[str | None]:
    shown = []
    for probe in PROBES:
        begun = [instant for instant in statements if instant <= probe]
        shown.append(statements[max(begun)] if begun else None)
    return shown


@given(st.dictionaries(INSTANTS, VALUES, max_size=8), st.randoms(use_true_random=False))
def test_any_arrival_order_gives_the_coverage_of_the_sorted_statements(statements, random):
    service = ram_service()
    order = list(statements)
    random.shuffle(order)
    recorder = Recorder(service)
    for instant in order:
        service.put(statements[instant], valid_from=at(instant))
        service.clock.advance()
        recorder.look()
    assert recorder.look() == model_coverage(statements)
    for probe in PROBES:  # the public read agrees with the entries
        assert service.value_at(at(probe)) == model_coverage(statements)[PROBES.index(probe)]
    recorder.look_back()
    service.close()


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.sampled_from(SAYING)),
        st.sampled_from("ab"),
        max_size=10,
    ),
    st.randoms(use_true_random=False),
)
def test_any_arrival_order_lets_the_strongest_source_of_an_instant_win(statements, random):
    service = ram_service()
    order = list(statements)
    random.shuffle(order)
    recorder = Recorder(service)
    for instant, kind in order:
        service.put(
            statements[instant, kind],
            valid_from=at(instant),
            source=Source(kind),
            status=MemoryStatus.STATED,
            policy=ConflictPolicy.PREFER_SOURCE,
        )
        service.clock.advance()
        recorder.look()
    ranked = sorted(statements, key=lambda one: SOURCE_PRECEDENCE[one[1]])
    strongest = {instant: statements[instant, kind] for instant, kind in ranked}
    assert recorder.look() == model_coverage(strongest)
    recorder.look_back()
    service.close()


# Few instants and few values: evidence, gaps and corrections come upon each other all the time.
STEPS = st.tuples(
    st.sampled_from(["put", "put", "put", "correct", "prefer", "retract", "never", "restore"]),
    st.integers(0, 7),
    st.sampled_from([b"a", b"b"]),
    st.sampled_from([None, None, 1, 2, 4, 7]),
    st.sampled_from([SourceKind.USER_STATEMENT, SourceKind.DOCUMENT, SourceKind.USER_CONFIRMATION]),
)


def take(service, both, step, ids) -> None:
    """Take a step through the service, given what the model held before it.

    Raises:
        PillionError: The service refuses it.
    """
    kind, instant, value, length, source = step
    if kind == "restore":
        taken = list(both.taken)
        if taken:
            service.one(restore(ids[taken[instant % len(taken)]]))
    elif kind in {"retract", "never"}:
        row = both.timeline.holding(instant)
        memory = service.current(as_of=at(instant))
        assert (row is None) == (memory is None)
        if row is not None:
            begin = memory.valid_from if kind == "never" else at(instant)
            ids[row.memory_id] = memory.id
            service.one(retract(memory.id, valid_to=begin))
    else:
        service.put(
            value.decode(),
            valid_from=at(instant),
            valid_to=length and at(instant + length),
            policy=POLICIES.get(kind, ConflictPolicy.REJECT),
            source=Source(source),
            status=MemoryStatus.STATED,
        )


@given(st.lists(STEPS, max_size=12))
def test_the_service_says_what_the_set_of_statements_says_and_the_past_never_changes(steps):
    service, both, ids = ram_service(), Steps(), {}
    recorder = Recorder(service)
    recorder.look()
    for step in steps:
        service.clock.advance()
        error = refusal(lambda step=step: take(service, both, step, ids))
        if error is not None and error.reason is Reason.ALREADY_ENDED:
            assert step[0] == "restore"  # the row was corrected since
            break
        before = dict(both.timeline.entries)
        both.step(*step)
        if error is not None:
            assert error.reason is Reason.FACT_CONFLICT
            assert before == both.timeline.entries
        shown = recorder.look()
        said = [value.decode() if value else None for value in both.model.coverage(PROBES)]
        assert shown == said
        rows = {one.id: one for one in rows_at(service)}
        assert [(one.valid_from, one.valid_to) for one in rows.values()] == [
            (at(one.valid_from), FOREVER if one.valid_to == FOREVER else at(one.valid_to))
            for one in both.timeline.rows()
        ]
        for one in rows.values():
            assert (one.superseded_by is not None) == (one.end_reason is EndReason.SUPERSEDED)
            assert (one.retracted_at != FOREVER) == (one.end_reason is EndReason.RETRACTED)
            if one.superseded_by is not None:  # never a row that was corrected
                assert rows[one.superseded_by].valid_from == one.valid_to
    recorder.look_back()
    service.close()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "end", "correct"]),
            st.integers(0, 9),
            st.sampled_from("abc"),
            st.integers(1, 3),
        ),
        min_size=3,
        max_size=12,
    )
)
def test_successors_exist_and_adjoin(steps):
    """A row that names its successor ends where that one begins; corrections are followed."""
    service = ram_service()
    for kind, instant, value, length in steps:
        service.clock.advance()
        before = {one.id: one for one in rows_at(service)}
        end = at(instant + length) if kind == "end" else None
        policy = ConflictPolicy.CORRECT if kind == "correct" else ConflictPolicy.REJECT
        try:
            result = service.put(value, valid_from=at(instant), valid_to=end, policy=policy)
        except PillionError:
            continue
        by_id = {one.id: one for one in rows_at(service)}
        for one in by_id.values():
            assert (one.superseded_by is not None) == (one.end_reason is EndReason.SUPERSEDED)
            if one.superseded_by is not None:
                following = service.get(one.superseded_by)
                hops = 0
                while not following.on_timeline:
                    following = service.get(following.superseded_by)
                    hops += 1
                    assert hops < 20
                assert following.valid_from == one.valid_to
        for one in by_id.values():
            if one.id in before:
                continue
            if one.supersedes is None:
                continue
            replaced = service.get(one.supersedes)
            if replaced.end_reason is EndReason.CORRECTED:
                assert replaced.superseded_by == one.id
                assert replaced.valid_from == one.valid_from
            else:
                assert replaced.valid_to == one.valid_from
                assert replaced.superseded_by == one.id
        if result.superseded_id is not None:
            assert service.get(result.id).supersedes == result.superseded_id
    service.close()


@given(st.dictionaries(INSTANTS, VALUES, min_size=1, max_size=6), st.data())
def test_a_retried_put_counts_once(statements, data):
    service = ram_service()
    for number, (instant, value) in enumerate(statements.items()):
        service.write(put_fact(value, valid_from=at(instant)), request_id=f"r{number}")
    before = service.records(), service.revision
    number = data.draw(st.integers(0, len(statements) - 1))
    instant, value = list(statements.items())[number]
    answer = service.write(put_fact(value, valid_from=at(instant)), request_id=f"r{number}")
    assert answer.replayed
    assert (service.records(), service.revision) == before
    service.close()


@given(st.dictionaries(INSTANTS, VALUES, min_size=1, max_size=6), st.randoms())
def test_an_import_of_named_facts_can_be_run_again(statements, random):
    """Whatever became of each statement the first time: a row, or evidence for one."""
    service = ram_service()
    items = [
        put_fact(value, valid_from=at(instant), id=service.ids.new_id())
        for instant, value in statements.items()
    ]
    first = service.import_(*items)
    assert (first.written, first.existing, first.rejections) == (len(items), 0, ())
    before = service.records(), service.revision
    random.shuffle(items)
    again = service.import_(*items)
    assert (again.written, again.existing, again.rejections) == (0, len(items), ())
    assert (service.records(), service.revision) == before
    service.close()


@given(st.dictionaries(INSTANTS, VALUES, max_size=6), INSTANTS, VALUES, st.integers(1, 5))
def test_a_guess_disturbs_nothing_until_it_is_confirmed(statements, instant, value, length):
    del length
    service = ram_service()
    for one, said in statements.items():
        service.put(said, valid_from=at(one))
    before = Recorder(service).look()
    guess = service.put(value, valid_from=at(instant), status=MemoryStatus.CANDIDATE)
    assert guess.outcome is Outcome.CREATED
    assert Recorder(service).look() == before
    assert guess.id not in service.found()
    service.one(confirm(guess.id))
    assert Recorder(service).look() == model_coverage({**statements, instant: value})
    service.close()


def test_a_value_goes_on_behind_a_statement_that_names_its_end():
    service = ram_service()
    first = service.put("a", valid_from=at(1))
    last = service.put("b", valid_from=at(9))
    middle = service.put("c", valid_from=at(3), valid_to=at(5))
    assert middle.outcome is Outcome.INSERTED
    resumed = service.current(as_of=at(5))
    assert (resumed.value.data, resumed.valid_to) == ("a", at(9))
    assert (resumed.supersedes, resumed.superseded_by) == (middle.id, last.id)
    assert resumed.end_reason is EndReason.SUPERSEDED
    assert service.get(middle.id).superseded_by == resumed.id
    assert service.get(first.id).superseded_by == middle.id


@given(
    st.dictionaries(INSTANTS, VALUES, max_size=8),
    st.lists(st.booleans(), min_size=8, max_size=8),
    st.randoms(use_true_random=False),
)
def test_statements_of_one_write_are_like_writes_of_their_own(statements, together, random):
    """Later mutations read the timeline through what earlier ones of the same write left."""
    service = ram_service()
    order = list(statements)
    random.shuffle(order)
    batch = []
    for instant, more in zip(order, together, strict=False):
        batch.append(put_fact(statements[instant], valid_from=at(instant)))
        if not more:
            service.write(*batch)
            batch = []
    if batch:
        service.write(*batch)
    rows = rows_at(service)
    check_shape(rows)
    assert coverage_of(rows) == model_coverage(statements)
    service.close()


def test_evidence_behind_a_retraction_sleeps():
    service = ram_service()
    service.put("a", valid_from=at(1))
    service.put("a", valid_from=at(5))
    service.one(retract(key=KEY, valid_to=at(3)))
    service.put("b", valid_from=at(2))
    assert [service.value_at(at(one)) for one in range(1, 7)] == ["a", "b", *[None] * 4]
    service.put("a", valid_from=at(4))  # ... even where its value holds again
    service.put("b", valid_from=at(4), policy=ConflictPolicy.CORRECT)
    assert [service.value_at(at(one)) for one in range(3, 7)] == [None, "b", "b", "b"]


def test_what_was_forgotten_does_not_come_back_by_a_late_arrival():
    service = ram_service()
    row = service.put("a", valid_from=at(1))
    assert service.put("a", valid_from=at(5)).outcome is Outcome.EVIDENCE
    service.forget(ids=(row.id,))
    service.put("b", valid_from=at(3))
    assert [service.value_at(at(one)) for one in (1, 3, 4, 5, 6)] == [None, "b", "b", None, None]
    assert service.found() == []


def test_a_forgotten_fact_can_be_stated_again():
    service = ram_service()
    first = service.put("a", valid_from=at(1))
    service.forget(ids=(first.id,))
    assert service.value_at() is None
    second = service.put("a", valid_from=at(5))
    assert second.outcome is Outcome.SUPERSEDED
    assert service.value_at(at(5)) == "a"
    assert service.value_at(at(2)) is None
    assert service.found() == [second.id]


HIDDEN_POLICIES = pytest.mark.parametrize("policy", list(ConflictPolicy))


@HIDDEN_POLICIES
@pytest.mark.parametrize("value", ["a", "b"])
@pytest.mark.parametrize("by_expiry", [False, True])
def test_a_hidden_row_gives_way_to_a_statement_of_its_own_instant(policy, value, by_expiry):
    service = ram_service()
    expires_at = service.clock.now + 10 if by_expiry else None
    first = service.put("a", valid_from=at(1), expires_at=expires_at)
    service.put("a", valid_from=at(5))
    if by_expiry:
        service.clock.advance(20)
    else:
        service.forget(fact=KEY)
    assert service.value_at() is None
    document = Source(SourceKind.DOCUMENT)  # weaker than who said it first
    second = service.put(value, valid_from=at(1), source=document, policy=policy)
    assert (second.outcome, second.superseded_id) == (Outcome.CORRECTED, first.id)
    assert service.value_at(at(1)) == value
    old = service.get(first.id)
    assert (old.end_reason, old.superseded_by) == (EndReason.CORRECTED, second.id)
    check_shape(rows_at(service))


@HIDDEN_POLICIES
@pytest.mark.parametrize("value", ["a", "b"])
def test_a_hidden_row_gives_way_at_the_instant_of_its_evidence(policy, value):
    service = ram_service()
    first = service.put("a", valid_from=at(1))
    service.put("a", valid_from=at(5))
    service.forget(ids=(first.id,))
    second = service.put(value, valid_from=at(5), policy=policy)
    assert (second.outcome, second.superseded_id) == (Outcome.SUPERSEDED, first.id)
    assert [service.value_at(at(one)) for one in (1, 4, 5, 9)] == [None, None, value, value]


def test_an_expired_fact_can_be_stated_again():
    service = ram_service()
    service.put("a", valid_from=at(1), expires_at=service.clock.now + 10)
    service.clock.advance(20)
    assert service.value_at() is None
    service.put("a")
    assert service.value_at() == "a"


def test_a_fact_stated_again_for_longer_lasts_longer():
    service = ram_service()
    row = service.put("a", valid_from=at(1), expires_at=service.clock.now + 10)
    longer = service.clock.now + 30
    for expires_at in (longer, longer - 25):  # the shorter one takes nothing back
        assert service.put("a", expires_at=expires_at).outcome is Outcome.EVIDENCE
    assert service.get(row.id).expires_at == longer
    service.clock.advance(20)
    assert service.current().id == row.id
    service.clock.advance(20)
    assert service.current() is None


@pytest.mark.parametrize("instant", [1, 5])
def test_a_fact_stated_again_without_an_expiry_expires_as_before(instant):
    service = ram_service()
    expires_at = service.clock.now + 10
    row = service.put("a", valid_from=at(1), expires_at=expires_at)
    assert service.put("a", valid_from=at(instant)).outcome is Outcome.EVIDENCE
    assert service.get(row.id).expires_at == expires_at
    service.clock.advance(20)
    assert service.current() is None


def test_a_row_that_was_kept_keeps_its_version():
    service = ram_service()
    first = service.put("a", valid_from=at(1))
    service.put("x", attribute="other")
    kept = service.put(
        "b",
        valid_from=at(1),
        source=Source(SourceKind.DOCUMENT),
        policy=ConflictPolicy.PREFER_SOURCE,
    )
    assert kept.outcome is Outcome.KEPT_EXISTING
    row = service.current()
    assert (kept.id, kept.version, kept.fact_version) == (row.id, row.version, row.fact_version)
    assert row.version == first.version


@pytest.mark.parametrize("seed", range(12))
def test_long_random_timelines_on_every_revision(seed):
    """A long one, so that evidence, gaps and corrections pile up on each other."""
    random = random_module.Random(seed)
    service = ram_service()
    recorder = Recorder(service)
    for _ in range(40):
        instant, value = random.randrange(6), random.choice("ab")
        service.clock.advance()
        try:
            if random.random() < 0.15:
                service.one(retract(key=KEY, valid_to=at(instant)))
            else:
                policy = random.choice([ConflictPolicy.REJECT, ConflictPolicy.CORRECT])
                end = at(instant + random.randint(1, 5)) if random.random() < 0.3 else None
                service.put(value, valid_from=at(instant), valid_to=end, policy=policy)
        except PillionError:
            pass
        recorder.look()
    recorder.look_back()
    # History holds each of those answers too: at every revision, what was so at every instant.
    entries, token, _ = service.history(KEY, page_size=1000)
    assert token == ""
    for revision, coverage in recorder.seen.items():
        held = [
            one.memory
            for one in entries
            if one.from_revision <= revision
            and (one.to_revision == 0 or revision < one.to_revision)
            and one.memory.on_timeline
        ]
        assert coverage_of(held) == coverage
    assert {id_of(memory_key(one.memory.id)) for one in entries}


@given(
    st.lists(st.tuples(INSTANTS, VALUES, st.sampled_from([None, None, 1, 3])), max_size=8),
    st.sampled_from(["fact", "subject"]),
)
def test_a_dry_run_counts_what_a_forget_then_takes(statements, selected):
    """Also what goes on once a row that begins later was never so."""
    service = ram_service()
    for instant, value, length in statements:
        service.clock.advance()
        begin = service.clock.now + (instant - 5) * SECOND  # some before, some after now
        end = length and begin + length * SECOND
        with contextlib.suppress(PillionError):
            service.put(value, valid_from=begin, valid_to=end)
    chosen = {"fact": KEY} if selected == "fact" else {"subject": KEY.subject}
    dry = service.forget(ForgetMode.RETRACT, dry_run=True, **chosen)
    real = service.forget(ForgetMode.RETRACT, **chosen)
    assert dry.memories == real.memories
    assert service.value_at(service.clock.now + 30 * SECOND) is None
    service.close()
