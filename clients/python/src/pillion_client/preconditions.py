"""What must be true of a target for a mutation to happen: small values, never "empty means any"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition on one memory, episode or fact key. Use the names of this module to make one."""

    kind: Literal["must_not_exist", "must_exist", "unconditional", "version_equals"]
    version: int = 0


must_not_exist: Final = Precondition("must_not_exist")
"""The target must not exist; for a fact: its key must never have had a row."""

must_exist: Final = Precondition("must_exist")
"""The target must exist."""

unconditional: Final = Precondition("unconditional")
"""Write whatever is there: an explicit last-writer-wins."""


def version_equals(version: int) -> Precondition:
    """The target's version must be this (for a fact: its ``fact_version``).

    Raises:
        ValueError: The version is not positive; for "not there yet" say ``must_not_exist``.
    """
    if version <= 0:
        message = f"a version is positive, not {version}; for a new record say must_not_exist"
        raise ValueError(message)
    return Precondition("version_equals", version)
