"""The client's values as JSON: snake_case as in the contract, times in ISO 8601 with Z.

Absent is left out. A fact's value is plain JSON where JSON has its type; an instant and a subject
are wrapped as ``{"time_value": ...}`` and ``{"subject_value": ...}``, and a JSON object that looks
like such a wrapping is wrapped itself, so that every value reads back as what it was.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pillion_client import Memory, SearchHit, Subject

if TYPE_CHECKING:
    from pillion_client import Value

_WRAPPINGS: Final = frozenset({"time_value", "subject_value", "json_value"})


def parse_instant(text: str) -> datetime:
    """Read ISO 8601 with an offset.

    Raises:
        ValueError: It is something else, or has no offset and so names no instant.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a time: write ISO 8601, for example 2026-06-01T09:00:00Z"
        raise ValueError(message) from None
    if moment.utcoffset() is None:
        # A date alone is midnight; what is suggested can be typed as it stands.
        example = instant_text(moment.replace(tzinfo=UTC))
        message = f"{text!r} has no offset: write for example {example} for UTC"
        raise ValueError(message)
    return moment.astimezone(UTC)


def instant_text(moment: datetime) -> str:
    """Return ISO 8601 in UTC with Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def value_document(value: Value) -> object:
    """Return a fact's value as JSON that `value_of` reads back."""
    if isinstance(value, datetime):
        return {"time_value": instant_text(value)}
    if isinstance(value, Subject):
        return {"subject_value": {"type": value.type, "id": value.id}}
    if isinstance(value, dict) and len(value) == 1 and _WRAPPINGS & value.keys():
        return {"json_value": value}
    return value


def value_of(document: Any) -> Value:  # noqa: ANN401  (any JSON)
    """Return the fact's value that a JSON document stands for.

    Raises:
        ValueError: A wrapped instant or subject is malformed.
    """
    if not (isinstance(document, dict) and len(document) == 1 and _WRAPPINGS & document.keys()):
        plain: Value = document
        return plain
    ((name, content),) = document.items()
    if name == "json_value":
        wrapped: Value = content
        return wrapped
    if name == "time_value" and isinstance(content, str):
        return parse_instant(content)
    if name == "subject_value":
        return subject_of(content)
    message = f"{name} does not hold {content!r}"
    raise ValueError(message)


def subject_of(document: Any) -> Subject:  # noqa: ANN401  (any JSON)
    """Read a subject: ``{"type": ..., "id": ...}`` or "type:id".

    Raises:
        ValueError: It is neither.
    """
    match document:
        case str():
            return Subject.parse(document)
        case {"type": str(kind), "id": str(identity)} if len(document) == 2 and kind and identity:  # noqa: PLR2004
            return Subject(kind, identity)
    message = f'{document!r} is not a subject: write "type:id" or {{"type": ..., "id": ...}}'
    raise ValueError(message)


def document(content: Any) -> Any:  # noqa: ANN401, PLR0911  (one return for each type)
    """Return what a call answered with as JSON."""
    match content:
        case Enum():
            return content.value
        case None | str() | bool() | int() | float():
            return content
        case datetime():
            return instant_text(content)
        case timedelta():
            return content.total_seconds()
        case Memory():
            made = _fields(content)
            if content.attribute is not None:
                made["value"] = value_document(content.value)
            return made
        case SearchHit():
            return _hit(content)
        case np.ndarray():
            return content.tolist()
        case dict():
            return {str(name): document(inner) for name, inner in content.items()}
        case frozenset() | set():
            return sorted(document(inner) for inner in content)
        case tuple() | list():
            return [document(inner) for inner in content]
    return _fields(content)


def _fields(content: Any) -> dict[str, Any]:  # noqa: ANN401  (any dataclass of the client)
    return {
        field.name: document(getattr(content, field.name))
        for field in dataclasses.fields(content)
        if getattr(content, field.name) is not None
    }


def _hit(hit: SearchHit) -> dict[str, Any]:
    made: dict[str, Any] = {"score": hit.score, "memory": document(hit.memory)}
    if hit.parts is not None:
        made["parts"] = document(hit.parts)
    if hit.older_statement:
        made["older_statement"] = True
    if hit.folded_ids:
        made["folded_ids"] = list(hit.folded_ids)
    if hit.path:
        made["path"] = document(hit.path)
    return made
