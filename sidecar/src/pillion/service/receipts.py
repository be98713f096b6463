"""Receipts of erasures: what was erased, from where, and how that was proved."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.errors import Corrupt

from pillion.domain.erasure import Receipt, Stage
from pillion.domain.errors import PillionError
from pillion.domain.field_checks import check_partition
from pillion.service.erasure_records import ErasureRecords
from pillion.service.page_tokens import bad_token

if TYPE_CHECKING:
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.scope import Partition

PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 100


class Receipts:
    """Shows receipts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._records = ErasureRecords(store)

    def get(self, partition: Partition, erasure_id: UUID) -> Receipt:
        """Return a receipt.

        Raises:
            PillionError: NOT_FOUND, also while the erasure is not proved.
        """
        check_partition(partition)
        return Receipt(partition, self._records.get(partition, erasure_id))

    def page(
        self, partition: Partition | None, *, page_size: int, page_token: str
    ) -> tuple[list[Receipt], str]:
        """Return receipts, the latest first, and the next page's token, if any.

        Args:
            partition: Of which; None: of all.
            page_size: At most so many; 0: 50.
            page_token: Where the last page ended; empty: the first.

        Raises:
            PillionError: PAGE_TOKEN_INVALID; INVALID_FIELD for a negative size.
        """
        if page_size < 0:
            raise PillionError.of_field("page_size", "must not be negative")
        if partition is not None:
            check_partition(partition)
        where = [partition] if partition is not None else self._store.partitions()
        found = [
            Receipt(one, erasure)
            for one in where
            for erasure in self._records.all(one)
            if erasure.stage is Stage.DONE
        ]
        found.sort(key=_place, reverse=True)
        if page_token:
            after = _decoded(page_token)
            found = [one for one in found if _place(one) < after]
        size = min(page_size or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
        page = found[:size]
        return page, _encoded(page[-1]) if len(found) > size else ""


def _place(receipt: Receipt) -> tuple[int, bytes]:
    return receipt.erasure.finished_at, receipt.erasure.id.bytes


def _encoded(receipt: Receipt) -> str:
    return base64.urlsafe_b64encode(codec.pack(list(_place(receipt)))).decode()


def _decoded(text: str) -> tuple[int, bytes]:
    try:
        instant, erasure_id = codec.unpack(base64.b64decode(text, altchars=b"-_", validate=True))
    except (ValueError, TypeError, Corrupt) as error:
        raise bad_token() from error
    if type(instant) is not int or not isinstance(erasure_id, bytes):
        raise bad_token()
    return instant, erasure_id
