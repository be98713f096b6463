"""The first answer of a request, kept with its commit so that a retry gets the very same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from pillion_storage import codec

from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import FOREVER
from pillion.domain.mutations import MutationResult, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence


def at_revision(result: MutationResult, revision: int) -> MutationResult:
    """Return a result with the commit's revision where it waits for one (-1)."""
    if result.version >= 0 and result.fact_version >= 0:
        return result
    return replace(
        result,
        version=revision if result.version < 0 else result.version,
        fact_version=revision if result.fact_version < 0 else result.fact_version,
    )


def encode(body_digest: bytes, results: Sequence[MutationResult]) -> bytes:
    """Return a memo: the digest of the request's body, and the results."""
    return codec.pack(
        [
            body_digest,
            [
                [
                    result.id.bytes,
                    int(result.outcome),
                    result.version,
                    result.superseded_id.bytes if result.superseded_id else None,
                    result.fact_version,
                    result.memory_id.bytes if result.memory_id else None,
                    result.valid_to if result.valid_to != FOREVER else None,
                ]
                for result in results
            ],
        ]
    )


def decode(memo: bytes | None, body_digest: bytes) -> tuple[MutationResult, ...]:
    """Return the results of a memo.

    Raises:
        PillionError: REQUEST_ID_REUSED when the body is another one, or the answer was erased.
    """
    check_same_body(memo, body_digest)
    _, rows = codec.unpack(memo or b"")
    return tuple(
        MutationResult(
            UUID(bytes=row[0]),
            Outcome(row[1]),
            row[2],
            UUID(bytes=row[3]) if row[3] else None,
            row[4],
            UUID(bytes=row[5]) if row[5] else None,
            FOREVER if row[6] is None else row[6],
        )
        for row in rows
    )


def check_same_body(memo: bytes | None, body_digest: bytes) -> None:
    """Refuse a request_id that came with another body before."""
    if memo is None:
        raise PillionError(
            Reason.REQUEST_ID_REUSED,
            "this request_id took effect before and its answer was erased: use a new one",
        )
    if codec.unpack(memo)[0] != body_digest:
        raise PillionError(
            Reason.REQUEST_ID_REUSED,
            "this request_id was used before with another body: make a new one per request",
        )
