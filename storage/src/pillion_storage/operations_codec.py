"""How operations become bytes and back, in the envelope of ``codec``.

Fields 1 to 6 are those of any operation; field 7 is its work, in a layout of the verb's own: a new
verb adds a row to ``_LAYOUTS``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from pillion.domain.migrations import (
    Convert,
    DefaultProperty,
    RemoveProperty,
    RenameProperty,
    Replace,
    Step,
    Unwrap,
    ValueType,
    Wrap,
)
from pillion.domain.operations import (
    FORGET,
    MIGRATE,
    ROLL_BACK,
    BackgroundForget,
    Migration,
    Operation,
    OperationState,
)
from pillion.domain.reindexing import REINDEX, Reindexing, ReindexPhase
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind

from pillion_storage import codec
from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion.domain.operations import Work

    from pillion_storage.codec import Fields

_MISSHAPEN: Final = (KeyError, ValueError, TypeError, IndexError, AttributeError, AssertionError)
_NAMED: Final[dict[int, type[RemoveProperty | Wrap | Unwrap]]] = {
    5: RemoveProperty,
    6: Wrap,
    7: Unwrap,
}


def _value(value: Value) -> list[Any]:
    data = value.data
    return [int(value.kind), [data.type, data.id] if isinstance(data, Subject) else data]


def _value_of(fields: list[Any]) -> Value:
    kind, data = ValueKind(fields[0]), fields[1]
    return Value(kind, Subject(*data) if kind is ValueKind.SUBJECT else data)


def _step(step: Step) -> list[Any]:  # noqa: PLR0911  (one a kind)
    match step:
        case Convert(to):
            return [1, int(to)]
        case Replace(old, new):
            return [2, _value(old), _value(new)]
        case RenameProperty(old, new):
            return [3, old, new]
        case DefaultProperty(name, text):
            return [4, name, text]
        case RemoveProperty(name):
            return [5, name]
        case Wrap(name):
            return [6, name]
        case Unwrap(name):
            return [7, name]


def _step_of(fields: list[Any]) -> Step:
    match fields:
        case [1, to]:
            return Convert(ValueType(to))
        case [2, old, new]:
            return Replace(_value_of(old), _value_of(new))
        case [3, old, new]:
            return RenameProperty(old, new)
        case [4, name, text]:
            return DefaultProperty(name, text)
        case _:
            return _NAMED[fields[0]](fields[1])


def _id_of(data: bytes | None) -> UUID | None:
    return UUID(bytes=data) if data else None


def _migration(work: Work) -> Fields:
    if not isinstance(work, Migration):
        raise TypeError("a migration's work is no Migration")
    return {
        1: work.attribute,
        2: work.schema_version,
        3: [_step(one) for one in work.steps],
        4: work.undoes.bytes if work.undoes is not None else None,
        5: work.cursor.bytes if work.cursor is not None else None,
        6: work.migrated,
        7: work.misfits,
        8: [one.bytes for one in work.misfit_ids],
        9: work.closing,
    }


def _migration_of(work: Fields) -> Work:
    return Migration(
        attribute=work[1],
        schema_version=work[2],
        steps=tuple(_step_of(one) for one in work[3]),
        undoes=_id_of(work[4]),
        cursor=_id_of(work[5]),
        migrated=work[6],
        misfits=work[7],
        misfit_ids=tuple(UUID(bytes=one) for one in work[8]),
        closing=work[9],
    )


def _forget(work: Work) -> Fields:
    if not isinstance(work, BackgroundForget):
        raise TypeError("not the work of a Forget")
    return {
        1: work.selector,
        2: work.mode,
        3: work.reason_code,
        4: work.notes.bytes,
        5: work.chunks,
        6: work.revision,
        7: [work.named, work.with_derived, work.unchanged_only, work.with_following],
        8: work.preview_revision,
        9: [work.chunk, work.place, work.looked],
        10: [work.memories, work.episodes, work.derived, work.unpreviewed],
        11: [one.bytes for one in work.sample_ids],
        12: [one.bytes for one in work.exempt_ids],
    }


def _forget_of(work: Fields) -> Work:
    named, with_derived, unchanged_only, with_following = work[7]
    chunk, place, looked = work[9]
    memories, episodes, derived, unpreviewed = work[10]
    return BackgroundForget(
        selector=work[1],
        mode=work[2],
        reason_code=work[3],
        notes=UUID(bytes=work[4]),
        chunks=work[5],
        revision=work[6],
        named=named,
        with_derived=with_derived,
        unchanged_only=unchanged_only,
        with_following=with_following,
        preview_revision=work[8],
        chunk=chunk,
        place=place,
        looked=looked,
        memories=memories,
        episodes=episodes,
        derived=derived,
        unpreviewed=unpreviewed,
        sample_ids=tuple(UUID(bytes=one) for one in work[11]),
        exempt_ids=tuple(UUID(bytes=one) for one in work[12]),
    )


def _reindexing(work: Work) -> Fields:
    if not isinstance(work, Reindexing):
        raise TypeError("a Reindex's work is no Reindexing")
    return {
        1: int(work.phase),
        2: codec.encode_embedder(work.target) if work.target is not None else None,
        3: work.moves,
        4: work.cursor.bytes if work.cursor is not None else None,
        5: work.memories,
        6: work.made,
    }


def _reindexing_of(work: Fields) -> Work:
    return Reindexing(
        phase=ReindexPhase(work[1]),
        target=codec.decode_embedder(work[2]) if work[2] is not None else None,
        moves=work[3],
        cursor=_id_of(work[4]),
        memories=work[5],
        made=work[6],
    )


class _Layout(NamedTuple):
    """How the work of a verb is stored: as fields, and back."""

    pack: Callable[[Work], Fields]
    unpack: Callable[[Fields], Work]


_LAYOUTS: Final[dict[str, _Layout]] = {
    MIGRATE: _Layout(_migration, _migration_of),
    ROLL_BACK: _Layout(_migration, _migration_of),
    FORGET: _Layout(_forget, _forget_of),
    REINDEX: _Layout(_reindexing, _reindexing_of),
}


def encode_operation(operation: Operation) -> bytes:
    """Return an operation as stored; its id is in the key."""
    fields: Fields = {
        1: operation.verb,
        2: int(operation.state),
        3: operation.started_at,
        4: operation.ended_at,
        5: operation.total,
        6: operation.failure_reason,
        7: _LAYOUTS[operation.verb].pack(operation.work),
    }
    return codec.pack(fields)


def decode_operation(operation_id: UUID, data: bytes) -> Operation:
    """Return a stored operation.

    Raises:
        Corrupt: It cannot be read as one, or is of a verb that this version does not know.
    """
    fields: Fields = codec.unpack(data)
    try:
        return Operation(
            id=operation_id,
            verb=fields[1],
            state=OperationState(fields[2]),
            started_at=fields[3],
            ended_at=fields[4],
            total=fields[5],
            failure_reason=fields[6],
            work=_LAYOUTS[fields[1]].unpack(fields[7]),
        )
    except _MISSHAPEN as error:
        raise Corrupt(f"operation {operation_id}", type(error).__name__) from error
