"""Page tokens: where a listing stands, bound to everything else that the listing asked for.

A token is not secret and not signed: its parts are checked like any other input, so a made-up one
can at most name another place in the caller's own partition.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.errors import Corrupt

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US, PAGE_SIZE_MAX
from pillion.domain.memory import Episode

if TYPE_CHECKING:
    from pillion.domain.memory import Memory

DIGEST_BYTES: Final = 8
# What a record has beside its texts and lists of ids, generously: ids, instants, short names.
_RECORD_BYTES: Final = 2048
_ID_TEXT_BYTES: Final = 40


@dataclass(frozen=True, slots=True)
class PageToken:
    """Where a listing stands.

    ``after`` is the place of the last record that was returned, empty before the first;
    ``digest`` ties the token to the listing's other parameters.
    """

    revision: int
    as_of: int
    after: bytes
    digest: bytes

    def encode(self) -> str:
        """Return the token as the caller gets it."""
        body = codec.pack([self.revision, self.as_of, self.after, self.digest])
        return base64.urlsafe_b64encode(body).decode()

    @classmethod
    def decode(
        cls, text: str, digest: bytes, head: int, *, prefix: bytes, place_bytes: int
    ) -> PageToken:
        """Return the token that a caller handed back.

        A place begins with ``prefix``, which ``place_bytes`` bytes follow.

        Raises:
            PillionError: PAGE_TOKEN_INVALID when it is not one of this listing.
        """
        try:
            body = base64.b64decode(text, altchars=b"-_", validate=True)
            revision, as_of, place, found = codec.unpack(body)
        except (ValueError, TypeError, Corrupt) as error:
            raise bad_token() from error
        if (
            found != digest
            or type(revision) is not int
            or type(as_of) is not int
            or not isinstance(place, bytes)
            or not 0 <= revision <= head
            or not INSTANT_MIN_US <= as_of <= INSTANT_MAX_US
        ):
            raise bad_token()
        if place and not (place.startswith(prefix) and len(place) == len(prefix) + place_bytes):
            raise bad_token()
        return cls(revision, as_of, place, digest)


def page_size_of(asked: int, default: int) -> int:
    """Return how many records a page has at most.

    Raises:
        PillionError: INVALID_FIELD when less than none is asked for.
    """
    if asked < 0:
        raise PillionError.of_field("page_size", "must not be negative")
    return min(asked or default, PAGE_SIZE_MAX)


def record_bytes(record: Memory | Episode) -> int:
    """Return about how many bytes a record takes in a message, rather too many than too few."""
    size = _RECORD_BYTES + sum(_utf8_bytes(label) for label in record.labels)
    if isinstance(record, Episode):
        return size + _utf8_bytes(record.content)
    value: object = record.value.data if record.value is not None else ""
    ids = len(record.derived_from) + len(record.recurrence.episode_ids)
    confirmed = record.confirmation
    return (
        size
        + _utf8_bytes(record.text)
        + _utf8_bytes(record.source.quote)
        + (_utf8_bytes(confirmed.quote + confirmed.author) if confirmed is not None else 0)
        + (_utf8_bytes(value) if isinstance(value, str) else 0)
        + sum(_utf8_bytes(label) for label in record.pii_labels)
        + _ID_TEXT_BYTES * ids
    )


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def bad_token() -> PillionError:
    """Return the error for a token that is not one of the listing."""
    return PillionError.of_field(
        "page_token",
        "is not one of this listing: pass on next_page_token with everything else unchanged",
        Reason.PAGE_TOKEN_INVALID,
    )


def digest_of(*parameters: object) -> bytes:
    """Return a digest of what must be the same on every page."""
    shown = "\0".join(_stable(parameter) for parameter in parameters)
    return hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).digest()


def _stable(value: object) -> str:
    """Return a text that is equal for equal values: sets in order."""
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(_stable(one) for one in value)) + "}"
    slots = getattr(type(value), "__slots__", None)
    if slots and hasattr(type(value), "__dataclass_fields__"):
        return (
            f"{type(value).__name__}(" + ",".join(_stable(getattr(value, s)) for s in slots) + ")"
        )
    return repr(value)
