"""The erasure ledger: only ever appended to, and nothing in it can be changed unseen."""

from __future__ import annotations

from uuid import UUID

import pytest
from pillion_storage.erasure_ledger import ErasureLedger, LedgerEntry
from pillion_storage.errors import Corrupt, StoreFailed


def entry(number):
    return LedgerEntry(
        erasure=UUID(int=number),
        partition=b"p" * 16,
        recorded_at=number,
        subject=b"",
        ids=(bytes([number]) * 16,),
        key_ids=(bytes([number]) * 8,),
    )


@pytest.fixture
def path(tmp_path):
    ledger = ErasureLedger(tmp_path / "ledger")
    for number in range(1, 4):
        ledger.append(entry(number))
    return tmp_path / "ledger"


def test_what_was_appended_is_read_and_a_repeat_adds_nothing(path):
    ledger = ErasureLedger(path)
    assert ledger.entries() == [entry(1), entry(2), entry(3)]
    before = path.read_bytes()
    assert ledger.append(entry(2)) == ledger.find(UUID(int=2))
    assert path.read_bytes() == before
    assert ledger.find(UUID(int=9)) is None
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_line_that_a_stop_cut_short_is_cut_off(path):
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"format":1,"era')
    ledger = ErasureLedger(path)
    assert len(ledger.entries()) == 3
    ledger.append(entry(4))
    assert ErasureLedger(path).entries() == [entry(number) for number in range(1, 5)]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_no_line_is_changed_moved_or_taken_out_unseen(path, number):
    lines = path.read_bytes().splitlines(keepends=True)
    changed = [*lines]
    changed[number] = changed[number].replace(b'"recorded_at_us":', b'"recorded_at_us":7')
    moved = [*lines[number:], *lines[:number]]
    damaged = [changed] if number == 0 else [changed, moved]
    if number < 2:
        damaged.append([*lines[:number], *lines[number + 1 :]])
    for one in damaged:
        path.write_bytes(b"".join(one))
        with pytest.raises(Corrupt, match="line"):
            ErasureLedger(path)


def test_a_place_that_cannot_be_written_to_is_told_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    ledger = ErasureLedger(tmp_path / "file" / "ledger")
    with pytest.raises(StoreFailed, match="can't be written"):
        ledger.check_writable()
