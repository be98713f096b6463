"""Damage on a real file: reads name it, and verify finds every kind of it."""

from __future__ import annotations

from contextlib import contextmanager

import lmdb
import pytest
from pillion_storage import schema
from pillion_storage.api import Batch, Corrupt, Partition, StoreUnusable, Token
from pillion_storage.lmdb import open_store, records
from pillion_storage.lmdb.environment import open_databases
from pillion_storage.verify import FINDINGS_MAX, verify

P = Partition("n", "t")
PREFIX = records.U32.pack(1)
MARK = b"unmistakable-value"
OLD = b"unmistakable-older-value"
BIG = b"unmistakable-big-value" * 1000


@pytest.fixture
def directory(settings):
    """A closed store with something in every database."""
    store = open_store(settings)
    store.commit(P, Batch(puts={b"a": OLD, b"big": BIG}, token=Token(b"tok", b"memo-of-it")))
    store.commit(P, Batch(puts={b"a": MARK, b"gone": b"1"}, note=b"note-of-it"))
    store.commit(P, Batch(deletes=[b"gone"]))
    store.commit(Partition("n", "other"), Batch(puts={b"a": b"theirs"}))
    store.probe()
    store.close()
    report = verify(settings.directory)
    assert report.clean, report.findings
    assert report.rows == {
        "meta": 4,
        "partitions": 2,
        "heads": 2,
        "current": 3,
        "history": 2,
        "archive": 2,
        "feed": 4,
        "tokens": 1,
        "token_order": 1,
    }
    return settings.directory


def flip(directory, needle):
    """Damage the one place of the live file that holds some bytes."""
    data = directory / "data.mdb"
    content = bytearray(data.read_bytes())
    damaged = 0
    position = content.find(needle)
    while position >= 0:  # older, unused pages hold copies: damage them all
        content[position + len(needle) // 2] ^= 0x10
        damaged += 1
        position = content.find(needle)
    assert damaged
    data.write_bytes(content)


@pytest.mark.parametrize(
    ("needle", "record"),
    [
        (MARK, f"current row {(PREFIX + b'a').hex()}"),
        (BIG, f"current row {(PREFIX + b'big').hex()}"),
        (OLD, "archive row"),
        (b"note-of-it", "feed row"),
        (b"memo-of-it", "tokens row"),
    ],
    ids=["current", "overflow", "archive", "feed", "token"],
)
def test_a_flipped_byte_is_found_and_named(directory, needle, record):
    flip(directory, needle)
    report = verify(directory)
    assert [f.record.startswith(record) for f in report.findings] == [True], report.findings
    assert "checksum mismatch" in report.findings[0].problem


def test_reads_of_a_damaged_record_fail_and_of_others_do_not(directory, settings):
    flip(directory, MARK)
    flip(directory, OLD)
    store = open_store(settings)
    try:
        for read in (
            lambda: store.read(P, [b"a"]),
            lambda: store.read(P, [b"a"], at=1),
            lambda: store.versions(P, b"a"),
            lambda: store.scan(P, b"", b"\xff", limit=9),
            lambda: list(store.export(P)),
            lambda: store.commit(P, Batch(puts={b"a": b"2"})),
            lambda: store.commit(P, Batch(puts={b"x": b"2"}, expect={b"a": 2})),
        ):
            with pytest.raises(Corrupt, match="run `pillion verify`"):
                read()
        assert store.read(P, [b"big"]).entries[b"big"].value == BIG
        assert store.commit(P, Batch(puts={b"x": b"2"})).revision == 4
    finally:
        store.close()


def test_a_damaged_page_is_found_without_opening_the_file(directory):
    data = directory / "data.mdb"
    content = bytearray(data.read_bytes())
    page = content.rfind(MARK) // 4096 * 4096
    content[page + 10] ^= 0xFF  # the flags of the page's header
    data.write_bytes(content)
    report = verify(directory)
    assert not report.clean
    assert {finding.record for finding in report.findings} == {"data.mdb"}


def test_a_file_that_is_no_data_file_is_found(directory):
    (directory / "data.mdb").write_bytes(b"x" * 50_000)
    assert not verify(directory).clean
    with pytest.raises(StoreUnusable, match="does not exist"):
        verify(directory / "elsewhere")


@contextmanager
def editing(directory):
    """Change rows behind the store's back, with right checksums: what a bug would do."""
    with lmdb.open(str(directory), max_dbs=9, lib_version=0, map_size=1 << 26) as env:
        databases = open_databases(env, create=False)
        with env.begin(write=True) as txn:
            yield txn, databases


def edit_head(**changes):
    def edit(txn, databases):
        head = records.unpack_head(PREFIX, txn.get(PREFIX, db=databases.heads))
        for name, value in changes.items():
            setattr(head, name, value)
        txn.put(PREFIX, head.pack(), db=databases.heads)

    return edit


def put(database, key, row):
    return lambda txn, databases: txn.put(key, row, db=getattr(databases, database.name))


def delete(database, key):
    return lambda txn, databases: txn.delete(key, db=getattr(databases, database.name))


REVISION_1 = PREFIX + records.U64.pack(1)
REVISION_2 = PREFIX + records.U64.pack(2)
STRAY = records.U32.pack(9) + b"a"
TOKEN = PREFIX + b"tok"
A = PREFIX + b"a"


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (edit_head(live_keys=7), "says 7 live_keys, there are 2"),
        (edit_head(live_bytes=1), "says 1 live_bytes"),
        (edit_head(kept_versions=0), "says 0 kept_versions, there are 2"),
        (edit_head(kept_bytes=0), "says 0 kept_bytes"),
        (edit_head(tokens=2), "says 2 tokens, there are 1"),
        (edit_head(revision=4), "the feed ends before revision 4"),
        (edit_head(revision=1), "version 2 was never committed"),
        (edit_head(recorded_at=1), "its time is not that of the last change"),
        (delete(schema.HEADS, PREFIX), "its partition has no head"),
        (
            delete(schema.PARTITIONS, records.partition_key(P)),
            "belongs to no partition",
        ),
        (
            put(
                schema.PARTITIONS,
                b"\1xy",
                records.pack_partition(b"\1xy", records.PartitionRow(1, 0, bytes(32))),
            ),
            "shares number 1",
        ),
        (
            put(
                schema.PARTITIONS,
                b"\1xy",
                records.pack_partition(b"\1xy", records.PartitionRow(77, 0, bytes(32))),
            ),
            "has no head",
        ),
        (delete(schema.CURRENT, A), "says 2 live_keys, there are 1"),
        (put(schema.CURRENT, A, records.pack_current(A, 9, MARK)), "version 9 was never"),
        (put(schema.CURRENT, STRAY, records.pack_current(STRAY, 1, b"")), "has no head"),
        (put(schema.CURRENT, A, records.seal(schema.CURRENT, A, b"")), "was never committed"),
        (delete(schema.FEED, REVISION_2), "revision 2 is missing"),
        (delete(schema.FEED, REVISION_1), "revision 1 is missing"),
        (
            put(schema.FEED, REVISION_2, records.pack_change(REVISION_2, 5, b"", [])),
            "recorded before its predecessor",
        ),
        (
            put(schema.FEED, REVISION_2, records.seal(schema.FEED, REVISION_2, b"short")),
            "unreadable",
        ),
        (delete(schema.HISTORY, A), "history and archive differ in length"),
        (
            put(schema.HISTORY, A, records.pack_history(A, records.Ended(2, 3, 9))),
            "the value of version 2 is missing",
        ),
        (
            put(schema.HISTORY, A, records.pack_history(A, records.Ended(1, 3, 0))),
            "overlaps version 1",
        ),
        (
            put(schema.HISTORY, A, records.pack_history(A, records.Ended(0, 2, 0))),
            "version 0 can't end at 2",
        ),
        (
            put(schema.HISTORY, A, records.pack_history(A, records.Ended(2, 3, 0))),
            "refers to another key's value",
        ),
        (
            delete(schema.ARCHIVE, records.Ended(1, 2, 0).archive_key(PREFIX)),
            "the value of version 1 is missing",
        ),
        (
            put(
                schema.ARCHIVE,
                (archive_key := records.Ended(1, 2, 0).archive_key(PREFIX)),
                records.pack_archived(archive_key, records.Archived(1, True, b"a", OLD)),
            ),
            "did not end as it says",
        ),
        (
            put(
                schema.ARCHIVE,
                archive_key,
                records.pack_archived(archive_key, records.Archived(2, False, b"a", OLD)),
            ),
            "ended before it began",
        ),
        (
            put(
                schema.TOKENS,
                TOKEN,
                records.pack_token(TOKEN, records.TokenRow(8, 1, None)),
            ),
            "revision 8 was never committed",
        ),
        (delete(schema.TOKENS, TOKEN), "its token is missing"),
        (delete(schema.TOKEN_ORDER, REVISION_1), "is missing in the order of tokens"),
        (
            put(
                schema.TOKEN_ORDER,
                REVISION_2,
                records.pack_token_order(REVISION_2, b"tok"),
            ),
            "tokens and their order differ in length",
        ),
        (put(schema.META, b"probe", b"12345678"), "checksum mismatch"),
        (put(schema.META, b"format", b"12345678"), "checksum mismatch"),
        (delete(schema.META, b"format"), "meta row 666f726d6174: missing"),
    ],
)
def test_every_broken_reference_and_counter_is_found(directory, edit, problem):
    with editing(directory) as (txn, databases):
        assert edit(txn, databases) is not False
    report = verify(directory)
    assert any(problem in finding.problem for finding in report.findings), report.findings


def test_findings_are_bounded_but_all_are_counted(directory):
    count = FINDINGS_MAX + 50
    with editing(directory) as (txn, databases):
        for number in range(count):
            txn.put(STRAY + b"%d" % number, b"rubbish", db=databases.current)
    report = verify(directory)
    assert len(report.findings) == FINDINGS_MAX
    assert report.findings_total == count
