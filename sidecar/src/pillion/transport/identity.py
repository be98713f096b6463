"""Who calls, and what the caller may reach.

The seam is `Authenticator`: metadata of a call in, an `Identity` or UNAUTHENTICATED out. With a
token file every call needs one of its tokens. Without one, whoever can open the Unix socket is
the local identity, which reaches everything: the socket's mode is then the boundary.
"""

from __future__ import annotations

import hashlib
import hmac
import stat
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Final, Protocol

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from pillion.domain.errors import PillionError, Reason
from pillion.domain.scope import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ANY: Final = "*"
_SCHEME: Final = "bearer"
_TOKEN_BYTES_MAX: Final = 4096
_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH


class Role(Enum):
    """What a caller may do. A role does not include another: a token names each that it has."""

    READER = "reader"  # read and search
    WRITER = "writer"  # write and import
    CURATOR = "curator"  # forget and consolidate
    ADMIN = "admin"  # operate the server


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller: its name in logs, and what it reaches. ``None`` as a set of names is any."""

    name: str
    namespaces: frozenset[str] | None
    tenants: frozenset[str] | None
    roles: frozenset[Role]

    @property
    def reaches_everything(self) -> bool:
        """Whether no partition is out of reach."""
        return self.namespaces is None and self.tenants is None

    @property
    def only_partition(self) -> Partition | None:
        """The single partition that it reaches, None when it reaches several."""
        if self.namespaces is None or self.tenants is None:
            return None
        if len(self.namespaces) != 1 or len(self.tenants) != 1:
            return None
        return Partition(next(iter(self.namespaces)), next(iter(self.tenants)))

    def reaches(self, partition: Partition) -> bool:
        """Return whether the partition is within reach."""
        return (self.namespaces is None or partition.namespace in self.namespaces) and (
            self.tenants is None or partition.tenant in self.tenants
        )


class Authenticator(Protocol):
    """Tells who calls."""

    def identify(self, metadata: Iterable[tuple[str, str | bytes]]) -> Identity:
        """Return who sent a call's metadata.

        Raises:
            PillionError: UNAUTHENTICATED.
        """
        ...


class LocalAuthenticator:
    """Everybody who gets through to the listener is the local identity."""

    _LOCAL: Final = Identity("local", None, None, frozenset(Role))

    def identify(self, metadata: Iterable[tuple[str, str | bytes]]) -> Identity:  # noqa: ARG002
        """Return the local identity."""
        return self._LOCAL


class TokenAuthenticator:
    """Bearer tokens, known by their hashes."""

    def __init__(self, entries: Iterable[TokenEntry]) -> None:
        self._known = [(bytes.fromhex(entry.sha256), entry.identity) for entry in entries]

    def identify(self, metadata: Iterable[tuple[str, str | bytes]]) -> Identity:
        """Return the identity whose token came as ``authorization: Bearer TOKEN``."""
        given = [value for key, value in metadata if key == "authorization"]
        if len(given) != 1 or not isinstance(given[0], str):
            raise _unauthenticated("send one 'authorization: Bearer TOKEN'")
        scheme, _, token = given[0].partition(" ")
        if scheme.lower() != _SCHEME or not 0 < len(token) <= _TOKEN_BYTES_MAX:
            raise _unauthenticated("send 'authorization: Bearer TOKEN'")
        digest = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        # Every entry is compared, so that the time says nothing about which one matched.
        found: Identity | None = None
        for known, identity in self._known:
            if hmac.compare_digest(known, digest):
                found = identity
        if found is None:
            raise _unauthenticated("the token is not known here")
        return found


def _unauthenticated(message: str) -> PillionError:
    return PillionError(Reason.UNAUTHENTICATED, message)


_Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class TokenEntry(BaseModel):
    """One token of a token file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: _Name
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    namespaces: Annotated[frozenset[_Name], Field(min_length=1)]
    tenants: Annotated[frozenset[_Name], Field(min_length=1)]
    roles: Annotated[frozenset[Role], Field(min_length=1)]

    @property
    def identity(self) -> Identity:
        """Who presents this token."""
        return Identity(self.name, _names(self.namespaces), _names(self.tenants), self.roles)


def _names(names: frozenset[str]) -> frozenset[str] | None:
    return None if ANY in names else names


class TokenFileError(Exception):
    """The token file cannot be used. The message says what to do and quotes nothing of it."""


_ENTRIES: Final = TypeAdapter(Annotated[list[TokenEntry], Field(min_length=1, max_length=1000)])


def load_tokens(path: Path) -> TokenAuthenticator:
    """Read a token file: a JSON list of entries; see docs/operations.md.

    Raises:
        TokenFileError: It is missing, open to every user of the machine, or not valid.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            text = file.read()
    except OSError as error:
        raise TokenFileError(f"{path} cannot be read: {error.strerror}") from error
    if mode & _OTHERS:
        raise TokenFileError(f"{path} is open to every user (mode {mode:04o}): chmod o-rwx {path}")
    try:
        entries = _ENTRIES.validate_json(text)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'file'}: {problem['msg']}"
            for problem in error.errors(
                include_input=False, include_url=False, include_context=False
            )[:5]
        )
        raise TokenFileError(f"{path} is not a token file: {problems}") from None
    hashes = {entry.sha256 for entry in entries}
    if len(hashes) != len(entries):
        raise TokenFileError(f"{path} names one token twice")
    return TokenAuthenticator(entries)
