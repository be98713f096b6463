"""Sealing a batch: which key each value gets, and the future of a batch that was sealed."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pillion_storage.api import Batch, Committed, Conflict, Token
from pillion_storage.sealed import envelope
from pillion_storage.sealed.layout import NO_OWNER

if TYPE_CHECKING:
    from collections.abc import Collection

    from pillion_storage.sealed.keyring import Keyring
    from pillion_storage.sealed.leases import Lease


class Sealing(NamedTuple):
    """A batch that was sealed, with the keys it was sealed with and its memo in plain."""

    batch: Batch
    lease: Lease
    memo: bytes | None


def seal_batch(keyring: Keyring, tag: bytes, batch: Batch) -> Sealing:
    """Seal a checked batch. The lease is the caller's to release.

    Values without content stay as they are: there is nothing to hide. The memo tells of the whole
    batch, so it is sealed for every owner in it.

    Raises:
        StoreFull, StoreFailed: a new key can't be written.
    """
    owners = {key: keyring.owner_tag(tag, owner) for key, owner in batch.owners.items()}
    holders = sorted(set(owners.values()))
    memo = batch.token.memo if batch.token is not None else None
    layers = holders if 0 < len(holders) <= envelope.LAYERS_MAX else [NO_OWNER]
    wanted = {owners.get(key, NO_OWNER) for key, value in batch.puts.items() if value}
    wanted.update(layers if memo else ())
    if batch.note:
        wanted.add(NO_OWNER)
    lease = keyring.lease(tag, wanted, len(batch.puts) + 2)
    try:
        puts = {}
        for key, value in batch.puts.items():
            if value:
                key_id, cipher = lease.keys[owners.get(key, NO_OWNER)]
                puts[key] = envelope.seal(cipher, key_id, value, envelope.VALUE + tag + key)
            else:
                puts[key] = value
        token, note = batch.token, batch.note
        if token is not None and memo:
            token = Token(token.id, _sealed_memo(tag, token, layers, lease))
        if note:
            key_id, cipher = lease.keys[NO_OWNER]
            note = envelope.seal(cipher, key_id, note, envelope.NOTE + tag)
        return Sealing(replace(batch, puts=puts, token=token, note=note, owners={}), lease, memo)
    except BaseException:
        lease.release()
        raise


def _sealed_memo(tag: bytes, token: Token, layers: Collection[bytes], lease: Lease) -> bytes:
    place = envelope.MEMO + tag + token.id
    sealed = token.memo
    for number, owner in enumerate(layers):
        key_id, cipher = lease.keys[owner]
        sealed = envelope.seal(cipher, key_id, sealed, place, outer=number > 0)
    return sealed


class Submitted(Future[Committed | Conflict]):
    """The future of a sealed batch: it can be cancelled as long as the one below can."""

    def __init__(self, inner: Future[Committed | Conflict]) -> None:
        super().__init__()
        self._inner = inner

    def cancel(self) -> bool:
        """Cancel, unless the batch was taken up."""
        if not self._inner.cancel():
            return False
        if super().cancel():
            self.set_running_or_notify_cancel()
        return True

    def running(self) -> bool:
        """Say whether the batch was taken up and has no answer yet."""
        return not self.done() and self._inner.running()
