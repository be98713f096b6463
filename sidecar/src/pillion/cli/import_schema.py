"""What a line of ``pillion import`` may say: the contract's fields in snake_case, and no others.

The models check form: types, names, times with an offset, numbers in range. What needs the store
or the configured limits is the server's to refuse, item by item.
"""
# pydantic reads these annotations when the module is loaded.

from __future__ import annotations

import json
import math
import uuid
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal

from pillion_client import (
    AddMemory,
    CaptureEpisode,
    ConflictPolicy,
    EpisodeIndexing,
    ImportItem,
    MemoryKind,
    MemoryStatus,
    Partition,
    PutFact,
    Source,
    SourceKind,
    Subject,
    unconditional,
)
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
)

from pillion.cli.documents import parse_instant, subject_of, value_of

# The namespace of the ids that this module derives. Never change it: a second import of a file
# finds what the first one wrote by these ids.
_IDS: Final = uuid.UUID("5b0f6f0e-6a3c-5a7e-9c1b-2f6b1f4c8d90")


def _instant(text: object) -> datetime:
    if not isinstance(text, str):
        message = "a time is text: write ISO 8601, for example 2026-06-01T09:00:00Z"
        raise ValueError(message)  # noqa: TRY004  (pydantic reports ValueError)
    return parse_instant(text)


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        message = "not a UUID"
        raise ValueError(message) from None


def _vector(components: list[float]) -> list[float]:
    if not all(map(math.isfinite, components)):
        message = "every component must be finite"
        raise ValueError(message)
    if not any(components):
        message = "all components are zero, so it points nowhere"
        raise ValueError(message)
    return components


def _lower(name: object) -> object:
    return name.lower() if isinstance(name, str) else name


Text = Annotated[StrictStr, Field(min_length=1)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Identity = Annotated[Text, AfterValidator(_uuid)]
About = Annotated[SkipValidation[Subject], BeforeValidator(subject_of)]
Share = Annotated[StrictFloat, Field(ge=0, le=1)]  # takes integers too
Vector = Annotated[list[StrictFloat], Field(min_length=1), AfterValidator(_vector)]
Labels = tuple[Text, ...]


class _Form(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True
    )


class SourceForm(_Form):
    """Who said it, in which episode and in which words."""

    kind: Annotated[SourceKind, BeforeValidator(_lower)]
    episode_id: Identity | None = None
    quote: Text | None = None
    author: Text | None = None


class _Common(_Form):
    id: Identity | None = None
    subject: About
    context: StrictStr = ""
    labels: Labels = ()
    importance: Share | None = None
    vector: Vector | None = None
    session_id: Text | None = None
    retention_class: Text | None = None
    expires_at: Instant | None = None


class _Stated(_Common):
    source: SourceForm
    confidence: Share | None = None
    status: Annotated[MemoryStatus, BeforeValidator(_lower)] = MemoryStatus.UNSPECIFIED
    pinned: StrictBool = False
    pii_labels: Labels = ()
    derived_from: tuple[Identity, ...] = ()
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    schema_version: StrictInt = 0


class MemoryLine(_Stated):
    """An untyped memory."""

    type: Literal["memory"]
    kind: Annotated[MemoryKind, BeforeValidator(_lower)] = MemoryKind.EPISODIC
    text: Text


class FactLine(_Stated):
    """A fact. It is stated whatever is there: the timeline finds its place."""

    type: Literal["fact"]
    attribute: Text
    value: Any
    text: Text | None = None
    conflict_policy: Annotated[ConflictPolicy, BeforeValidator(_lower)] = ConflictPolicy.UNSPECIFIED


class EpisodeLine(_Common):
    """A raw source."""

    type: Literal["episode"]
    content: Text
    source_kind: Annotated[SourceKind, BeforeValidator(_lower)]
    media_type: Text | None = None
    author: Text | None = None
    occurred_at: Instant | None = None
    external_ref: Text | None = None
    indexing: Annotated[EpisodeIndexing, BeforeValidator(_lower)] = EpisodeIndexing.UNSPECIFIED


Line = Annotated[MemoryLine | FactLine | EpisodeLine, Field(discriminator="type")]


def derived_id(line: MemoryLine | FactLine | EpisodeLine, partition: Partition) -> str:
    """Return the id of a line: its own, or one made of what it says, in its partition.

    An episode with an external_ref is known by that and its subject, whatever else it says; any
    other line by everything it says but its vector, which follows from the text. So a line that
    repeats another is the same record.
    """
    if line.id is not None:
        return line.id
    subject = [line.subject.type, line.subject.id]
    if isinstance(line, EpisodeLine) and line.external_ref is not None:
        content: object = [subject, line.context, line.external_ref]
    else:
        said = line.model_dump(
            mode="json", exclude_defaults=True, exclude={"subject", "id", "vector"}
        )
        content = [subject, said]
    name = json.dumps(
        [partition.namespace, partition.tenant, line.type, content],
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    return str(uuid.uuid5(_IDS, name))


def item_of(line: MemoryLine | FactLine | EpisodeLine, partition: Partition) -> ImportItem:
    """Return what to send for a line.

    Raises:
        ValueError: A fact's value is malformed.
    """
    fields: dict[str, Any] = {
        name: getattr(line, name)
        for name in type(line).model_fields
        if name not in {"id", "type", "source", "value"}
    }
    fields["id"] = derived_id(line, partition)
    if isinstance(line, EpisodeLine):
        return CaptureEpisode(**fields)
    fields["source"] = Source(**dict(line.source))
    if isinstance(line, FactLine):
        return PutFact(**fields, value=value_of(line.value), precondition=unconditional)
    return AddMemory(**fields)
