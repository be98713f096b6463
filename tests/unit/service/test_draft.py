"""A draft is its store's revision with the changes laid over it, against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.service.draft import SCAN_STEP, Draft
from pillion_storage.api import Batch, Committed, Conflict
from pillion_testing.service import ACME, ram_service

keys = st.integers(0, 40).map(lambda number: b"z%02d" % number)
records = st.dictionaries(keys, st.binary(max_size=2), max_size=40)
changes = st.lists(st.tuples(keys, st.none() | st.binary(max_size=2)), max_size=12)


def over(stored, steps):
    merged = dict(stored)
    for key, value in steps:
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


@given(records, changes, changes, st.tuples(keys, keys), st.booleans())
def test_scans_and_reads_see_the_changes_over_the_store(stored, kept, undone, bounds, reverse):
    assert SCAN_STEP < 40, "or no scan takes more than one page"
    service = ram_service()
    service.store.commit(ACME, Batch(puts=stored))
    draft = Draft(service.store, ACME)
    # What others commit meanwhile is not seen.
    service.store.commit(ACME, Batch(puts=dict.fromkeys(stored, b"later"), deletes=[]))
    for steps in (kept, undone):
        mark = draft.savepoint()
        for key, value in steps:
            if value is None:
                draft.delete(key)
            else:
                draft.put(key, value)
    start, end = sorted(bounds)
    seen = list(draft.scan(start, end, reverse=reverse))
    expected = over(stored, [*kept, *undone])
    assert seen == sorted(
        ((key, value) for key, value in expected.items() if start <= key < end), reverse=reverse
    )
    draft.roll_back(mark)
    expected = over(stored, kept)
    assert {key: draft.get(key) for key in expected} == expected
    assert list(draft.scan(b"", b"\xff")) == sorted(expected.items())
    assert [draft.version(key) for key in stored] == [1] * len(stored)
    service.close()


def test_a_commit_depends_on_every_record_that_was_read():
    service = ram_service()
    service.store.commit(ACME, Batch(puts={b"za": b"1"}))
    for read in (b"za", b"zb"):  # there, and not there
        draft = Draft(service.store, ACME)
        draft.get(read)
        draft.put(b"zc", b"2")
        service.store.commit(ACME, Batch(puts={read: b"other"}))
        assert isinstance(service.store.commit(ACME, draft.batch(None)), Conflict)
    draft = Draft(service.store, ACME)
    draft.put(b"zc", b"2")
    assert isinstance(service.store.commit(ACME, draft.batch(None)), Committed)


def test_a_record_or_a_commit_that_is_too_large_is_refused_by_name():
    service = ram_service()
    draft = Draft(service.store, ACME)
    bound = service.store.features.value_bytes_max
    draft.put(b"z", bytes(bound))
    with pytest.raises(PillionError) as caught:
        draft.put(b"z", bytes(bound + 1))
    assert caught.value.reason is Reason.LIMIT_EXCEEDED
    for number in range(service.store.features.batch_ops_max):
        draft.put(b"z%d" % number)
    assert draft.outgrown
    with pytest.raises(PillionError) as caught:
        draft.batch(None)
    assert caught.value.reason is Reason.LIMIT_EXCEEDED
    assert service.revision == 0
