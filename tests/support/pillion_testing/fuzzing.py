"""Requests that no caller would mean: drawn from the contract's own descriptors, then broken.

`requests` fills a message field by field, so a field that the contract gains is fuzzed the day it
is added. A tame value is one that a caller could mean: what stored memories hold, so that
something is found. A wild one is at the edge of what its type can say, or whatever Hypothesis
draws. Half of the requests are tame throughout, for one wild value is mostly refused and then
hides all others. `damaged` breaks the bytes.
"""

from __future__ import annotations

import math
import struct

from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

DEPTH_MAX = 5
FIELDS_MAX = 5
REPEATED_MAX = 3

INT32S = st.sampled_from([0, 1, 2, 10, 64, 65, 1000, 1001, -1, 2**31 - 1, -(2**31)])
INT64S = st.sampled_from([0, 1, 2, 10, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)])
FLOATS = st.sampled_from(
    [0.0, -0.0, 0.25, 0.5, 1.0, 1.0000001, -1.0, 1e-45, 3.4e38, math.inf, -math.inf, math.nan]
)
TEXTS = [
    *("", "user", "mira", "mir", "work", "red", "blue", "deadline", "soon", "note", "default"),
    *(
        "01890000-0000-7000-8000-000000000001",
        "not-an-id",
        "a\0b",
        "%",
        "_",
        "../x",
        "é",
        "e\u0301",
    ),
    *("\U0001f9e0", "\u202e", "NaN", "x" * 129, "ж" * 5000, "\ufffe"),
]
VECTORS = [
    *(b"", b"x", struct.pack("<4f", 1, 0, 0, 0), struct.pack("<4f", 0, 0, 0, 0)),
    struct.pack("<4f", math.nan, 0, 0, 1),
    struct.pack("<4f", math.inf, 0, 0, 1),
    struct.pack("<4f", 3.4e38, 3.4e38, -3.4e38, 1),
    struct.pack("<4f", 1e-45, 0, 0, 0),
    struct.pack("<3f", 1, 2, 3),
    b"\xff" * 4 * 4097,
]
SECONDS = st.sampled_from([0, 1, -1, 2**31, 253_402_300_799, 2**62, -(2**63)])
NANOS = st.sampled_from([0, 1, 999_999_999, 1_000_000_000, -1])
KINDS = FieldDescriptor


def _wild(field):
    match field.cpp_type:
        case KINDS.CPPTYPE_INT32 | KINDS.CPPTYPE_ENUM:
            return INT32S
        case KINDS.CPPTYPE_INT64:
            return INT64S
        case KINDS.CPPTYPE_FLOAT | KINDS.CPPTYPE_DOUBLE:
            return FLOATS
        case KINDS.CPPTYPE_BOOL:
            return st.booleans()
    if field.type == KINDS.TYPE_BYTES:
        return st.one_of(st.sampled_from(VECTORS), st.binary(max_size=40))
    letters = st.characters(exclude_categories=["Cs"])
    return st.one_of(st.sampled_from(TEXTS), st.text(letters, max_size=20))


def _tame(field, pool):
    match field.cpp_type:
        case KINDS.CPPTYPE_ENUM:
            numbers = [value.number for value in field.enum_type.values]
            return st.sampled_from(numbers[1:])
        case KINDS.CPPTYPE_INT32 | KINDS.CPPTYPE_INT64:
            return st.integers(1, 3) if field.type == KINDS.TYPE_INT32 else st.just(0)
        case KINDS.CPPTYPE_FLOAT | KINDS.CPPTYPE_DOUBLE:
            return st.sampled_from([0.0, 0.25, 0.5, 0.7, 1.0])
        case KINDS.CPPTYPE_BOOL:
            return st.booleans()
    if field.type == KINDS.TYPE_BYTES:
        return st.just(VECTORS[2])
    return st.sampled_from(pool.get(field.name) or pool[""])


@st.composite
def _filled(draw, kind, pool, wild, depth):
    message = kind()
    name = kind.DESCRIPTOR.full_name

    def scalar(field):
        loose = wild and draw(st.integers(0, 3)) == 0
        return draw(_wild(field) if loose else _tame(field, pool))

    if name in {"google.protobuf.Timestamp", "google.protobuf.Duration"}:
        message.seconds = draw(SECONDS if wild else st.sampled_from([1, 86_400, 4_000_000_000]))
        message.nanos = draw(NANOS) if wild else 0
        return message
    fields = list(kind.DESCRIPTOR.fields)
    for field in draw(st.lists(st.sampled_from(fields), max_size=FIELDS_MAX, unique=True)):
        many = draw(st.integers(1, REPEATED_MAX)) if field.is_repeated else 1
        for _ in range(many):
            if field.message_type is None:
                value = scalar(field)
            elif depth < DEPTH_MAX - 2 * (not wild):
                within = field.message_type._concrete_class
                value = draw(_filled(within, pool, wild, depth + 1))
            else:
                break
            _put(message, field, value)
    if not wild:
        _complete(message)
    return message


def _put(message, field, value):
    if field.is_repeated:
        getattr(message, field.name).append(value)
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


def _complete(message):
    """Mend what two tame fields say against each other."""
    match message.DESCRIPTOR.name:
        case "Subject":
            message.type, message.id = message.type and "user", message.id or "mira"
            message.type = "user"
        case "Filter":
            if message.contexts:
                message.all_contexts = False
            message.ClearField("derived_from")
        case "TimeWindow":
            message.ClearField("to")
        case "RankingProfile":
            message.ClearField("name")
            del message.half_lives[:]
        case "ReadOptions":
            message.Clear()
        case "RecallRequest":
            message.ClearField("token_counter")
            del message.section_budgets[:]
            message.token_budget = message.token_budget * 100 or 300


@st.composite
def requests(draw, kind, pool, **required):
    """Draw messages of one kind, tame or wild.

    Args:
        pool: Texts that stored records hold, by the name of a field; "" has those of all others.
        required: Fields without which nothing is answered; a wild message may change them.
    """
    wild = draw(st.booleans())
    message = kind(**required)
    message.MergeFrom(draw(_filled(kind, pool, wild, 0)))
    return message


@st.composite
def damaged(draw, messages):
    """Draw the bytes of a message with some of them changed, taken out, added, or cut off."""
    data = bytearray(draw(messages).SerializeToString())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0 if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case 1:
                del data[at : at + draw(st.integers(1, 4))]
            case 2:
                data[at:at] = draw(st.binary(min_size=1, max_size=6))
            case _:
                del data[at:]
    return bytes(data)
