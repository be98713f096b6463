"""The small values that many messages share: ids, enums, subjects, keys, preconditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar
from uuid import UUID

from pillion.domain.errors import FieldViolation, PillionError, Reason
from pillion.domain.field_checks import checked_value
from pillion.domain.memory import Source, SourceKind
from pillion.domain.mutations import Precondition, PreconditionKind
from pillion.domain.scope import FactKey, Subject
from pillion.domain.values import Value, ValueKind, canonical_json
from pillion.transport.convert.instants import instant_from_wire

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import IntEnum

    from google.protobuf.message import Message
    from pillion_proto.memory.v1 import types_pb2

EnumT = TypeVar("EnumT", bound="IntEnum")

_UUID_TEXT_LENGTH: Final = 36


def required(message: Message, name: str, field: str) -> None:
    """Refuse a message whose field ``name`` is absent."""
    if not message.HasField(name):
        raise PillionError.of_field(field, "it is required")


def uuid_from_wire(text: str, field: str) -> UUID:
    """Return an id. Only the canonical form (8-4-4-4-12 lower-case hex digits) is one."""
    if not text:
        raise PillionError.of_field(field, "it is required")
    if len(text) == _UUID_TEXT_LENGTH:
        try:
            made = UUID(text)
        except ValueError:
            pass
        else:
            if str(made) == text:
                return made
    raise PillionError.of_field(field, "it is not a UUID in canonical lower-case text")


def optional_uuid(text: str, field: str) -> UUID | None:
    """Return an id, None for an absent one."""
    return uuid_from_wire(text, field) if text else None


def uuids_from_wire(texts: Iterable[str], field: str) -> tuple[UUID, ...]:
    """Return ids in order."""
    return tuple(uuid_from_wire(text, f"{field}[{at}]") for at, text in enumerate(texts))


def enum_from_wire(enum: type[EnumT], number: int, field: str) -> EnumT:
    """Return an enum's member. Absent (0) and unknown numbers are refused."""
    try:
        return enum(number)
    except ValueError:
        pass
    if number == 0:
        raise PillionError.of_field(field, "it is required")
    raise PillionError.of_field(field, f"{number} is no value of {enum.__name__}")


def optional_enum(enum: type[EnumT], number: int, field: str) -> EnumT | None:
    """Return an enum's member, None for an absent one. Unknown numbers are refused."""
    return enum_from_wire(enum, number, field) if number else None


def enums_from_wire(enum: type[EnumT], numbers: Iterable[int], field: str) -> frozenset[EnumT]:
    """Return a set of members; an entry of 0 says nothing and is refused."""
    return frozenset(
        enum_from_wire(enum, number, f"{field}[{at}]") for at, number in enumerate(numbers)
    )


def check_enum(known: Iterable[int], number: int, field: str) -> None:
    """Refuse a number that the contract gives no meaning, where the domain has no such enum."""
    if number not in known:
        raise PillionError.of_field(field, f"{number} is not a known value")


def subject_from_wire(subject: types_pb2.Subject) -> Subject:
    """Return a subject; its names are the domain's to check."""
    return Subject(subject.type, subject.id)


def required_subject(message: Message, name: str, field: str) -> Subject:
    """Return the subject in field ``name`` of a message, which must be there."""
    required(message, name, field)
    return subject_from_wire(getattr(message, name))


def fact_key_from_wire(key: types_pb2.FactKey, field: str) -> FactKey:
    """Return a fact key."""
    subject = required_subject(key, "subject", f"{field}.subject")
    if not key.attribute:
        raise PillionError.of_field(f"{field}.attribute", "it is required")
    member = b""
    if key.HasField("member"):
        place = f"{field}.member"
        member = checked_value(place, value_from_wire(key.member, place)).fingerprint
    return FactKey(subject, key.context, key.attribute, member)


def source_from_wire(source: types_pb2.Source, field: str) -> Source:
    """Return who said something."""
    return Source(
        enum_from_wire(SourceKind, source.kind, f"{field}.kind"),
        optional_uuid(source.episode_id, f"{field}.episode_id"),
        source.quote,
        source.author,
    )


def value_from_wire(value: types_pb2.Value, field: str) -> Value:  # noqa: PLR0911 - one for each kind
    """Return a fact's value; JSON becomes canonical here, so that equal values are equal."""
    match value.WhichOneof("kind"):
        case "string_value":
            return Value(ValueKind.TEXT, value.string_value)
        case "int_value":
            return Value(ValueKind.INTEGER, value.int_value)
        case "double_value":
            return Value(ValueKind.DOUBLE, value.double_value)
        case "bool_value":
            return Value(ValueKind.BOOLEAN, value.bool_value)
        case "time_value":
            moment = instant_from_wire(value.time_value, f"{field}.time_value")
            return Value(ValueKind.INSTANT, moment)
        case "subject_value":
            return Value(ValueKind.SUBJECT, subject_from_wire(value.subject_value))
        case "json_value":
            try:
                return Value(ValueKind.JSON, canonical_json(value.json_value))
            except ValueError:
                # The parser's message would quote the content.
                raise PillionError.of_field(
                    f"{field}.json_value",
                    "it must be JSON without repeated keys, NaN, infinities or deep nesting",
                ) from None
        case _:
            raise PillionError.of_field(field, "one kind of value must be set")


def precondition_from_wire(message: Message, field: str) -> Precondition:
    """Return the precondition of a mutation that must name one.

    Raises:
        PillionError: PRECONDITION_MISSING when it is absent, says nothing or says false;
            INVALID_FIELD when version_equals is not positive.
    """
    if not message.HasField("precondition"):
        raise _precondition_missing(field)
    wire: types_pb2.Precondition = message.precondition  # type: ignore[attr-defined]
    match wire.WhichOneof("kind"):
        case "version_equals":
            if wire.version_equals < 1:
                raise PillionError.of_field(f"{field}.version_equals", "a version is positive")
            return Precondition(PreconditionKind.VERSION_EQUALS, wire.version_equals)
        case "must_not_exist" if wire.must_not_exist:
            return Precondition(PreconditionKind.MUST_NOT_EXIST)
        case "must_exist" if wire.must_exist:
            return Precondition(PreconditionKind.MUST_EXIST)
        case "unconditional" if wire.unconditional:
            return Precondition(PreconditionKind.UNCONDITIONAL)
        case _:
            raise _precondition_missing(field)


def optional_precondition(message: Message, field: str, absent: PreconditionKind) -> Precondition:
    """Return the precondition of a mutation whose contract says what an absent one means."""
    if not message.HasField("precondition"):
        return Precondition(absent)
    return precondition_from_wire(message, field)


def _precondition_missing(field: str) -> PillionError:
    description = (
        "say must_not_exist, must_exist, version_equals or unconditional; "
        "an absent or false one is refused"
    )
    return PillionError(
        Reason.PRECONDITION_MISSING,
        f"{field}: {description}",
        violations=[FieldViolation(field, description)],
    )
