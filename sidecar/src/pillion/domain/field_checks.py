"""What single fields must look like. Each check raises with the field's path, or does nothing."""

from __future__ import annotations

import math
import re
import struct
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.values import Value, ValueKind, canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from pillion.domain.memory import Source
    from pillion.domain.scope import FactKey, Partition, Subject

FLOAT32_BYTES: Final = 4
_INT64_MAX: Final = 2**63 - 1
_CODE: Final = re.compile(r"[A-Za-z0-9._:/-]+")


def check_text(field: str, text: str, bytes_max: int, *, required: bool = False) -> None:
    """Refuse text that is empty where it must not be, too long, or not encodable as UTF-8."""
    if required and not text:
        raise PillionError.of_field(field, "must not be empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise PillionError.of_field(field, "holds a lone surrogate: it is not UTF-8") from None
    if size > bytes_max:
        raise PillionError.of_field(
            field,
            f"has {size} bytes of UTF-8; at most {bytes_max} are allowed",
            Reason.LIMIT_EXCEEDED,
        )


def check_count(field: str, count: int, count_max: int) -> None:
    """Refuse more items than are allowed."""
    if count > count_max:
        raise PillionError.of_field(
            field, f"has {count} items; at most {count_max} are allowed", Reason.LIMIT_EXCEEDED
        )


def check_share(field: str, value: float | None) -> None:
    """Refuse a number outside 0 to 1; None is fine."""
    if value is None:
        return
    if not math.isfinite(value):
        raise PillionError.of_field(field, "must be a finite number", Reason.NOT_FINITE)
    if not 0.0 <= value <= 1.0:
        raise PillionError.of_field(field, f"must be from 0 to 1, not {value:g}")


def check_instant(field: str, instant: int | None) -> None:
    """Refuse an instant outside the years 1 to 9999; None is fine."""
    if instant is None:
        return
    if not limits.INSTANT_MIN_US <= instant <= limits.INSTANT_MAX_US:
        raise PillionError.of_field(field, "must be in the years 1 to 9999")


def check_partition(partition: Partition) -> None:
    """Refuse names that are empty or too long."""
    check_text("partition.namespace", partition.namespace, limits.NAME_BYTES_MAX, required=True)
    check_text("partition.tenant", partition.tenant, limits.NAME_BYTES_MAX, required=True)


def check_subject(field: str, subject: Subject) -> None:
    """Refuse a subject without a type or id, or too long a one."""
    check_text(f"{field}.type", subject.type, limits.SUBJECT_TYPE_BYTES_MAX, required=True)
    check_text(f"{field}.id", subject.id, limits.SUBJECT_ID_BYTES_MAX, required=True)


def check_fact_key(field: str, key: FactKey) -> None:
    """Refuse a malformed fact key."""
    check_subject(f"{field}.subject", key.subject)
    check_text(f"{field}.context", key.context, limits.CONTEXT_BYTES_MAX)
    check_text(f"{field}.attribute", key.attribute, limits.NAME_BYTES_MAX, required=True)


def check_labels(field: str, labels: Collection[str]) -> None:
    """Refuse too many, too long or empty labels."""
    check_count(field, len(labels), limits.LABELS_MAX)
    for label in labels:
        check_text(field, label, limits.LABEL_BYTES_MAX, required=True)


def check_vector_shape(field: str, vector: bytes, dimension: int | None = None) -> None:
    """Refuse bytes that are not float32 vectors of an allowed dimension; empty is fine.

    Args:
        field: Its path in the request.
        vector: The bytes; empty means that there is none.
        dimension: What it must have; None: any up to the limit.
    """
    if len(vector) % FLOAT32_BYTES:
        raise PillionError.of_field(
            field, f"has {len(vector)} bytes; float32 vectors have a multiple of 4"
        )
    found = len(vector) // FLOAT32_BYTES
    if found > limits.DIMENSION_MAX:
        raise PillionError.of_field(
            field,
            f"has {found} dimensions; at most {limits.DIMENSION_MAX} are allowed",
            Reason.LIMIT_EXCEEDED,
        )
    if vector and dimension is not None and found != dimension:
        raise PillionError.of_field(
            field,
            f"has {found} dimensions; this partition's vectors have {dimension}",
            Reason.DIMENSION_MISMATCH,
        )


def check_vector(field: str, vector: bytes) -> None:
    """Refuse a vector that is not finite float32, or all zeros; empty is fine."""
    check_vector_shape(field, vector)
    if not vector:
        return
    numbers = struct.unpack(f"<{len(vector) // FLOAT32_BYTES}f", vector)
    norm = math.fsum(number * number for number in numbers)
    if not math.isfinite(norm):
        raise PillionError.of_field(field, "holds NaN or an infinity", Reason.NOT_FINITE)
    if norm == 0.0:
        raise PillionError.of_field(
            field, "is all zeros, which has no direction", Reason.NOT_FINITE
        )


def check_source(field: str, source: Source) -> None:
    """Refuse too long quotes and authors."""
    check_text(f"{field}.quote", source.quote, limits.QUOTE_BYTES_MAX)
    check_text(f"{field}.author", source.author, limits.AUTHOR_BYTES_MAX)


def checked_value(field: str, value: Value) -> Value:
    """Return the value in canonical form, or refuse it."""
    data = value.data
    match value.kind:
        case ValueKind.TEXT if isinstance(data, str):
            check_text(field, data, limits.VALUE_BYTES_MAX)
        case ValueKind.JSON if isinstance(data, str):
            check_text(field, data, limits.VALUE_BYTES_MAX, required=True)
            try:
                canonical = canonical_json(data)
            except ValueError as error:
                raise PillionError.of_field(field, f"is not JSON: {_calm(error)}") from None
            # Escapes may hide a lone surrogate, and 1e15 is written out: look again.
            check_text(field, canonical, limits.VALUE_BYTES_MAX)
            return Value(ValueKind.JSON, canonical)
        case ValueKind.DOUBLE if isinstance(data, float):
            if not math.isfinite(data):
                raise PillionError.of_field(field, "must be a finite number", Reason.NOT_FINITE)
            if data == 0.0:
                return Value(ValueKind.DOUBLE, 0.0)  # -0.0 and 0.0 are one value
        case ValueKind.BOOLEAN if isinstance(data, bool):
            pass
        case ValueKind.INSTANT if isinstance(data, int) and not isinstance(data, bool):
            check_instant(field, data)
        case ValueKind.INTEGER if isinstance(data, int) and not isinstance(data, bool):
            if not -_INT64_MAX - 1 <= data <= _INT64_MAX:
                raise PillionError.of_field(field, "does not fit 64 bits")
        case ValueKind.SUBJECT if not isinstance(data, str | int | float):
            check_subject(field, data)
        case _:
            raise PillionError.of_field(field, f"is not of the kind {value.kind.name}")
    return value


def _calm(error: ValueError) -> str:
    """Return a parser's complaint without the content that it may quote."""
    position = getattr(error, "pos", None)
    return f"error at character {position}" if position is not None else str(error)


def check_id(field: str, record_id: UUID | None) -> None:
    """Refuse the id of all zeros, which the ranker reserves; None is fine."""
    if record_id is not None and not record_id.int:
        raise PillionError.of_field(field, "must not be all zeros")


def check_pii_labels(field: str, labels: Collection[str]) -> None:
    """Refuse too many, too long or empty labels of personal data."""
    check_count(field, len(labels), limits.PII_LABELS_MAX)
    for label in labels:
        check_text(field, label, limits.PII_LABEL_BYTES_MAX, required=True)


def check_request_id(request_id: str) -> None:
    """Refuse a request_id that is too long."""
    check_text("request_id", request_id, limits.REQUEST_ID_BYTES_MAX)


def check_reason_code(field: str, code: str, *, required: bool = False) -> None:
    """Refuse a reason that is no code: letters, digits and ``-_.:/``, so that it tells nothing."""
    check_text(field, code, limits.REASON_CODE_BYTES_MAX, required=required)
    if code and not _CODE.fullmatch(code):
        raise PillionError.of_field(
            field, "is a code, of letters, digits and - _ . : / only: no content belongs here"
        )
