"""Steps of a migration as people write them: a JSON list of objects of one key."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import click
from pillion_client import (
    ConvertValue,
    DefaultProperty,
    RemoveProperty,
    RenameProperty,
    ReplaceValue,
    UnwrapValue,
    WrapValue,
)

from pillion.cli.documents import value_of

if TYPE_CHECKING:
    from pillion_client import ValueStep


def read_steps(file: IO[str]) -> tuple[ValueStep, ...]:
    """Return the steps in a file.

    Raises:
        UsageError: It says which step is none.
    """
    try:
        found = json.load(file)
    except (ValueError, RecursionError) as error:
        message = f"{file.name} is no JSON: {error}"
        raise click.UsageError(message) from error
    if not isinstance(found, list):
        message = f"{file.name} holds no JSON list of steps"
        raise click.UsageError(message)
    return tuple(_step(one, at) for at, one in enumerate(found))


def _step(found: Any, at: int) -> ValueStep:  # noqa: ANN401, PLR0911  (any JSON; one a kind)
    match found:
        case {"convert": str(to)} if len(found) == 1:
            return ConvertValue(to)
        case {"replace": {"from": old, "to": new}} if len(found) == 1:
            return ReplaceValue(value_of(old), value_of(new))
        case {"rename_property": {"from": str(old), "to": str(new)}} if len(found) == 1:
            return RenameProperty(old, new)
        case {"default_property": {"name": str(name), "value": content}} if len(found) == 1:
            return DefaultProperty(name, content)
        case {"remove_property": str(name)} if len(found) == 1:
            return RemoveProperty(name)
        case {"wrap": str(name)} if len(found) == 1:
            return WrapValue(name)
        case {"unwrap": str(name)} if len(found) == 1:
            return UnwrapValue(name)
    message = f"step {at + 1} is none that is known: see pillion schema migrate --help"
    raise click.UsageError(message)
