"""Import: good items are written, bad ones are counted in their place, and nothing twice."""

from __future__ import annotations

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import IMPORT_BATCH_MAX, TEXT_BYTES_MAX
from pillion.domain.memory import Source, SourceKind
from pillion.domain.mutations import EmbeddingMode
from pillion_testing.fakes import START, FakeEmbedder, uuid7
from pillion_testing.service import (
    EVERYTHING,
    NEW,
    add,
    episode,
    floats,
    patch,
    put_fact,
    ram_service,
)


def test_bad_items_between_good_ones(service):
    unread = PillionError.of_field("line", "is not JSON")
    ack = service.import_(
        add("one", id=uuid7(1)),
        add(""),
        episode("two", id=uuid7(2)),
        unread,
        put_fact("three", id=uuid7(3)),
        add("unknown source", source=Source(SourceKind.DOCUMENT, uuid7(999))),
        patch(uuid7(1), text="x"),
        add("x" * (TEXT_BYTES_MAX + 1)),
        put_fact("four", id=uuid7(4)),
        add("five", id=uuid7(5)),
    )
    assert (ack.written, ack.existing) == (4, 0)
    assert [(one.index, one.error.reason) for one in ack.rejections] == [
        (1, Reason.INVALID_FIELD),
        (3, Reason.INVALID_FIELD),
        (5, Reason.NOT_FOUND),
        (6, Reason.INVALID_FIELD),
        (7, Reason.LIMIT_EXCEEDED),
        (8, Reason.FACT_CONFLICT),
    ]
    texts = {one.text for one in service.listed(EVERYTHING)}
    assert texts == {"one", "two", "mira deadline: three", "five"}
    assert ack.revision == service.revision == 1, "one commit"


def test_a_refused_item_leaves_nothing_behind(service):
    """Not even the vector space that it would have begun."""
    before = service.records(), service.revision
    ack = service.import_(
        add("x", vector=floats(1, 2), source=Source(SourceKind.DOCUMENT, uuid7(999))),
        put_fact(when=NEW, derived_from=(uuid7(999),)),
    )
    assert (ack.written, ack.revision, len(ack.rejections)) == (0, 0, 2)
    assert (service.records(), service.revision) == before
    ack = service.import_(
        put_fact("a", valid_from=START - 5),
        put_fact("b", valid_from=START - 5, vector=floats(1)),
        add("c", vector=floats(1, 2, 3)),
    )
    assert [one.index for one in ack.rejections] == [1]
    assert ack.written == 2


def test_a_second_run_writes_nothing(service):
    items = [
        add("one", id=uuid7(1)),
        episode("two", id=uuid7(2)),
        put_fact("three", id=uuid7(3), valid_from=START - 9),
        put_fact("three", id=uuid7(4), valid_from=START - 5),
        put_fact("four", id=uuid7(5), valid_from=START - 3),
        put_fact("three", id=uuid7(6), valid_from=START - 9),
    ]
    first = service.import_(*items)
    assert (first.written, first.existing) == (6, 0)
    before = service.records(), service.revision
    service.clock.advance()
    again = service.import_(*items)
    assert (again.written, again.existing, again.rejections, again.revision) == (0, 6, (), 0)
    assert (service.records(), service.revision) == before


def test_an_id_twice_in_one_batch_is_written_once(service):
    ack = service.import_(add("one", id=uuid7(1)), add("other", id=uuid7(1)))
    assert (ack.written, ack.existing) == (1, 1)
    assert service.get(uuid7(1)).text == "one"


def test_a_fact_whose_key_must_be_new_is_refused_and_not_taken_for_a_repeat(service):
    ack = service.import_(
        put_fact("a", when=NEW, valid_from=START - 5, id=uuid7(1)),
        put_fact("b", when=NEW, id=uuid7(2)),
    )
    assert (ack.written, ack.existing) == (1, 0)
    assert [one.error.reason for one in ack.rejections] == [Reason.ALREADY_EXISTS]


def test_the_number_of_items_is_bounded(service):
    with service.refuses(Reason.LIMIT_EXCEEDED, "items"):
        service.import_(*[add()] * (IMPORT_BATCH_MAX + 1))
    assert service.import_().revision == 0


def test_large_items_go_in_several_commits(service):
    text = "x" * TEXT_BYTES_MAX
    items = [episode(text, id=uuid7(number)) for number in range(1, IMPORT_BATCH_MAX + 1)]
    items[50] = add("")
    ack = service.import_(*items)
    assert (ack.written, ack.existing) == (99, 0)
    assert [one.index for one in ack.rejections] == [50]
    assert ack.revision == service.revision > 1
    assert len(service.listed(EVERYTHING)) == 99
    again = service.import_(*items)
    assert (again.written, again.existing) == (0, 99)


def test_vectors_in_line_and_queued():
    embedder = FakeEmbedder()
    service = ram_service(embedder=embedder)
    embedder.gate.set()
    ack = service.import_(add("now", id=uuid7(1)), mode=EmbeddingMode.INLINE)
    assert ack.vectors_pending == 0
    assert service.vector(uuid7(1)) == embedder.vector("now").tobytes()
    embedder.gate.clear()
    ack = service.import_(add("later", id=uuid7(2)), put_fact("v", id=uuid7(3)))
    assert ack.vectors_pending == 2
    assert ack.wait_ms == 0
    embedder.gate.set()
    service.close()
