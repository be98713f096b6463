"""Whether what a caller demands of a record holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion.domain.errors import PillionError, Reason
from pillion.domain.mutations import PreconditionKind

if TYPE_CHECKING:
    from pillion_storage.keys import KeySpace

    from pillion.domain.mutations import Precondition
    from pillion.domain.scope import FactKey
    from pillion.service.draft import Draft


def require(precondition: Precondition, current: int, key: str) -> None:
    """Refuse when a record with this current version (0: absent) is not as demanded.

    Raises:
        PillionError: VERSION_MISMATCH, ALREADY_EXISTS or NOT_FOUND.
    """
    match precondition.kind:
        case PreconditionKind.UNCONDITIONAL:
            return
        case PreconditionKind.MUST_NOT_EXIST if current:
            raise PillionError(
                Reason.ALREADY_EXISTS,
                "it exists already",
                metadata={"key": key, "current_version": str(current)},
            )
        case PreconditionKind.MUST_EXIST if not current:
            raise PillionError(
                Reason.NOT_FOUND, "it does not exist in this partition", metadata={"key": key}
            )
        case PreconditionKind.VERSION_EQUALS if current != precondition.version:
            raise version_mismatch(key, precondition.version, current)
        case _:
            return


def version_mismatch(key: str, expected: int, current: int) -> PillionError:
    """Return the error for a stale version, which says what the current one is."""
    there = f"version {current}" if current else "gone"
    return PillionError(
        Reason.VERSION_MISMATCH,
        f"expected version {expected}, it is {there}: read it again and redo the change",
        metadata={
            "key": key,
            "expected_version": str(expected),
            "current_version": str(current),
        },
    )


def require_fact(precondition: Precondition, draft: Draft, keys: KeySpace, key: FactKey) -> None:
    """Refuse when a fact key is not as demanded; its version is that of its head.

    A version that is named is the one before this very draft, also where that has changed the key
    already: its new version is not known before the commit.
    """
    head = keys.head(key)
    current = draft.version(head)
    if draft.changed(head) and precondition.kind is not PreconditionKind.VERSION_EQUALS:
        current = current or 1
    require(precondition, current, f"{key.subject}/{key.context}/{key.attribute}")
