"""``pillion import``: every bad line by number and reason, the rest imported, safe to repeat."""

import io
import json
import re
import tracemalloc
import uuid
from datetime import UTC, datetime

import pytest
from grpc import StatusCode
from hypothesis import given
from hypothesis import strategies as st
from pillion.cli.documents import value_document, value_of
from pillion.cli.exits import ExitCode
from pillion.cli.import_lines import LINE_BYTES_MAX, LineError, parse_line, read_lines
from pillion.cli.importing import Import
from pillion_client import Client, Partition, Subject
from pillion_client.testing import failure
from pillion_proto.memory.v1 import memory_service_pb2 as pb

HERE = Partition()
MEMORY = {
    "type": "memory",
    "subject": {"type": "user", "id": "mira"},
    "text": "likes tea",
    "source": {"kind": "user_statement"},
}
EPISODE = {
    "type": "episode",
    "subject": "user:mira",
    "content": "hello",
    "source_kind": "user_statement",
    "occurred_at": "2026-06-01T11:00:00+02:00",
}
FACT = {
    "type": "fact",
    "subject": "user:mira",
    "attribute": "city",
    "value": "Bern",
    "source": {"kind": "USER_STATEMENT", "quote": "in Bern"},
}


def line(document, **changes):
    made = {**document, **changes}
    return json.dumps({name: value for name, value in made.items() if value is not ...}).encode()


def parsed(document, partition=HERE, **changes):
    return parse_line(line(document, **changes), partition)


def test_the_three_types_of_lines():
    memory, episode, fact = parsed(MEMORY), parsed(EPISODE), parsed(FACT)
    assert (memory.subject, memory.text, memory.kind) == (
        Subject("user", "mira"),
        "likes tea",
        "episodic",
    )
    assert episode.occurred_at == datetime(2026, 6, 1, 9, tzinfo=UTC)
    assert (fact.attribute, fact.value, fact.source.quote) == ("city", "Bern", "in Bern")
    assert fact.source.kind == "user_statement"


@pytest.mark.parametrize(
    ("data", "field", "why"),
    [
        (line(MEMORY, text=...), "text", "missing"),
        (line(MEMORY, text=""), "text", "at least 1 character"),
        (line(MEMORY, text=5), "text", "valid string"),
        (line(MEMORY, txet="x"), "txet", "no such field"),
        (line(MEMORY, source={"kind": "rumour"}), "source.kind", "should be 'user_statement', "),
        (line(MEMORY, source=...), "source", 'write "source": {"kind": "user_statement"}'),
        (line(MEMORY, source="user"), "source", 'write "source": {"kind": "user_statement"}'),
        (line(MEMORY, subject=...), "subject", 'write "subject": "user:mira"'),
        (line(MEMORY, source={"kind": "document", "page": 3}), "source.page", "no such field"),
        (line(MEMORY, subject="mira"), "subject", "type:id"),
        (line(MEMORY, subject={"type": "user"}), "subject", "type:id"),
        (line(MEMORY, valid_from="2026-06-01T09:00:00"), "valid_from", "no offset"),
        (line(MEMORY, valid_from="yesterday"), "valid_from", "ISO 8601"),
        (line(MEMORY, valid_from=1780304400), "valid_from", "ISO 8601"),
        (line(MEMORY, vector=[0.0, 0.0]), "vector", "zero"),
        (line(MEMORY, vector=[]), "vector", "at least 1"),
        (line(MEMORY, importance=1.5), "importance", "less than or equal to 1"),
        (line(MEMORY, importance="0.5"), "importance", "valid number"),
        (line(MEMORY, id="m-1"), "id", "not a UUID"),
        (line(MEMORY, type="note"), "type", "memory"),
        (line(MEMORY, type=...), "type", "missing"),
        (line(MEMORY, text=..., kind="epic"), "kind", "and 1 more"),
        (line(FACT, value=...), "value", "missing"),
        (line(FACT, value={"time_value": "2026-06-01T09:00:00"}), None, "no offset"),
        (line(FACT, value={"time_value": 5}), None, "does not hold"),
        (b"{", None, "not JSON"),
        (b"[]", None, "not a JSON object"),
        (b'{"type": "memory", "type": "fact"}', "type", "twice"),
        (b'{"importance": NaN}', None, "NaN"),
        (b"\xff{}", None, "UTF-8 at byte 0"),
        (b"[" * 100_000, None, "nested too deeply"),
        (None, None, "longer than 1024 KiB"),
    ],
)
def test_a_bad_line_names_the_field_and_the_reason(data, field, why):
    with pytest.raises(LineError) as caught:
        parse_line(data, HERE)
    assert why in caught.value.message
    assert caught.value.field == field


def test_ids_follow_from_what_a_line_says():
    mine = str(uuid.uuid4())
    assert parsed(MEMORY, id=mine.upper()).id == mine
    assert parsed(MEMORY).id == parsed(dict(reversed(MEMORY.items())), context="").id
    ids = {
        parsed(MEMORY).id,
        parsed(MEMORY, text="likes coffee").id,
        parsed(MEMORY, subject="user:noa").id,
        parsed(MEMORY, partition=Partition("default", "other")).id,
        parsed(FACT).id,
        parsed(FACT, value={"json_value": "Bern"}, text="x").id,
        parsed(EPISODE).id,
        parsed(EPISODE, external_ref="1").id,
        parsed(EPISODE, external_ref="2").id,
        parsed(EPISODE, external_ref="1", subject="user:noa").id,
    }
    assert len(ids) == 10
    assert parsed(EPISODE, external_ref="1", content="edited").id in ids


def test_the_derivation_of_ids_never_changes():
    """A file that was imported by an older version must be found by a newer one."""
    assert parsed(MEMORY).id == "04820657-9d55-521c-9f54-fbffe77e5538"
    assert parsed(FACT).id == "2a40ea95-5d2c-5a8c-a95a-c45d34ad56e7"
    assert parsed(EPISODE, external_ref="m-1").id == "40c95ce3-851b-5cbb-afaa-2553bbf3842d"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.text()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.sampled_from(["time_value", "json_value"]), inner)
    ),
    max_leaves=6,
)


@given(
    JSON
    | st.builds(Subject, st.text(min_size=1), st.text(min_size=1))
    | st.datetimes(timezones=st.just(UTC))
)
def test_a_value_reads_back_from_its_document(value):
    back = value_of(json.loads(json.dumps(value_document(value))))
    assert back == value
    assert type(back) is type(value)


def test_lines_are_counted_as_an_editor_counts_them():
    data = b"\xef\xbb\xbf{}\n\n   \r\n[]\r\nlast"
    assert [(raw.number, raw.data.strip()) for raw in read_lines(io.BytesIO(data))] == [
        (1, b"{}"),
        (4, b"[]"),
        (5, b"last"),
    ]
    assert [raw.end_offset for raw in read_lines(io.BytesIO(data))][-1] == len(data)


@pytest.mark.parametrize(
    ("size", "kept"), [(LINE_BYTES_MAX - 1, True), (LINE_BYTES_MAX + 1, False)]
)
def test_the_longest_line(size, kept):
    found = list(read_lines(io.BytesIO(b"x" * size + b"\nnext\n")))
    assert [raw.number for raw in found] == [1, 2]
    assert (found[0].data is not None) == kept
    assert found[1].data == b"next\n"


class Endless(io.RawIOBase):
    """A line of 64 MiB that is made as it is read."""

    def __init__(self):
        self.left = 64 * 1024 * 1024

    def readable(self):
        return True

    def readinto(self, buffer):
        size = min(len(buffer), self.left)
        buffer[:size] = b"x" * size
        self.left -= size
        return size


def test_a_line_too_long_is_never_held_whole():
    tracemalloc.start()
    try:
        (raw,) = read_lines(io.BufferedReader(Endless()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert raw.data is None
    assert peak < 4 * LINE_BYTES_MAX


class Store:
    """A server's side of an import that knows ids and refuses some texts."""

    def __init__(self):
        self.ids = set()
        self.start = None

    def __call__(self, requests, _context):
        self.start = next(requests).start
        for request in requests:
            ack = pb.ImportAck(sequence=request.batch.sequence)
            for index, item in enumerate(request.batch.items):
                memory = item.add_memory.memory
                identity = memory.id or item.capture_episode.episode.id or item.put_fact.fact.id
                if "refuse me" in memory.text:
                    ack.rejections.add(
                        index=index, reason="INVALID_FIELD", field="text", message="text: not that"
                    )
                elif identity in self.ids:
                    ack.existing += 1
                else:
                    self.ids.add(identity)
                    ack.written += 1
                    ack.revision = 7
            yield pb.ImportResponse(ack=ack)


@pytest.fixture
def store(server):
    made = Store()
    server.script("Import", made)
    return made


def lines(*documents):
    return b"".join((d if isinstance(d, bytes) else line(d)) + b"\n" for d in documents)


def test_good_lines_go_in_and_bad_ones_are_reported(at, store, folder):
    file = folder / "notes.jsonl"
    file.write_bytes(
        lines(
            MEMORY, b"{", EPISODE, {**MEMORY, "text": "refuse me"}, FACT, {**FACT, "value": ...}
        ).replace(b"\n{", b"\n\n{", 1)
    )
    outcome = at("import", file, "--rejects", folder / "rejects.jsonl")
    assert outcome.code == ExitCode.PARTLY
    assert "3 new, 0 already there, 3 rejected" in outcome.out
    for part in ("line 3: not JSON", "line 5: text: not that", "line 7: value: missing"):
        assert part in outcome.err
    assert "LINE_INVALID" not in outcome.err
    rejects = [json.loads(text) for text in (folder / "rejects.jsonl").read_text().splitlines()]
    assert {(one["line"], one["reason"], one["field"]) for one in rejects} == {
        (3, "LINE_INVALID", None),
        (5, "INVALID_FIELD", "text"),
        (7, "LINE_INVALID", "value"),
    }


def test_running_twice_writes_nothing_twice(at, store, folder):
    file = folder / "notes.jsonl"
    file.write_bytes(lines(MEMORY, EPISODE, FACT))
    first, second = at("import", file, "--json").document, at("import", file, "--json").document
    assert (first["written"], first["existing"]) == (3, 0)
    assert (second["written"], second["existing"]) == (0, 3)
    assert first["complete"]
    assert (first["revision"], second["revision"]) == (7, None)


@pytest.mark.parametrize(
    "data",
    [
        lines(MEMORY, b"{", b"", EPISODE, b"{", b"", b"", b"{"),
        lines(b"{"),
        lines(*({**MEMORY, "text": str(n)} for n in range(700)), b"{"),
    ],
    ids=["some", "none good", "many"],
)
def test_the_bar_ends_at_the_end_of_the_file(server, store, data):
    """Rejected and blank lines are bytes of the file too."""
    offsets = []
    work = Import(io.BytesIO(data), HERE, None, lambda offset, _tally: offsets.append(offset))
    with Client(server.target) as client:
        work.run(client, "queued")
    assert offsets.pop() is None
    assert offsets == sorted(offsets)
    assert all(0 < offset <= len(data) for offset in offsets)


@pytest.mark.parametrize("width", [80, 160])
def test_the_bar_fits_its_line_and_ends_full(at, store, folder, monkeypatch, width):
    (folder / "f").write_bytes(lines(MEMORY, b"{") + b"\n" * 5000)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(width))
    shown = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", at("import", folder / "f").err)
    (last,) = (text for text in shown.splitlines() if "100%" in text)
    assert "1 new, 0 already there, 1 rejected" in last


def test_stdin_tenant_and_embedding(at, store, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(lines(MEMORY)))
    monkeypatch.setattr("sys.stdin", stdin)
    outcome = at("import", "-", "--tenant", "acme", "--wait-for-vectors", "--json")
    assert outcome.document["written"] == 1
    assert store.start.partition.tenant == "acme"
    assert store.start.embedding_mode == pb.EMBEDDING_MODE_INLINE


def test_an_empty_file_is_no_failure(at, store, folder):
    (folder / "empty").write_bytes(b"")
    assert at("import", folder / "empty").code == 0


def test_a_server_without_import_is_named(at, folder):
    (folder / "f").write_bytes(lines(MEMORY))
    outcome = at("import", folder / "f")
    assert outcome.code == ExitCode.REFUSED
    assert "does not take imports" in outcome.err


def test_a_broken_stream_says_that_it_can_be_resumed(at, server, folder):
    server.script("Import", failure("UNAVAILABLE", StatusCode.UNAVAILABLE, "draining"))
    (folder / "f").write_bytes(lines(MEMORY))
    outcome = at("import", folder / "f")
    assert outcome.code == ExitCode.REFUSED
    assert "run the same command again" in outcome.err
    document = at("import", folder / "f", "--json").document
    assert document["error"]["reason"] == "UNAVAILABLE"


def test_an_interrupt_stops_cleanly_and_says_how_to_resume(at, store, folder, monkeypatch):
    (folder / "f").write_bytes(lines(*({**MEMORY, "text": str(n)} for n in range(1000))))
    from pillion.cli import importing

    def interrupting(data, partition):
        if b'"700"' in data:
            raise KeyboardInterrupt
        return parse_line(data, partition)

    monkeypatch.setattr(importing, "parse_line", interrupting)
    outcome = at("import", folder / "f", "--json")
    assert outcome.code == ExitCode.INTERRUPTED
    assert "again" in outcome.err
    assert not outcome.document["complete"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    again = at("import", folder / "f", "--json").document
    assert again["existing"] + again["written"] == 1000
    assert again["existing"] >= outcome.document["written"] > 0


def test_many_rejections_are_counted_and_the_first_shown(at, store, folder):
    (folder / "f").write_bytes(lines(*([b"{"] * 1500)))
    people = at("import", folder / "f")
    assert "1480 more" in people.err
    programs = at("import", folder / "f", "--json").document
    assert (programs["rejected"], len(programs["rejections"])) == (1500, 1000)


def test_a_file_that_is_not_there_is_a_wrong_command_line(at):
    assert at("import", "nowhere.jsonl").code == ExitCode.USAGE
