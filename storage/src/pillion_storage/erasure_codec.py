"""How erasures, their plans and journals become bytes and back, in the envelope of ``codec``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion.domain.erasure import Erasure, Place, Stage

from pillion_storage import codec
from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_storage.codec import Fields

_MISSHAPEN: Final = (KeyError, ValueError, TypeError, IndexError, AttributeError, AssertionError)


def encode_erasure(erasure: Erasure) -> bytes:
    """Return an erasure as stored."""
    return codec.pack(
        {
            1: int(erasure.stage),
            2: erasure.started_at,
            3: erasure.subject,
            4: list(erasure.owners),
            5: list(erasure.key_ids),
            6: erasure.memories,
            7: erasure.episodes,
            8: erasure.derived,
            9: erasure.changed,
            10: [one.bytes for one in erasure.sample],
            11: erasure.plan_rows,
            12: erasure.journal_rows,
            13: [[one.name, one.removed, one.method] for one in erasure.places],
            14: erasure.verification,
            15: erasure.ledger_entry,
            16: erasure.finished_at,
            17: erasure.revision,
            18: [one.bytes for one in erasure.exempt],
            19: erasure.unpreviewed,
        }
    )


def decode_erasure(erasure_id: UUID, data: bytes) -> Erasure:
    """Return a stored erasure.

    Raises:
        Corrupt: It cannot be read as one.
    """
    fields: Fields = codec.unpack(data)
    try:
        return Erasure(
            id=erasure_id,
            stage=Stage(fields[1]),
            started_at=fields[2],
            subject=fields[3],
            owners=tuple(fields[4]),
            key_ids=tuple(fields[5]),
            memories=fields[6],
            episodes=fields[7],
            derived=fields[8],
            changed=fields[9],
            sample=tuple(UUID(bytes=one) for one in fields[10]),
            plan_rows=fields[11],
            journal_rows=fields[12],
            places=tuple(Place(name, removed, method) for name, removed, method in fields[13]),
            verification=fields[14],
            ledger_entry=fields[15],
            finished_at=fields[16],
            revision=fields[17],
            exempt=tuple(UUID(bytes=one) for one in fields[18]),
            unpreviewed=fields[19],
        )
    except _MISSHAPEN as error:
        raise Corrupt(f"erasure {erasure_id}", type(error).__name__) from error


def encode_keys(keys: Sequence[bytes]) -> bytes:
    """Return keys, or ids, as stored."""
    return codec.pack(list(keys))


def decode_keys(data: bytes) -> list[bytes]:
    """Return stored keys, or ids.

    Raises:
        Corrupt: They cannot be read as that.
    """
    found = codec.unpack(data)
    if not isinstance(found, list) or not all(isinstance(one, bytes) for one in found):
        raise Corrupt("keys of an erasure", "not a list of keys")
    return found
