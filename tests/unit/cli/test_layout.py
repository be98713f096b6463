"""What people see: whole ids at every width, plain lines in a pipe, and what became of a memory."""

import re

import pytest
from grpc import StatusCode
from pillion.cli.output import Output
from pillion_client.testing import failure
from pillion_proto.memory.v1 import memory_service_pb2 as pb
from pillion_proto.memory.v1 import schema_service_pb2 as schema_pb
from pillion_proto.memory.v1 import search_pb2, types_pb2

ID = "11111111-1111-4111-8111-{:012d}"
TEXT = "Mira is allergic to peanuts."
LONG = "She plays the cello in an amateur orchestra " * 3
COMMANDS = (("search", "x"), ("list",), ("history", ID.format(0)))


def memory(number=0, **changes):
    made = {
        "id": ID.format(number),
        "subject": {"type": "user", "id": "mira"},
        "text": TEXT,
        "source": {"kind": 1},
        "valid_from": {"seconds": 1_780_304_400, "nanos": 123_456_000},
        "version": 4,
    }
    return types_pb2.Memory(**{**made, **changes})


@pytest.fixture
def found(server):
    both = [memory(), memory(1, text=LONG)]
    server.script(
        "Search",
        pb.SearchResponse(hits=[search_pb2.SearchHit(memory=one, score=0.385) for one in both]),
    )
    server.script("List", pb.ListResponse(records=[pb.Record(memory=one) for one in both]))
    server.script("History", pb.HistoryResponse(entries=[pb.HistoryEntry(memory=m) for m in both]))


@pytest.fixture
def terminal(monkeypatch):
    """Make the output a terminal of some width."""

    def of(width):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", str(width))

    return of


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [40, 80, 119, 120, 160, 220])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_no_id_is_ever_broken(at, found, terminal, command, width):
    terminal(width)
    shown = without_colours(at(*command).out)
    assert ID.format(0) in shown
    assert ID.format(1) in shown
    assert "123456" not in shown
    assert all(len(line) <= width for line in shown.splitlines())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_narrow_terminal_gets_what_matters_and_a_dim_line(at, found, terminal, command):
    terminal(80)
    shown = at(*command).out
    assert re.search(
        rf"^(0\.385  )?{TEXT}(  stated)?\n\x1b\[2m  {ID.format(0)}", shown, re.MULTILINE
    )
    assert not set(shown) & set("│┃━─")


def test_a_wide_terminal_gets_a_table(at, found, terminal):
    terminal(160)
    assert re.search(
        rf"│ 0.385 │ {TEXT} +│ {ID.format(0)} │", without_colours(at("search", "x").out)
    )


@pytest.mark.parametrize("columns", [None, "80"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_pipe_gets_one_plain_line_for_each_record(at, found, monkeypatch, command, columns):
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    shown = at(*command).out
    for number, text in enumerate((TEXT, LONG.strip())):
        (line,) = (line for line in shown.splitlines() if ID.format(number) in line)
        assert text in line.split("\t")
        assert "  " not in line
    assert not set(shown) & set("│┃━─\x1b")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"json_value": '{"zip":null,"ok":true}'}, '{"zip": null, "ok": true}'),
        ({"bool_value": True}, "true"),
        ({"int_value": 3}, "3"),
        ({"string_value": "30"}, "30"),
        ({"time_value": {"seconds": 1_780_304_400}}, "2026-06-01T09:00:00Z"),
        ({"subject_value": {"type": "user", "id": "bo"}}, "user:bo"),
    ],
)
def test_a_value_is_shown_as_it_may_be_written(at, server, value, shown):
    fact = memory(attribute="seat", value=value)
    server.script("List", pb.ListResponse(records=[pb.Record(memory=fact)]))
    assert at("list").out.split("\t")[0] == f"seat = {shown}"


def test_a_watched_change_has_a_line_and_a_dim_one(at, server, terminal):
    terminal(80)
    change = {"kind": 1, "id": ID.format(0), "record": {"memory": memory()}}

    def told(_request, _context):
        yield pb.WatchResponse(revision=7, changes=[change])

    gone = failure("HISTORY_GONE", StatusCode.OUT_OF_RANGE)
    server.script("Watch", told, gone)
    first, second, *_ = without_colours(at("watch", "--after", "6").out).splitlines()
    assert first == f"7  created  {TEXT}"
    assert second.startswith(f"  {ID.format(0)}  user:mira")


def test_a_long_line_goes_on_indented(terminal, capsys):
    terminal(40)
    Output(as_json=False).line(f"  states {ID.format(0)} {LONG}\nand so on")
    first, *more, last = without_colours(capsys.readouterr().out).splitlines()
    assert first.startswith("  states")
    assert all(line.startswith("    ") and len(line) <= 40 for line in more)
    assert last == "and so on"


def test_get_says_that_a_memory_was_forgotten(at, server):
    gone = memory(expires_at={"seconds": 1_780_304_500})
    later = memory(expires_at={"seconds": 32_503_680_000})
    server.script("Get", *(pb.GetResponse(record=pb.Record(memory=one)) for one in (gone, later)))
    assert "expires\t2026-06-01T09:01:40Z (forgotten/expired)" in at("get", ID.format(0)).out
    assert "expires\t3000-01-01T00:00:00Z\n" in at("get", ID.format(0)).out


def test_who_confirmed_is_shown(at, server):
    told = {"kind": 2, "episode_id": "e1", "quote": "yes, 30 June", "author": "ada"}
    one = memory(confirmation=told)
    server.script("Get", pb.GetResponse(record=pb.Record(memory=one)))
    shown = 'confirmed by ada "yes, 30 June" in e1'
    assert f"confirmation\t{shown}\n" in at("get", ID.format(0)).out
    server.script("Get", pb.GetResponse(record=pb.Record(memory=memory(confirmation={"kind": 2}))))
    assert "confirmation\tconfirmed\n" in at("get", ID.format(0)).out
    server.script("History", pb.HistoryResponse(entries=[pb.HistoryEntry(memory=one)]))
    assert f"user_statement, {shown}" in at("history", ID.format(0)).out.strip().split("\t")
    server.script("Get", pb.GetResponse(record=pb.Record(memory=memory())))
    assert "confirm" not in at("get", ID.format(0)).out


def test_history_says_what_each_version_changed(at, server):
    versions = [
        memory(),
        memory(recurrence={"count": 1}),
        memory(recurrence={"count": 1}, superseded_by="x", valid_to={"seconds": 1_790_000_000}),
        memory(2, expires_at={"seconds": 32_503_680_000}),
        memory(2, expires_at={"seconds": 1_000}),
        memory(3),
        memory(3, retracted_at={"seconds": 1_790_000_000}),
        memory(3),
        memory(4, status=3, recurrence={"count": 1}, confirmation={"kind": 2, "author": "ada"}),
        memory(4, status=3, recurrence={"count": 2}, confirmation={"kind": 2, "author": "mira"}),
        memory(4, status=3, recurrence={"count": 3}, confirmation={"kind": 2, "author": "mira"}),
    ]
    entries = [
        pb.HistoryEntry(
            memory=one, recorded_from_revision=revision, recorded_from={"seconds": 2_000}
        )
        for revision, one in enumerate(versions, 1)
    ]
    server.script("History", pb.HistoryResponse(entries=entries))
    changes = [line.split("\t")[1] for line in at("history", ID.format(0)).out.splitlines()]
    assert changes == [
        "stated",
        "stated again",
        "superseded by x",
        "stated, expires 3000-01-01T00:00:00Z",
        "forgotten 1970-01-01T00:16:40Z",
        "stated",
        "retracted",
        "restored",
        "stated",
        "confirmed",
        "stated again",
    ]


def test_a_narrow_list_of_attributes_says_what_its_cells_are(at, server, terminal):
    terminal(60)
    made = schema_pb.AttributeSchema(
        attribute="speaks", json_schema='{"type":"string"}', schema_version=3, cardinality=2
    )
    server.script("ListAttributes", schema_pb.ListAttributesResponse(schemas=[made]))
    shown = without_colours(at("schema", "list").out)
    assert shown.startswith("speaks\n")
    for cell in ("version 3", "values set", "subjects any", 'schema {"type":"string"}'):
        assert cell in shown
