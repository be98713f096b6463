"""A store that refuses content without its owner: what is not sealed with a subject's key can't be
erased with it.
"""

from __future__ import annotations

from pillion_storage import codec
from pillion_storage.keys import KeySpace, id_of
from pillion_storage.ram.store import RamStore

# Families whose values tell of a subject, and those that tell of nobody. Every family that has
# values is in one of the two: think about which when you add one.
OF_A_SUBJECT = b"ehilmntvwy"
OF_NOBODY = b"agjopru"
OF_TESTS = b"z"  # no such family exists: tests of drafts put what they like there


class OwnersChecked(RamStore):
    """Checks the owners of every batch that is committed."""

    def commit(self, partition, batch):
        self._check(partition, batch)
        return super().commit(partition, batch)

    def _check(self, partition, batch):
        for key, value in batch.puts.items():
            family, owner = key[:1], batch.owners.get(key)
            if not value:
                continue
            if family in OF_A_SUBJECT:
                assert owner, f"a value of family {family!r} has no owner"
            else:
                assert family in OF_NOBODY + OF_TESTS, (
                    f"is a value of family {family!r} a subject's?"
                )
                assert owner is None
            if family in b"me":
                decode = codec.decode_memory if family == b"m" else codec.decode_episode
                subject = decode(id_of(key), value, 1).subject
                assert owner == KeySpace(self.partition_secret(partition)).subject(subject)
