"""Operations as bytes: what earlier versions wrote is read, and what is of no known verb is not."""

from uuid import UUID

import pytest
from pillion.domain.migrations import Convert, RenameProperty, Replace, ValueType
from pillion.domain.operations import (
    FORGET,
    ROLL_BACK,
    BackgroundForget,
    Migration,
    Operation,
    OperationState,
)
from pillion.domain.values import Value, ValueKind
from pillion_storage import codec
from pillion_storage.errors import Corrupt
from pillion_storage.operations_codec import decode_operation, encode_operation

# Written when operations were migrations only.
FORMER = bytes.fromhex(
    "018701b1526f6c6c4261636b4d6967726174696f6e020103cf00060a24181e40000400050c06a0078901a864656164"
    "6c696e65020203939201029303a161a16293029201a17892020704c41000000000000000000000000000000003"
    "05c41000000000000000000000000000000004060507010891c4100000000000000000000000000000000609c2"
)
READ = Operation(
    id=UUID(int=9),
    verb=ROLL_BACK,
    state=OperationState.RUNNING,
    started_at=1_700_000_000_000_000,
    total=12,
    work=Migration(
        attribute="deadline",
        schema_version=2,
        steps=(
            Convert(ValueType.INT),
            RenameProperty("a", "b"),
            Replace(Value(ValueKind.TEXT, "x"), Value(ValueKind.INTEGER, 7)),
        ),
        undoes=UUID(int=3),
        cursor=UUID(int=4),
        migrated=5,
        misfits=1,
        misfit_ids=(UUID(int=6),),
    ),
)


def test_what_earlier_versions_wrote_is_read_and_written_alike():
    assert decode_operation(UUID(int=9), FORMER) == READ
    assert encode_operation(READ) == FORMER


def test_an_operation_of_an_unknown_verb_is_refused():
    fields = codec.unpack(FORMER)
    with pytest.raises(Corrupt, match=str(READ.id)):
        decode_operation(READ.id, codec.pack({**fields, 1: "Juggle"}))


def test_a_forget_in_the_background_is_read_as_it_was_written():
    work = BackgroundForget(
        selector="ByTopic",
        mode=1,
        notes=UUID(int=7),
        chunks=3,
        revision=12,
        named=False,
        with_derived=True,
        unchanged_only=True,
        with_following=False,
        reason_code="case",
        preview_revision=11,
        chunk=1,
        place=2,
        looked=3002,
        memories=5,
        episodes=4,
        derived=3,
        unpreviewed=2,
        sample_ids=(UUID(int=1),),
        exempt_ids=(UUID(int=2), UUID(int=3)),
    )
    made = Operation(id=UUID(int=9), verb=FORGET, state=READ.state, work=work, started_at=1)
    assert decode_operation(made.id, encode_operation(made)) == made
