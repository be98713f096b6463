"""Attributes that are sets: each member has a timeline of its own, the key has one version."""

import threading

import pytest
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import EndReason, MemoryStatus, Source, SourceKind
from pillion.domain.mutations import Guard, Outcome
from pillion.domain.queries import Filter, ReadAt, Target
from pillion.domain.schemas import Cardinality
from pillion.domain.scope import Partition
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import SECOND, START
from pillion_testing.service import (
    EXISTS,
    NEW,
    confirm,
    episode,
    key_of,
    lmdb_service,
    member_of,
    patch,
    put_fact,
    ram_service,
    refusal,
    restore,
    retract,
    version_is,
)

SPEAKS = key_of("speaks")
INFERRED = Source(SourceKind.INFERENCE)
TOLD_MEMBER = "target.fact.member"


def at(instant: int) -> int:
    return START + (instant - 100) * SECOND


def member(value, attribute="speaks"):
    return member_of(value, attribute)


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path)
    made.register(attribute="speaks", cardinality=Cardinality.SET)
    yield made
    made.close()


def add(service, value, **more):
    return service.put(value, attribute="speaks", **more)


def held(service, **read):
    """The members that hold, by a listing."""
    found = service.listed(
        Filter(attributes=frozenset({"speaks"}), statuses=frozenset()), read=ReadAt(**read)
    )
    return sorted(one.value.data for one in found if one.status is not MemoryStatus.CANDIDATE)


def get(service, key, **read):
    """The value of a key by the short way of Get; None: not found."""
    try:
        found, _ = service.use_cases.reader.get(
            service.partition,
            Target(fact=key),
            ReadAt(**read),
            include_vector=False,
            deadline=service.patience,
        )
    except PillionError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        return None
    return found.memory.value.data


def test_members_hold_side_by_side_from_one_instant_on(service):
    for value in ("de", "fr", "pt"):
        made = add(service, value, valid_from=at(5))
        assert (made.outcome, made.superseded_id) == (Outcome.CREATED, None)
        assert made.fact_version == service.revision
    assert held(service) == ["de", "fr", "pt"]
    assert held(service, as_of=at(4)) == []
    for value in ("de", "fr", "pt"):
        assert get(service, member(value)) == value
        assert get(service, member(value), as_of=at(4)) is None
    again = add(service, "de", valid_from=at(8))
    assert again.outcome is Outcome.EVIDENCE
    assert add(service, "de", valid_from=at(2)).outcome is Outcome.INSERTED
    assert get(service, member("de"), as_of=at(3)) == "de"
    assert held(service) == ["de", "fr", "pt"]


def test_the_integer_one_is_another_member_than_the_text(service):
    number = Value(ValueKind.INTEGER, 1)
    add(service, number)
    add(service, "1")
    assert get(service, member(number)) == 1
    assert get(service, member("1")) == "1"


def test_ends_retractions_and_their_undoing_are_of_one_member(service):
    row = add(service, "de", valid_from=at(1))
    add(service, "fr", valid_from=at(1))
    add(service, "pt", valid_from=at(1), valid_to=at(6))
    ended = service.one(retract(key=member("de"), valid_to=at(4)))
    assert ended.id == row.id
    assert held(service, as_of=at(5)) == ["fr", "pt"]
    assert held(service, as_of=at(3)) == ["de", "fr", "pt"]
    assert held(service) == ["fr"]
    service.one(restore(row.id))
    assert held(service) == ["de", "fr"]
    service.one(retract(row.id, valid_to=at(1)))  # by its id, as never having been so
    assert service.get(row.id).end_reason is EndReason.WITHDRAWN
    assert held(service, as_of=at(3)) == ["fr", "pt"]
    service.one(restore(row.id))
    add(service, "de", valid_from=at(9))
    assert held(service) == ["de", "fr"]
    assert get(service, member("pt"), as_of=at(5)) == "pt"
    assert get(service, member("pt")) is None


def test_the_past_is_read_by_member(service):
    add(service, "de", valid_from=at(1))
    service.clock.advance()
    before, known = service.revision, service.clock.now
    service.clock.advance()
    service.one(retract(key=member("de"), valid_to=at(1)))
    add(service, "fr", valid_from=at(1))
    assert get(service, member("de")) is None
    for read in ({"exact_revision": before}, {"known_at": known}):
        assert get(service, member("de"), **read) == "de"
        assert get(service, member("fr"), **read) is None
        assert held(service, **read) == ["de"]


def test_a_set_is_asked_for_by_member_and_nothing_else_is(service):
    add(service, "de")
    service.put("v", attribute="one")
    service.register(attribute="registered")
    service.put("v", attribute="registered")
    for read in (ReadAt(), ReadAt(as_of=at(1)), ReadAt(exact_revision=service.revision)):
        wrong = [
            SPEAKS,
            member("v", "one"),
            member("v", "registered"),
            member("v", "never_seen"),
        ]
        for key in wrong:
            for vector in (False, True):
                with service.refuses(Reason.INVALID_FIELD, TOLD_MEMBER):
                    service.use_cases.reader.get(
                        service.partition,
                        Target(fact=key),
                        read,
                        include_vector=vector,
                        deadline=service.patience,
                    )
        assert get(service, member("xx"), exact_revision=read.exact_revision) is None
    assert get(service, key_of("one")) == "v"
    assert get(service, key_of("registered")) == "v"
    assert get(service, key_of("never_seen")) is None


def test_another_tenant_has_no_set(service):
    other = Partition("production", "other")
    add(service, "de")
    reader = service.use_cases.reader
    for key, reason in ((SPEAKS, Reason.NOT_FOUND), (member("de"), Reason.INVALID_FIELD)):
        refused = refusal(
            lambda key=key: reader.get(
                other, Target(fact=key), ReadAt(), include_vector=False, deadline=service.patience
            )
        )
        assert refused.reason is reason
    assert service.store.partitions() == [service.partition]


def test_a_retraction_by_key_names_the_member(service):
    add(service, "de")
    service.put("v", attribute="one")
    place = "mutations[0].retract_memory.fact.member"
    for key in (SPEAKS, member("v", "one"), member("v", "never_seen")):
        with service.refuses(Reason.INVALID_FIELD, place):
            service.one(retract(key=key))
    with service.refuses(Reason.NOT_FOUND):
        service.one(retract(key=member("fr")))


def test_the_version_is_of_the_whole_set(service):
    first = add(service, "de", when=NEW)
    with service.refuses(Reason.ALREADY_EXISTS):
        add(service, "fr", when=NEW)
    second = add(service, "fr", when=version_is(first.fact_version))
    with service.refuses(Reason.VERSION_MISMATCH):
        add(service, "pt", when=version_is(first.fact_version))
    assert service.current(member("de")).fact_version == second.fact_version
    guard = Guard(version_is(second.fact_version), fact=SPEAKS)
    service.write(put_fact("x", attribute="other"), guards=(guard,))
    last = service.one(retract(key=member("de"), when=version_is(second.fact_version)))
    assert last.fact_version == service.current(member("fr")).fact_version
    with service.refuses(Reason.VERSION_MISMATCH):
        service.write(put_fact("y", attribute="other"), guards=(guard,))
    with service.refuses(Reason.INVALID_FIELD, "guards[0].fact.member"):
        named = Guard(EXISTS, fact=member("fr"))
        service.write(put_fact("y", attribute="other"), guards=(named,))


def test_members_of_one_write_see_each_other(service):
    results = service.write(
        *(put_fact(value, attribute="speaks", valid_from=at(1)) for value in ("a", "b", "a"))
    ).results
    assert [one.outcome for one in results] == [
        Outcome.CREATED,
        Outcome.CREATED,
        Outcome.EVIDENCE,
    ]
    assert results[2].id == results[0].id
    assert held(service) == ["a", "b"]


def test_history_is_of_the_set_or_of_a_member(service):
    add(service, "de", valid_from=at(1))
    add(service, "fr", valid_from=at(2))
    add(service, "guess", source=INFERRED)
    service.one(retract(key=member("de"), valid_to=at(5)))
    entries, _, _ = service.history(SPEAKS)
    assert [(one.memory.value.data, one.to_revision > 0) for one in entries] == [
        ("de", True),
        ("de", False),
        ("fr", False),
    ]
    entries, _, _ = service.history(member("de"))
    assert [one.memory.value.data for one in entries] == ["de", "de"]
    page, token, _ = service.history(member("de"), page_size=1)
    assert len(page) == 1
    rest, end, _ = service.history(member("de"), page_size=1, page_token=token)
    assert (len(rest), end) == (1, "")
    for key in (SPEAKS, member("fr")):
        with service.refuses(Reason.PAGE_TOKEN_INVALID):
            service.history(key, page_size=1, page_token=token)
    for value in ("guess", "xx"):
        with service.refuses(Reason.NOT_FOUND):
            service.history(member(value))
    service.put("v", attribute="one")
    for attribute in ("one", "never_seen"):
        with service.refuses(Reason.INVALID_FIELD, "fact.member"):
            service.history(member("v", attribute))


@pytest.mark.parametrize("mode", [ForgetMode.EXPIRE, ForgetMode.RETRACT])
def test_one_member_is_forgotten_or_the_whole_set(service, mode):
    for value in ("de", "fr", "pt"):
        add(service, value, valid_from=at(1))
    guess = add(service, "de", source=INFERRED)
    other = add(service, "xx", source=INFERRED)
    assert service.forget(mode, fact=member("de"), dry_run=True).memories == 2
    assert service.forget(mode, fact=member("de")).memories == 2
    assert held(service) == ["fr", "pt"]
    left = {one.id for one in service.listed(Filter(statuses=frozenset()))}
    assert guess.id not in left
    assert other.id in left
    assert service.forget(mode, fact=member("xy")).memories == 0
    assert service.forget(mode, fact=SPEAKS).memories == 3
    assert held(service) == []
    service.put("v", attribute="one")
    for attribute in ("one", "never_seen"):
        with service.refuses(Reason.INVALID_FIELD, "selector.fact.member"):
            service.forget(mode, fact=member("v", attribute))
    assert add(service, "de").outcome is not Outcome.EVIDENCE
    assert held(service) == ["de"]


def test_a_guess_joins_the_timeline_of_its_member(service):
    add(service, "de", valid_from=at(1))
    guess = add(service, "fr", source=INFERRED, valid_from=at(1))
    same = add(service, "de", source=INFERRED, valid_from=at(3))
    assert held(service) == ["de"]
    service.one(confirm(guess.id))
    assert held(service) == ["de", "fr"]
    assert get(service, member("fr")) == "fr"
    assert service.one(confirm(same.id)).outcome is Outcome.EVIDENCE
    assert held(service) == ["de", "fr"]


def test_a_guess_is_promoted_by_episodes(service):
    add(service, "de", valid_from=at(1))
    for number in range(3):
        said = service.one(episode(f"said {number}", indexed=False)).id
        last = add(service, "fr", source=Source(SourceKind.INFERENCE, said), valid_from=at(1))
    assert last.outcome is Outcome.CREATED
    assert held(service) == ["de", "fr"]
    assert get(service, member("fr")) == "fr"


def test_a_guess_from_before_the_registration_joins_as_a_member(service):
    guess = service.put("a", attribute="late", source=INFERRED)
    service.register(attribute="late", cardinality=Cardinality.SET)
    service.put("b", attribute="late")
    service.one(confirm(guess.id))
    for value in "ab":
        assert get(service, member(value, "late")) == value


def test_a_guess_from_when_it_was_a_set_joins_as_the_one_value(service):
    guess = add(service, "a", source=INFERRED)
    service.register(attribute="speaks")  # no row is there yet
    add(service, "b", valid_from=at(1))
    service.one(confirm(guess.id))
    assert get(service, SPEAKS) == "a"
    assert get(service, SPEAKS, as_of=at(2)) == "b"
    with service.refuses(Reason.INVALID_FIELD, TOLD_MEMBER):
        get(service, member("a"))


def test_other_changes_of_a_row_leave_its_timeline_as_it_is(service):
    row = add(service, "de", valid_from=at(1))
    add(service, "de", valid_from=at(5))
    service.one(patch(row.id, labels=("x",)))
    service.one(confirm(row.id))
    service.forget(ids=(row.id,))
    assert get(service, member("de")) is None
    assert add(service, "de", valid_from=at(7)).outcome is Outcome.SUPERSEDED
    assert get(service, member("de")) == "de"
    assert service.found() == [service.current(member("de")).id]


def test_an_import_of_members_can_be_run_again(service):
    items = [
        put_fact(value, attribute="speaks", valid_from=at(1), id=service.ids.new_id())
        for value in ("a", "b", "a")
    ]
    assert service.import_(*items).written == 3
    before = service.records()
    assert service.import_(*items).existing == 3
    assert service.records() == before
    assert held(service) == ["a", "b"]


def test_concurrent_adders_all_land(service):
    values = [f"v{number}" for number in range(8)]
    start = threading.Barrier(len(values))

    def run(value):
        start.wait()
        add(service, value, valid_from=at(1))

    in_threads(run, values)
    assert held(service) == values


def test_of_concurrent_adders_with_a_version_one_wins(service):
    version = add(service, "first", valid_from=at(1)).fact_version
    values = [f"v{number}" for number in range(8)]
    start = threading.Barrier(len(values))
    refused = []

    def run(value):
        start.wait()
        error = refusal(lambda: add(service, value, when=version_is(version), valid_from=at(1)))
        if error is not None:
            refused.append(error.reason)

    in_threads(run, values)
    assert refused == [Reason.VERSION_MISMATCH] * 7
    assert len(held(service)) == 2


def in_threads(run, values):
    threads = [threading.Thread(target=run, args=(value,)) for value in values]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
