"""Reads JSON Lines of any size with bounded memory, and says of each bad line what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

from pydantic import TypeAdapter, ValidationError

from pillion.cli.import_schema import Line, item_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_client import ImportItem, Partition

LINE_BYTES_MAX: Final = 1024 * 1024
"""Bytes of one line. Larger texts than the contract admits would be refused anyway."""

_SKIP_BYTES: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_LINE: Final[TypeAdapter[Line]] = TypeAdapter(Line)

_HINTS: Final = {
    "subject": '"subject": "user:mira"',
    "source": '"source": {"kind": "user_statement"}',
    "source_kind": '"source_kind": "user_statement"',
}
"""The shape of fields that are easily left out."""


@dataclass(frozen=True, slots=True)
class RawLine:
    """One line that is not blank. ``number`` counts from 1; ``data`` None: it is too long."""

    number: int
    end_offset: int
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A line that was not imported, and why."""

    line: int
    reason: str
    field: str | None
    message: str


class LineError(ValueError):
    """A line cannot be imported."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def read_lines(file: BinaryIO) -> Iterator[RawLine]:
    """Yield the lines that are not blank. No more than `LINE_BYTES_MAX` of one is ever held."""
    number = offset = 0
    while True:
        data = file.readline(LINE_BYTES_MAX + 1)
        if not data:
            return
        number += 1
        offset += len(data)
        too_long = len(data) > LINE_BYTES_MAX and not data.endswith(b"\n")
        if too_long:
            while not data.endswith(b"\n"):
                data = file.readline(_SKIP_BYTES)
                offset += len(data)
                if not data:
                    break
            yield RawLine(number, offset, None)
            continue
        content = data.removeprefix(_BOM) if number == 1 else data
        if content.strip():
            yield RawLine(number, offset, content)


def parse_line(data: bytes | None, partition: Partition) -> ImportItem:
    """Return what a line says, with the id that makes a second import find it there.

    Raises:
        LineError: The line is too long, no JSON, or not of the documented form.
    """
    if data is None:
        message = f"longer than {LINE_BYTES_MAX // 1024} KiB: split it into several"
        raise LineError(message)
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        message = f"not UTF-8 at byte {error.start}"
        raise LineError(message) from error
    except RecursionError as error:
        raise LineError("nested too deeply") from error
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at column {error.colno}"
        raise LineError(message) from error
    if not isinstance(document, dict):
        raise LineError('not a JSON object: write {"type": "memory", ...}')
    try:
        return item_of(_LINE.validate_python(document), partition)
    except ValidationError as error:
        raise _line_error(error) from error
    except ValueError as error:
        raise LineError(str(error)) from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        message = f"{', '.join(repeated)} is there twice"
        raise LineError(message, repeated[0])
    return made


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not a number that JSON has"
    raise LineError(message)


def _line_error(error: ValidationError) -> LineError:
    """Return the first complaint, with the number of further ones."""
    first, *others = error.errors(include_url=False, include_context=False, include_input=False)
    # The first part of the place is the line's type, which is no field.
    path = [str(part) for part in first["loc"]][1:]
    field = ".".join(path) or None
    name = path[-1] if path else ""
    hint = f": write {_HINTS[name]}" if name in _HINTS else ""
    message = {
        "extra_forbidden": "there is no such field",
        "missing": f"missing{hint}",
        "model_type": f"not an object{hint}",
        "union_tag_not_found": 'missing: write "type": "memory", "episode" or "fact"',
        "union_tag_invalid": 'not a type: write "memory", "episode" or "fact"',
    }.get(first["type"], first["msg"].removeprefix("Value error, ").replace("'unspecified', ", ""))
    if first["type"].startswith("union_tag"):
        field = "type"
    if others:
        message += f" (and {len(others)} more)"
    return LineError(message, field)
