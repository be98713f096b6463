"""Encryption at rest: a store over another one, and the keys it seals with.

``opening.open_sealed`` opens both; ``store`` is the store (``reading`` its reading half),
``keyring`` has the keys, ``master`` those who keep the master key. ``docs/data-file.md`` shows the
bytes, ``docs/adr/0015`` says why.
"""

from pillion_storage.sealed.books import refuse_sealed
from pillion_storage.sealed.checking import opened_check
from pillion_storage.sealed.master import EnvironmentMasterKey, FileMasterKey, MasterKeys
from pillion_storage.sealed.opening import KEYS_DIRECTORY, SealSettings, open_sealed
from pillion_storage.sealed.store import SealedStore

__all__ = [
    "KEYS_DIRECTORY",
    "EnvironmentMasterKey",
    "FileMasterKey",
    "MasterKeys",
    "SealSettings",
    "SealedStore",
    "open_sealed",
    "opened_check",
    "refuse_sealed",
]
