"""Stored memories become table rows in Rust as they do in Python, whatever they hold."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import msgpack
import numpy as np
import pillion_ranker as ranker
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.memory import (
    EndReason,
    Memory,
    MemoryKind,
    MemoryStatus,
    Recurrence,
    Source,
    SourceKind,
)
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion.service.table_load import load_table
from pillion.service.table_rows import TableRows
from pillion_storage import codec
from pillion_storage.access_codec import Access, encode_access
from pillion_storage.api import Batch, StoreSettings
from pillion_storage.keys import KeySpace, access_key, memory_key, vector_key
from pillion_storage.lmdb import open_store as open_lmdb
from pillion_storage.packed import scan_packed
from pillion_storage.ram.store import RamStore
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed

if TYPE_CHECKING:
    from pathlib import Path

HERE = Partition("production", "acme")
SECRET = bytes(range(32))
KEYS = KeySpace(SECRET)
DIMENSION = 3

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(["", "a", "travel"]) | texts
instants = st.integers(-(2**40), 2**53)
ends = st.just(2**63 - 1) | instants
ids = st.uuids()
shares = st.floats(0, 1) | st.sampled_from([0, 1])
sources = st.builds(Source, st.sampled_from(SourceKind), st.none() | ids, texts, texts)
values = (
    st.builds(Value, st.just(ValueKind.TEXT), texts)
    | st.builds(Value, st.just(ValueKind.JSON), st.just('{"a":[1]}'))
    | st.builds(Value, st.just(ValueKind.INTEGER), st.integers(-(2**63), 2**63 - 1))
    | st.builds(Value, st.just(ValueKind.SUBJECT), st.builds(Subject, names, names))
)
memories = st.builds(
    lambda **parts: codec.decode_memory(UUID(int=1), codec.encode_memory(_bare(**parts)), 1),
    subject=st.builds(Subject, names, names),
    kind=st.sampled_from(MemoryKind),
    text=texts,
    source=sources,
    valid_from=instants,
    created_at=instants,
    updated_at=instants,
    context=names,
    attribute=names,
    value=st.none() | values,
    importance=shares,
    confidence=shares,
    status=st.sampled_from(MemoryStatus),
    pinned=st.booleans(),
    pii_labels=st.lists(names, max_size=2).map(tuple),
    labels=st.lists(names, max_size=20).map(tuple),
    derived_from=st.lists(ids, max_size=2).map(tuple),
    consolidated_into=st.none() | ids,
    valid_to=ends,
    end_reason=st.integers(0, 5),
    last_used_at=instants,
    use_count=st.integers(0, 2**40),
    recurrence=st.builds(Recurrence, st.integers(0, 3), st.lists(ids, max_size=3).map(tuple)),
    confirmation=st.none() | sources,
    expires_at=ends,
    expired_at=ends,
    session_id=names,
)
floats32 = st.floats(width=32) | st.sampled_from([0.0, 1.0, 3.4e38, 1e-45])
vectors = st.none() | st.lists(floats32, max_size=4).map(
    lambda one: struct.pack(f"<{len(one)}f", *one)
)
accesses = st.none() | st.builds(Access, st.integers(0, 2**40), instants)
records = st.lists(
    st.tuples(ids, memories, vectors, accesses), max_size=6, unique_by=lambda one: one[0]
)


def _bare(**parts):
    parts["end_reason"] = EndReason(parts["end_reason"])
    return Memory(id=UUID(int=1), **parts)


def stored(some) -> dict[bytes, bytes]:
    """The puts of these memories, each with what is beside it."""
    puts = {}
    for one, memory, vector, access in some:
        puts[memory_key(one)] = codec.encode_memory(memory)
        if vector is not None:
            puts[vector_key(one)] = vector
        if access is not None:
            puts[access_key(one)] = encode_access(access)
    return {key: value for key, value in puts.items() if value}


class Columns:
    """In the place of a table: keeps the columns that it is given."""

    dimension = DIMENSION

    def upsert(self, **columns):
        self.columns = columns
        return np.arange(len(columns["ids"]), dtype=np.uint32)

    def set_texts(self, ids, texts):
        assert all(weight == 8 for ((_, weight),) in texts)
        self.columns["texts"] = np.array([text for ((text, _),) in texts], dtype=object)


def python_columns(store, keys, some):
    """What Python makes of the memories, in the order of their ids."""
    found = store.read(HERE, [memory_key(one) for one, *_ in some]).entries
    decoded = [
        codec.decode_memory(one, found[memory_key(one)].value, 1)
        for one, *_ in sorted(some, key=lambda one: one[0].bytes)
    ]
    table = Columns()
    TableRows(store, HERE, keys).upsert(table, decoded, None)
    return table.columns


def rust_columns(store, keys):
    def packed(family):
        return scan_packed(store, HERE, family, bytes([family[0] + 1]), limit=1000).rows

    columns = ranker.Loader(keys.secret).columns(
        DIMENSION, packed(b"m"), [packed(b"v")], [packed(b"l")]
    )
    return columns | {"texts": np.array(columns["texts"], dtype=object)}


def same(one, other):
    assert one.keys() == other.keys()
    for name, column in one.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)
        assert column.dtype == other[name].dtype, name


@given(records)
def test_rust_makes_the_columns_that_python_makes(some):
    store = RamStore(StoreSettings())
    store.commit(HERE, Batch(puts=stored(some) or {b"x": b"x"}))
    if some:
        same(python_columns(store, KEYS, some), rust_columns(store, KEYS))
    else:
        assert len(rust_columns(store, KEYS)["ids"]) == 0


@given(
    memories,
    st.dictionaries(
        st.integers(35, 200),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**63), 2**64 - 1)
            | st.floats()
            | texts
            | st.binary(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
            max_leaves=6,
        ),
        max_size=5,
    ),
    st.randoms(use_true_random=False),
)
def test_fields_of_a_later_version_are_passed_over_in_any_order(memory, later, random):
    fields = list((codec.unpack(codec.encode_memory(memory)) | later).items())
    random.shuffle(fields)
    one = UUID(int=7)
    store = RamStore(StoreSettings())
    store.commit(HERE, Batch(puts={memory_key(one): codec.pack(dict(fields))}))
    same(python_columns(store, KEYS, [(one,)]), rust_columns(store, KEYS))


@given(memories, st.data())
def test_what_rust_reads_python_reads_too_and_to_the_same(memory, data):
    """A damaged record that is read at all is read alike; else Rust leaves it to Python."""
    body = bytearray(codec.encode_memory(memory))
    place = data.draw(st.integers(0, len(body) - 1))
    body[place] = data.draw(st.integers(0, 255))
    one = UUID(int=7)
    store = RamStore(StoreSettings())
    store.commit(HERE, Batch(puts={memory_key(one): bytes(body)}))
    try:
        read = rust_columns(store, KEYS)
    except ValueError:
        return
    try:
        made = python_columns(store, KEYS, [(one,)])
    except codec.Corrupt:
        return  # it is in a field that a table has no use for
    same(made, read)


def open_store(directory: Path, *, sealed: bool):
    settings = StoreSettings(directory=directory, size_bytes_initial=1 << 20)
    if not sealed:
        return open_lmdb(settings)
    keys = directory / "keys"
    return open_sealed(open_lmdb, settings, SealSettings(keys, FileMasterKey(keys / "master.key")))


def plain(number: int, **parts):
    memory = codec.decode_memory(
        UUID(int=number),
        codec.pack(
            {1: ["user", f"u{number % 3}"], 2: 1, 3: "x", 4: [1, None, "", ""], 5: 1, 6: 2, 7: 3}
        ),
        1,
    )
    return replace(memory, **parts)


def put_some(store, numbers):
    """Put memories of three subjects with vectors, a few with uses; return what was put."""
    some = [
        (
            UUID(int=number),
            plain(number, labels=("a", f"l{number % 5}")),
            struct.pack("<3f", 1.0, number, 0.5) if number % 4 else None,
            Access(number, 1000 + number) if number % 3 == 0 else None,
        )
        for number in numbers
    ]
    puts = stored(some)
    keys = KeySpace(store.partition_secret(HERE))
    subjects = {one.bytes: keys.subject(memory.subject) for one, memory, *_ in some}
    store.commit(HERE, Batch(puts=puts, owners={key: subjects[key[1:]] for key in puts}))
    return some


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_a_stores_own_packed_pages_hold_what_its_scans_do(tmp_path, sealed):
    store = open_store(tmp_path, sealed=sealed)
    put_some(store, range(1, 60))
    put_some(store, range(40, 80))
    for limit in (1, 7, 1000):
        rows, start = [], b"l"
        while start is not None:
            page = scan_packed(store, HERE, start, b"w", limit=limit)
            assert len(page.rows) <= limit
            rows += page.rows.to_list()
            start = page.next_start
        assert rows == [
            (row.key, row.version, row.value)
            for row in store.scan(HERE, b"l", b"w", limit=1000).rows
        ]
    store.close()


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_a_loaded_table_has_every_memory_of_a_store_in_steps(tmp_path, sealed, monkeypatch):
    monkeypatch.setattr("pillion.service.table_load.STEP_ROWS", 7)
    store = open_store(tmp_path, sealed=sealed)
    some = put_some(store, range(1, 60))
    keys = KeySpace(store.partition_secret(HERE))
    table = ranker.Table(DIMENSION)
    slots = np.concatenate(list(load_table(store, HERE, keys, TableRows(store, HERE, keys), table)))
    assert len(table) == len(slots) == len(some)
    same(python_columns(store, keys, some), rust_columns(store, keys))
    store.close()


def test_values_under_a_destroyed_key_are_in_no_table(tmp_path):
    store = open_store(tmp_path, sealed=True)
    some = put_some(store, range(1, 30))
    keys = KeySpace(store.partition_secret(HERE))
    doomed = Subject("user", "u1")
    assert store.destroy_keys(store.retire_owner(HERE, keys.subject(doomed))) == 1
    left = [record for record in some if record[1].subject != doomed]
    assert 0 < len(left) < len(some)
    same(python_columns(store, keys, left), rust_columns(store, keys))
    store.close()


def test_a_directory_that_was_plain_once_is_loaded_whole(tmp_path):
    store = open_store(tmp_path, sealed=False)
    some = put_some(store, range(1, 20))
    store.close()
    store = open_store(tmp_path, sealed=True)
    some += put_some(store, range(20, 40))
    keys = KeySpace(store.partition_secret(HERE))
    same(python_columns(store, keys, some), rust_columns(store, keys))
    store.close()


def test_a_wrong_checksum_is_left_to_the_scan_that_names_it(tmp_path, monkeypatch):
    """Here every checksum is taken for wrong, and the scan finds that none is."""
    store = open_store(tmp_path, sealed=True)
    put_some(store, range(1, 20))
    monkeypatch.setattr("pillion_storage.lmdb.records.CURRENT_SEED", 0)
    with pytest.raises(ValueError, match="checksum"):
        ranker.Rows.of_records([(b"....m", b"....12345678")], 0, 4)
    assert len(scan_packed(store, HERE, b"m", b"n", limit=100).rows) == 19
    store.close()


@pytest.mark.parametrize("damage", ["seal", "plain"])
def test_a_damaged_value_is_named(tmp_path, damage):
    """Whatever is wrong, the load fails as a scan does, with the record's name."""
    store = open_store(tmp_path, sealed=True)
    put_some(store, range(1, 20))
    inner = store._inner
    key = memory_key(UUID(int=5))
    value = inner.read(HERE, [key]).entries[key].value
    changed = value[:-1] + bytes([value[-1] ^ 1]) if damage == "seal" else b"\x01\x80"
    inner.commit(HERE, Batch(puts={key: changed}))
    with pytest.raises(codec.Corrupt, match=key.hex()):
        scan_packed(store, HERE, b"m", b"n", limit=100)
    store.close()


def test_what_rust_declines_python_loads(tmp_path):
    """Python takes 1.0 for the kind 1, for example; no version ever wrote it."""
    store = open_store(tmp_path, sealed=False)
    some = put_some(store, range(1, 20))
    keys = KeySpace(store.partition_secret(HERE))
    odd = msgpack.unpackb(codec.encode_memory(some[3][1])[1:], strict_map_key=False) | {2: 1.0}
    store.commit(HERE, Batch(puts={memory_key(some[3][0]): codec.pack(odd)}))
    with pytest.raises(ValueError, match="type"):
        rust_columns(store, keys)
    table = ranker.Table(DIMENSION)
    (slots,) = load_table(store, HERE, keys, TableRows(store, HERE, keys), table)
    assert len(table) == len(slots) == len(some)
    store.close()
