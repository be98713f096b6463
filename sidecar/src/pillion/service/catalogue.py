"""GetAttribute and ListAttributes: what is registered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pillion_storage import registry_codec
from pillion_storage.keys import HASH_BYTES, REGISTRATIONS, prefix_end

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_partition, check_text
from pillion.service.draft import Draft
from pillion.service.page_tokens import PageToken, bad_token, digest_of
from pillion.service.records import not_found

if TYPE_CHECKING:
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.schemas import AttributeSchema, Registration
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.partitions import KeySpaces


def current_schema(
    draft: Draft, keys: KeySpace, registration: Registration | None
) -> AttributeSchema | None:
    """Return the version that holds, with the revision that registered it; None: none does."""
    if registration is None or not registration.latest:
        return None
    return schema_of(draft, keys, registration.attribute, registration.latest)


def schema_of(draft: Draft, keys: KeySpace, attribute: str, schema_version: int) -> AttributeSchema:
    """Return a version that is known to be there."""
    key = keys.schema(attribute, schema_version)
    data = draft.get(key)
    if data is None:
        raise PillionError(Reason.CORRUPT, "a registered schema is missing")
    return registry_codec.decode_schema(data, draft.version(key))


class Catalogue:
    """Shows registered attributes."""

    def __init__(self, *, store: Store, keys: KeySpaces) -> None:
        self._store = store
        self._keys = keys

    def get(self, partition: Partition, attribute: str, schema_version: int) -> AttributeSchema:
        """Return one version of a registered attribute; 0: the latest.

        Raises:
            PillionError: NOT_FOUND.
        """
        check_partition(partition)
        check_text("attribute", attribute, limits.NAME_BYTES_MAX, required=True)
        if not 0 <= schema_version < 1 << 31:
            raise PillionError.of_field("schema_version", "must be 0 (the latest) or more")
        draft = Draft(self._store, partition)
        keys = self._keys.at(partition, draft.revision)
        data = draft.get(keys.registration(attribute))
        registration = registry_codec.decode_registration(data) if data is not None else None
        if registration is None or not 0 < (schema_version or 1) <= registration.latest:
            raise not_found("registered attribute", attribute)
        return schema_of(draft, keys, attribute, schema_version or registration.latest)

    def page(
        self, partition: Partition, *, page_size: int, page_token: str, deadline: Deadline
    ) -> tuple[list[AttributeSchema], str]:
        """Return the latest versions by attribute name, and the next page's token, if any.

        A page shows the registry at the revision of the first page.

        Raises:
            PillionError: PAGE_TOKEN_INVALID; INVALID_FIELD for a negative size.
        """
        check_partition(partition)
        head = self._store.head(partition).revision
        digest = digest_of("attributes")
        token = PageToken(head, 0, b"", digest)
        if page_token:
            token = PageToken.decode(
                page_token, digest, head, prefix=REGISTRATIONS, place_bytes=HASH_BYTES
            )
        keys = self._keys.at(partition, token.revision)
        left = self._names(partition, token.revision, deadline)
        if token.after:
            places = [keys.registration(one.attribute) for one in left]
            if token.after not in places:
                raise bad_token()
            left = left[places.index(token.after) + 1 :]
        shown = left[: _page_size(page_size)]
        schemas = self._schemas(partition, keys, shown, token.revision)
        shown = shown[: len(schemas)]
        if len(shown) == len(left):
            return schemas, ""
        return schemas, replace(token, after=keys.registration(shown[-1].attribute)).encode()

    def _names(self, partition: Partition, revision: int, deadline: Deadline) -> list[Registration]:
        found: list[Registration] = []
        start: bytes | None = REGISTRATIONS
        while start is not None:
            deadline.check()
            page = self._store.scan(
                partition,
                start,
                prefix_end(REGISTRATIONS),
                limit=limits.ATTRIBUTES_MAX,
                at=revision,
            )
            found += [registry_codec.decode_registration(row.value) for row in page.rows]
            start = page.next_start
        return sorted((one for one in found if one.latest), key=lambda one: one.attribute)

    def _schemas(
        self, partition: Partition, keys: KeySpace, shown: list[Registration], revision: int
    ) -> list[AttributeSchema]:
        """Return the schemas of a page: fewer where they come to more than a page holds."""
        made: list[AttributeSchema] = []
        size = 0
        for one in shown:
            key = keys.schema(one.attribute, one.latest)
            entry = self._store.read(partition, [key], at=revision).entries.get(key)
            if entry is None:
                raise PillionError(Reason.CORRUPT, "a registered schema is missing")
            schema = registry_codec.decode_schema(entry.value, entry.version)
            size += len(schema.json_schema.encode())
            if made and size > limits.PAGE_BYTES_MAX:
                break
            made.append(schema)
        return made


def _page_size(asked: int) -> int:
    if asked < 0:
        raise PillionError.of_field("page_size", "must not be negative")
    return min(asked or limits.PAGE_SIZE_DEFAULT, limits.ATTRIBUTES_PAGE_MAX)
