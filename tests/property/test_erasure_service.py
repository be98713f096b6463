"""Erased is as if it had never been said; and live writers are erased whole or stay whole."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError
from pillion.domain.memory import Source, SourceKind
from pillion.domain.mutations import ConflictPolicy
from pillion_storage import codec
from pillion_storage.keys import id_of, memory_key
from pillion_testing.service import (
    MIRA,
    add,
    episode,
    key_of,
    lmdb_service,
    put_fact,
    ram_service,
)

LAST = 12
STATEMENTS = st.lists(
    st.tuples(
        st.integers(0, LAST),  # begins
        st.one_of(st.none(), st.integers(1, 5)),  # lasts
        st.sampled_from("abc"),  # says
        st.integers(0, 3),  # which episode
    ),
    min_size=1,
    max_size=9,
    unique_by=lambda one: one[0],
)


def tell(service, statements, *, without=None):
    """State all of these, but for what one episode said; return the episodes."""
    told = {number: service.one(episode(f"e{number}")).id for number in range(4)}
    for begins, lasts, value, number in statements:
        if number == without:
            continue
        more = {} if lasts is None else {"valid_to": begins + lasts}
        source = Source(SourceKind.USER_STATEMENT, told[number])
        service.write(put_fact(value, valid_from=begins, source=source, **more))
    return told


def timeline(service):
    return [service.value_at(at) for at in range(LAST + 8)]


@given(STATEMENTS, st.integers(0, 3))
def test_what_an_erased_episode_said_was_never_said(statements, number):
    erased, never = ram_service(), ram_service()
    told = tell(erased, statements)
    tell(never, statements, without=number)
    erased.forget(ForgetMode.ERASE, ids=(told[number],))
    assert timeline(erased) == timeline(never)
    for row in erased.listed():
        assert told[number] not in row.episode_ids
    # And it goes on as a timeline: whatever is said next comes to the same.
    for service in (erased, never):
        service.write(put_fact("z", valid_from=5, policy=ConflictPolicy.CORRECT))
    assert timeline(erased) == timeline(never)
    erased.close()
    never.close()


@given(STATEMENTS, st.integers(0, 3))
def test_no_recorded_state_shows_what_was_erased_or_what_nobody_said_then(statements, number):
    service = ram_service()
    told = tell(service, statements)
    head = service.revision
    before = [
        [service.value_at(at, exact_revision=revision) for at in range(LAST)]
        for revision in range(1, head + 1)
    ]
    service.forget(ForgetMode.ERASE, ids=(told[number],))
    for revision, values in enumerate(before, start=1):
        for at, value in enumerate(values):
            assert service.value_at(at, exact_revision=revision) in (value, None)
    service.close()


def check_whole(service):
    """Every row has its place and every place its row."""
    records = service.records()
    rows = set()
    for key, (_, value) in records.items():
        if key[:1] == b"t":
            entry = codec.decode_entry(0, value)
            if entry.is_row:
                assert memory_key(entry.memory_id) in records
                rows.add(entry.memory_id)
    for key, (version, value) in records.items():
        if key[:1] == b"m":
            memory = codec.decode_memory(id_of(key), value, version)
            if memory.is_fact and memory.on_timeline:
                assert memory.id in rows
    for key in records:
        if key[:1] in b"csv":
            assert memory_key(id_of(key)) in records or b"e" + key[-16:] in records


def test_live_writers_are_erased_whole_or_stay_whole(tmp_path):
    (tmp_path / "d").mkdir()
    service = lmdb_service(tmp_path / "d", sealed=True)
    for number in range(30):
        service.write(put_fact(f"old {number}", attribute=f"a{number % 5}", valid_from=number))
        service.write(add(f"old {number}"))
    ended, problems, written = threading.Event(), [], []

    def write(number):
        count = 0
        while not ended.is_set() and count < 40:
            count += 1
            try:
                made = service.write(
                    put_fact(
                        f"new {number} {count}",
                        attribute=f"a{count % 5}",
                        valid_from=1000 + 2 * count + number,
                    ),
                    add(f"new {number} {count}"),
                )
                written.append(made.revision)
            except PillionError as error:
                problems.append(error.reason)

    threads = [threading.Thread(target=write, args=(one,)) for one in range(2)]
    for one in threads:
        one.start()
    report = service.forget(ForgetMode.ERASE, subject=MIRA)
    ended.set()
    for one in threads:
        one.join()
    assert report.memories >= 60
    check_whole(service)
    values = [value for _, value in service.records().values()]
    assert not any(b"old " in value for value in values)
    late = service.write(put_fact("last", attribute="a1", valid_from=10**9), add("last"))
    assert late.revision == service.revision
    assert service.value_at(key=key_of("a1")) == "last"
    check_whole(service)
    service.close()
