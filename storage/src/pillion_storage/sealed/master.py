"""The master key: the protocol of those who keep it, and the two built-in ones.

A provider wraps one 256-bit key, that of the keyring. It may do so far away, in a KMS, and never
show its own key; the two here have it at hand.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from typing import TYPE_CHECKING, Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from pillion_storage.errors import MasterKeyUnusable
from pillion_storage.files import sync_directory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
VARIABLE_DEFAULT: Final = "PILLION_MASTER_KEY"
FILE_NAME: Final = "master.key"
_INFO: Final = b"pillion master key 1"
_OTHERS: Final = 0o077
_FILE_BYTES_MAX: Final = 256


class MasterKeys(Protocol):
    """Keeps a master key. Called when a keyring is made, opened, or given another master key."""

    @property
    def name(self) -> str:
        """What error messages call it, such as ``file /etc/pillion/master.key``."""
        ...

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """Encrypt a key of 32 bytes and bind it to a context; at most 1,536 bytes.

        Called for a keyring that is being made, so a provider may make its master key here.

        Raises:
            MasterKeyUnusable: there is no master key, or it can't be had now.
        """
        ...

    def unwrap(self, blob: bytes, context: bytes) -> bytes:
        """Decrypt what ``wrap`` gave. Never makes a master key.

        Raises:
            MasterKeyUnusable: as in ``wrap``, or it isn't the one that wrapped this.
        """
        ...


def wrap_locally(master: bytes, key: bytes, context: bytes) -> bytes:
    """Wrap a key under a master key that is at hand."""
    nonce = os.urandom(NONCE_BYTES)
    return nonce + _derived(master, context).encrypt(nonce, key, context)


def unwrap_locally(master: bytes, blob: bytes, context: bytes, name: str) -> bytes:
    """Unwrap a key under a master key that is at hand."""
    try:
        return _derived(master, context).decrypt(blob[:NONCE_BYTES], blob[NONCE_BYTES:], context)
    except (InvalidTag, ValueError):
        raise MasterKeyUnusable(
            f"the master key ({name}) is not the one that this keyring was made with; nothing was "
            "changed: give the right one"
        ) from None


def _derived(master: bytes, context: bytes) -> AESGCM:
    derivation = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=context, info=_INFO)
    return AESGCM(derivation.derive(master))


def decoded(text: bytes, name: str) -> bytes:
    """Give the key of its base64, surrounding white space aside.

    Raises:
        MasterKeyUnusable: it is no base64 of 32 bytes. The text itself is never repeated.
    """
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES or len(set(key)) == 1:
        raise MasterKeyUnusable(
            f"the master key ({name}) must be 32 random bytes in base64 (44 characters); make one "
            "with: openssl rand -base64 32"
        )
    return key


class EnvironmentMasterKey:
    """The master key in an environment variable, in base64."""

    def __init__(self, variable: str, environment: Mapping[str, str]) -> None:
        self.name = f"environment variable {variable}"
        self._variable = variable
        self._environment = environment

    def _key(self) -> bytes:
        text = self._environment.get(self._variable, "")
        if not text:
            raise MasterKeyUnusable(
                f"the {self.name} is not set; set it to 32 random bytes in base64"
            )
        return decoded(text.encode(errors="replace"), self.name)

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """See ``MasterKeys.wrap``."""
        return wrap_locally(self._key(), key, context)

    def unwrap(self, blob: bytes, context: bytes) -> bytes:
        """See ``MasterKeys.unwrap``."""
        return unwrap_locally(self._key(), blob, context, self.name)


class FileMasterKey:
    """The master key in a file of its own, made when a keyring is: mode 0600, base64.

    A file that others can read is refused, and so is one that is a link, for whoever can change
    where it points could swap the key or have another file read.
    """

    def __init__(self, path: Path) -> None:
        self.name = f"file {path}"
        self._path = path

    def wrap(self, key: bytes, context: bytes) -> bytes:
        """See ``MasterKeys.wrap``. Makes the file if there is none."""
        try:
            master = self._read()
        except FileNotFoundError:
            master = self._make()
        return wrap_locally(master, key, context)

    def unwrap(self, blob: bytes, context: bytes) -> bytes:
        """See ``MasterKeys.unwrap``."""
        try:
            master = self._read()
        except FileNotFoundError:
            raise MasterKeyUnusable(
                f"the master key ({self.name}) does not exist, and without it nothing can be read: "
                "restore the file, or name the right one"
            ) from None
        return unwrap_locally(master, blob, context, self.name)

    def _read(self) -> bytes:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise MasterKeyUnusable(
                f"the master key ({self.name}) can't be opened: {error.strerror}; it must be a "
                "plain file, not a link"
            ) from None
        try:
            self._check(os.fstat(fd))
            return decoded(os.read(fd, _FILE_BYTES_MAX), self.name)
        finally:
            os.close(fd)

    def _check(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise MasterKeyUnusable(f"the master key ({self.name}) is not a plain file")
        if found.st_uid not in (os.geteuid(), 0):
            raise MasterKeyUnusable(
                f"the master key ({self.name}) belongs to user {found.st_uid}; it must belong to "
                f"user {os.geteuid()}, who runs this, or to root"
            )
        if found.st_mode & _OTHERS:
            raise MasterKeyUnusable(
                f"the master key ({self.name}) can be read by others (mode "
                f"{stat.S_IMODE(found.st_mode):04o}): chmod 600 it; if it was exposed, change it"
            )

    def _make(self) -> bytes:
        """Make the file whole or not at all; another process's comes first."""
        master = os.urandom(KEY_BYTES)
        folder = self._path.parent
        draft = folder / f".{self._path.name}.{os.getpid()}"
        try:
            draft.unlink(missing_ok=True)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                os.fchmod(fd, 0o600)
                os.write(fd, base64.b64encode(master) + b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)
            try:
                os.link(draft, self._path)
            except FileExistsError:
                return self._read()
            finally:
                draft.unlink()
            sync_directory(folder)
        except OSError as error:
            raise MasterKeyUnusable(
                f"the master key ({self.name}) can't be made: {error.strerror}"
            ) from None
        return master


def create_file(options: Mapping[str, object], keys_directory: Path) -> FileMasterKey:
    """Give the provider ``file``; its option ``path`` is by default ``master.key`` by the keyring.

    Raises:
        ValueError: an option is unknown or of the wrong type.
    """
    path = _option(options, "path", str(keys_directory / FILE_NAME))
    return FileMasterKey(type(keys_directory)(path))


def create_environment(options: Mapping[str, object], keys_directory: Path) -> EnvironmentMasterKey:
    """Give the provider ``environment``; its option ``variable`` defaults to PILLION_MASTER_KEY.

    Raises:
        ValueError: an option is unknown or of the wrong type.
    """
    del keys_directory
    return EnvironmentMasterKey(_option(options, "variable", VARIABLE_DEFAULT), os.environ)


def _option(options: Mapping[str, object], name: str, default: str) -> str:
    unknown = sorted(options.keys() - {name})
    if unknown:
        raise ValueError(f"no such option: {', '.join(unknown)}; there is only {name}")
    value = options.get(name, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text")
    return value
