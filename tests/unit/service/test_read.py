"""Get, BatchGet, List and History: edges, pages and both clocks."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import EndReason, MemoryStatus
from pillion.domain.queries import Filter, ReadAt, Target, Window
from pillion.service import history
from pillion_storage import codec
from pillion_testing.fakes import START, Patience, uuid7
from pillion_testing.service import (
    EVERYTHING,
    MIRA,
    add,
    episode,
    floats,
    key_of,
    patch,
    ram_service,
    retract,
)

FIELD = Reason.INVALID_FIELD
BAD_TOKEN = Reason.PAGE_TOKEN_INVALID


def batch_get(service, *targets, vectors=False, **read):
    return service.use_cases.reader.batch_get(
        service.partition,
        targets,
        ReadAt(**read),
        include_vectors=vectors,
        deadline=service.patience,
    )


def test_a_batch_is_read_in_order_with_gaps(service):
    memory = service.one(add("m", vector=floats(1, 2))).id
    told = service.one(episode("e")).id
    row = service.put("v")
    found, revision = batch_get(
        service,
        Target(episode_id=told),
        Target(memory_id=uuid7(999)),
        Target(memory_id=memory),
        Target(fact=key_of()),
        Target(fact=key_of("unheard")),
        Target(memory_id=memory),
        vectors=True,
    )
    assert revision == service.revision
    assert found[0].episode.id == told
    assert found[1] is None
    assert (found[2].memory.id, found[2].vector) == (memory, floats(1, 2))
    assert found[3].memory.id == row.id
    assert found[3].memory.fact_version == row.fact_version
    assert found[4] is None
    assert found[5] == found[2]


def test_the_present_never_pairs_a_row_with_the_version_of_a_later_one(service):
    """Writes that land at any moment of a read: what it returns was so at its revision."""
    service.put("0")
    versions = {"0": service.current().fact_version}
    others_write = False

    def after_a_write(ask):
        def answer(*given):
            nonlocal others_write
            if others_write:
                others_write = False
                service.clock.advance(1)
                value = str(len(versions))
                versions[value] = service.put(value).fact_version
                service.clock.advance(1)
                others_write = True
            return ask(*given)

        return answer

    service.clock.now_us = after_a_write(service.clock.now_us)
    service.store.head = after_a_write(service.store.head)
    others_write = True
    found = service.current()
    assert len(versions) > 1
    assert found.fact_version == versions[found.value.data]


@pytest.mark.parametrize(
    ("targets", "reason", "field"),
    [
        ((), FIELD, "targets"),
        ((Target(memory_id=uuid7(1)),) * 101, Reason.LIMIT_EXCEEDED, "targets"),
        ((Target(fact=key_of("")),), FIELD, "target.fact.attribute"),
    ],
)
def test_malformed_batches_are_refused(service, targets, reason, field):
    with service.refuses(reason, field):
        batch_get(service, *targets)


def test_what_is_missing_is_not_found(service):
    for target in (
        Target(memory_id=uuid7(9)),
        Target(episode_id=uuid7(9)),
        Target(fact=key_of()),
    ):
        with service.refuses(Reason.NOT_FOUND):
            service.use_cases.reader.get(
                service.partition,
                target,
                ReadAt(),
                include_vector=False,
                deadline=service.patience,
            )


def test_a_read_waits_for_its_revision_no_longer_than_asked(service):
    service.write(add())
    assert batch_get(service, Target(memory_id=uuid7(1)), at_least_revision=1)[1] == 1
    service.patience = Patience(0)
    with service.refuses(Reason.FUTURE_REVISION):
        batch_get(service, Target(memory_id=uuid7(1)), at_least_revision=2)


# --- pages -------------------------------------------------------------------------------------


def pages(service, filter_, between=lambda: None, **more):
    """All ids of a listing, page by page, with something happening between pages."""
    ids, token = [], ""
    while True:
        page = service.list(filter_, page_token=token, **more)
        ids += [(one.memory or one.episode).id for one in page.records]
        token = page.next_token
        if not token:
            return ids
        between()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("subjects", [frozenset(), frozenset({MIRA})])
@pytest.mark.parametrize("episodes", [False, True])
def test_pages_are_stable_while_writes_go_on(service, size, subjects, episodes):
    ids = []
    for number in range(7):
        made = service.one(episode(str(number)))
        ids.append(made.id if episodes else made.memory_id)
        service.clock.advance(number % 2)  # some at one instant: they go by id
    left = list(ids)

    def disturb():
        service.write(episode("new"), add("new"))
        service.forget(ids=(left.pop(),))

    wanted = Filter(subjects=subjects)
    assert pages(service, wanted, disturb, page_size=size, episodes=episodes) == ids


def test_a_listing_over_many_records_with_a_narrow_filter(service):
    for _ in range(6):
        service.write(*[add(str(number), importance=number / 100) for number in range(99)])
    wanted = Filter(importance_min=0.975)
    assert len(pages(service, wanted, page_size=1)) == 6


def test_a_page_token_belongs_to_its_listing(service):
    for number in range(3):
        service.write(episode(str(number)))
    page = service.list(Filter(), page_size=1)
    for change in (
        {"filter_": Filter(labels_all=frozenset({"x"}))},
        {"filter_": Filter(subjects=frozenset({MIRA}))},
        {"episodes": True},
        {"read": ReadAt(as_of=START)},
    ):
        with service.refuses(BAD_TOKEN, "page_token"):
            service.list(page_token=page.next_token, **{"filter_": Filter(), **change})


@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda b: base64.b64encode(b).decode()))
def test_a_made_up_page_token_is_refused(text):
    service = ram_service()
    service.write(add())
    if not text:
        return
    with service.refuses(BAD_TOKEN, "page_token"):
        service.list(page_token=text)


@pytest.mark.parametrize(
    ("place", "forged"), [(0, -1), (0, 2**40), (0, True), (1, 2**63), (2, b"m"), (2, b"")]
)
def test_a_tampered_page_token_is_refused(service, place, forged):
    service.write(*[add(str(number)) for number in range(3)])
    token = service.list(Filter(), page_size=1).next_token
    body = codec.unpack(base64.urlsafe_b64decode(token))
    body[place] = forged
    forged_token = base64.urlsafe_b64encode(codec.pack(body)).decode()
    if (place, forged) == (2, b""):
        assert len(service.list(Filter(), page_token=forged_token).records) == 3
        return
    with service.refuses(BAD_TOKEN, "page_token"):
        service.list(Filter(), page_token=forged_token)


def test_sizes_of_pages_are_bounded(service):
    with service.refuses(FIELD, "page_size"):
        service.list(page_size=-1)
    for _ in range(12):
        service.write(*[add(str(number)) for number in range(100)])
    assert len(service.list(Filter(), page_size=0).records) == 50
    assert len(service.list(Filter(), page_size=10**9).records) == 1000


def test_listings_read_the_filter_and_the_instant(service):
    service.put("old", valid_from=START - 9)
    service.put("new", valid_from=START - 5)
    assert [one.value.data for one in service.listed(Filter())] == ["new"]
    past = service.listed(Filter(), read=ReadAt(as_of=START - 7))
    assert [one.value.data for one in past] == ["old"]
    by_begin = Filter(valid_from=Window(START - 6, None), valid_only=False)
    assert [one.value.data for one in service.listed(by_begin)] == ["new"]
    with service.refuses(FIELD, "read.as_of"):
        service.list(read=ReadAt(as_of=2**62))


# --- history -----------------------------------------------------------------------------------


def test_history_on_both_clocks(service):
    first = service.put("a", valid_from=START - 9)
    service.clock.advance(10)
    second = service.put("b", valid_from=START - 5)
    service.clock.advance(10)
    service.write(retract(second.id, valid_to=START - 2))
    entries, token, revision = service.history(key_of())
    assert (token, revision) == ("", 3)
    shown = [
        (
            one.memory.id,
            one.memory.valid_from - START,
            one.memory.end_reason,
            one.from_revision,
            one.to_revision,
            one.recorded_from - START,
            one.recorded_to - START if one.recorded_to is not None else None,
        )
        for one in entries
    ]
    assert shown == [
        (first.id, -9, EndReason.OPEN, 1, 2, 0, 10),
        (first.id, -9, EndReason.SUPERSEDED, 2, 0, 10, None),
        (second.id, -5, EndReason.OPEN, 2, 3, 10, 20),
        (second.id, -5, EndReason.RETRACTED, 3, 0, 20, None),
    ]


def test_history_of_one_memory_and_by_pages(service):
    made = service.one(add("0"))
    for number in range(1, 8):
        service.write(patch(made.id, text=str(number)))
    texts, token = [], ""
    while True:
        entries, token, _ = service.history(memory_id=made.id, page_size=3, page_token=token)
        texts += [one.memory.text for one in entries]
        if not token:
            break
        service.write(patch(made.id, text="later"))
    assert texts == [str(number) for number in range(8)]
    with service.refuses(BAD_TOKEN, "page_token"):
        service.history(key_of(), page_token="xx")  # noqa: S106


def test_a_long_history_of_large_records_is_whole(service):
    """The store ends a page of versions early when they are large."""
    made = service.one(add("x" * 32_000))
    for number in range(200):
        service.write(patch(made.id, text=f"{number:03d}" + "x" * 32_000))
    first, token, _ = service.history(memory_id=made.id, page_size=1000)
    rest, _, _ = service.history(memory_id=made.id, page_size=1000, page_token=token)
    assert [one.from_revision for one in first + rest] == list(range(1, 202))


def test_a_page_of_history_costs_what_is_on_it(service, monkeypatch):
    """What a page passes is neither decoded whole nor dated."""
    made = service.one(add("0"))
    for number in range(1, 60):
        service.write(patch(made.id, text=str(number)))
    whole, _, _ = service.history(memory_id=made.id)
    assert len(whole) == 60
    asked = []
    decode, changes = codec.decode_memory, service.store.changes
    monkeypatch.setattr(codec, "decode_memory", lambda *a: asked.append("decode") or decode(*a))
    monkeypatch.setattr(
        service.store, "changes", lambda *a, **more: asked.append("time") or changes(*a, **more)
    )
    first, token, _ = service.history(memory_id=made.id, page_size=2)
    more, _, _ = service.history(memory_id=made.id, page_size=30, page_token=token)
    assert first + more == whole[:32]
    assert (asked.count("decode"), asked.count("time")) == (32, 3 + 31)


@pytest.mark.parametrize("checks", [2, 5])
def test_a_history_ends_with_its_deadline_within_one_memory(service, monkeypatch, checks):
    monkeypatch.setattr(history, "VERSIONS_STEP", 10)
    made = service.one(add("0"))
    for number in range(1, 60):
        service.write(patch(made.id, text=str(number)))
    read = []
    versions = service.store.versions
    monkeypatch.setattr(
        service.store, "versions", lambda *a, **more: read.append(1) or versions(*a, **more)
    )

    class RunningOut(Patience):
        """A deadline that passes after some looks at it."""

        left = checks

        def check(self):
            self.left -= 1
            if self.left < 0:
                raise PillionError(Reason.DEADLINE_EXCEEDED, "the deadline has passed")

    service.patience = RunningOut()
    with service.refuses(Reason.DEADLINE_EXCEEDED):
        service.history(memory_id=made.id, page_size=1)
    assert len(read) <= checks


def test_what_a_trim_takes_while_a_page_is_made_is_not_on_it(service, monkeypatch):
    made = service.one(add("0"))
    for number in range(1, 6):
        service.write(patch(made.id, text=str(number)))
    check = history.check_kept
    trims = iter([{"history_before": 4, "feed_before": 0, "tokens_before_us": 0}])

    def meanwhile(*args):
        check(*args)
        for trim in trims:
            service.store.trim(service.partition, **trim)

    monkeypatch.setattr(history, "check_kept", meanwhile)
    entries, token, _ = service.history(memory_id=made.id)
    assert [one.memory.text for one in entries] == ["3", "4", "5"]
    assert not token


def test_history_of_what_never_was_is_not_found(service):
    with service.refuses(Reason.NOT_FOUND):
        service.history(key_of())
    with service.refuses(Reason.NOT_FOUND):
        service.history(memory_id=uuid7(9))
    with service.refuses(FIELD, "target"):
        service.history()


def test_a_guess_is_no_part_of_history_before_it_is_confirmed(service):
    service.put("w", status=MemoryStatus.CANDIDATE)
    with service.refuses(Reason.NOT_FOUND):
        service.history(key_of())
    service.put("v", valid_from=START - 5)
    entries, _, _ = service.history(key_of())
    assert [one.memory.value.data for one in entries] == ["v"]


def test_everything_is_listed_on_request(service):
    service.write(add("candidate", status=MemoryStatus.CANDIDATE))
    gone = service.one(add("gone")).id
    service.forget(ids=(gone,))
    assert {one.text for one in service.listed(EVERYTHING)} == {"candidate", "gone"}
    assert service.listed(Filter()) == []
    with pytest.raises(PillionError):
        service.get(uuid7(1))
