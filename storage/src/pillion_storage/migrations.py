"""The format version of a data file: checked before anything is written, raised step by step.

Each migration is one transaction that ends by writing the next version, so an unclean stop
leaves the data at one version or the next, and the next start goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import lmdb

from pillion_storage.errors import Corrupt, NewerFormat
from pillion_storage.lmdb import records
from pillion_storage.schema import FORMAT_VERSION, META

Migration = Callable[[lmdb.Environment, "lmdb.Transaction[bytes]"], None]


def _mark_only(env: lmdb.Environment, txn: lmdb.Transaction[bytes]) -> None:
    """Change no record: the newer version reads the older one's, but not the other way round."""
    del env, txn


# From a version to the next one. docs/data-file.md says what changed in each.
MIGRATIONS: Mapping[int, Migration] = {1: _mark_only}
_FORMAT = b"format"


def bring_up_to_date(
    env: lmdb.Environment,
    clock_us: Callable[[], int],
    *,
    supported: int = FORMAT_VERSION,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> None:
    """Mark an empty environment with the current format, or migrate an older one to it.

    Raises:
        NewerFormat: nothing was written.
        Corrupt: there is data, but no readable format.
    """
    with env.begin() as txn:
        empty = txn.stat()["entries"] == 0
    if empty:
        meta = env.open_db(META.name.encode())
        with env.begin(write=True) as txn:
            _put(txn, meta, b"created", records.U64.pack(clock_us()))
            _put(txn, meta, _FORMAT, records.U32.pack(supported))
        return
    found = read_format(env)
    if found > supported:
        raise NewerFormat(found, supported)
    meta = env.open_db(META.name.encode(), create=False)
    for version in range(found, supported):
        with env.begin(write=True) as txn:
            migrations[version](env, txn)
            _put(txn, meta, _FORMAT, records.U32.pack(version + 1))


def read_format(env: lmdb.Environment) -> int:
    """Give the format of a non-empty environment."""
    try:
        meta = env.open_db(META.name.encode(), create=False)
    except lmdb.NotFoundError as error:
        raise Corrupt("meta database", "missing: this is not a Pillion store") from error
    with env.begin() as txn:
        row = txn.get(_FORMAT, db=meta)
    if row is None:
        raise Corrupt(records.describe(META, _FORMAT), "missing")
    return int.from_bytes(records.unseal(META, _FORMAT, row))


def _put(txn: lmdb.Transaction[bytes], meta: lmdb._Database, name: bytes, content: bytes) -> None:
    txn.put(name, records.seal(META, name, content), db=meta)
