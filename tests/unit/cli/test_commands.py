"""Each command: what it sends, what people see, what programs get, and how it ends."""

import json
import re

import click
import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from pillion.cli.exits import ExitCode
from pillion.cli.main import COMMANDS, group
from pillion_client.testing import failure
from pillion_proto.memory.v1 import admin_service_pb2 as admin
from pillion_proto.memory.v1 import memory_service_pb2 as pb
from pillion_proto.memory.v1 import search_pb2, types_pb2

INSTANT = {"seconds": 1_780_304_400}  # 2026-06-01T09:00:00Z
FACT = types_pb2.Memory(
    id="11111111-1111-4111-8111-111111111111",
    subject={"type": "user", "id": "mira"},
    kind=types_pb2.MEMORY_KIND_SEMANTIC,
    attribute="passport_deadline",
    value={"string_value": "2026-06-30 [/]"},
    text="mira's deadline",
    source={"kind": 1, "episode_id": "e2", "quote": "It is now"},
    valid_from=INSTANT,
    fact_version=4,
    version=4,
)
WRITTEN = pb.WriteResponse(
    revision=4,
    results=[
        pb.MutationResult(id=FACT.id, version=4, outcome=2, superseded_id="old", fact_version=4)
    ],
)


def test_the_list_of_commands_says_what_the_commands_say():
    context = click.Context(group)
    for name, (_, _, line) in COMMANDS.items():
        command = group.get_command(context, name)
        assert command.name == name
        assert command.help.partition("\n")[0] == line or name == "serve"


def test_help_loads_no_command(pillion):
    outcome = pillion("--help")
    assert outcome.code == 0
    assert set(re.findall(r"^  ([a-z]+)  ", outcome.out, re.MULTILINE)) == set(COMMANDS)
    assert all(str(code.value) in outcome.out for code in ExitCode)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], ("string_value", "30")),
        (["--type", "int"], ("int_value", 30)),
        (["--type", "float"], ("double_value", 30.0)),
        (["--type", "json"], ("int_value", 30)),
    ],
)
def test_write_fact_sends_the_typed_value(at, server, given, sent):
    server.script("Write", WRITTEN)
    outcome = at(
        "write", "fact", "user:mira", "age", "30", *given, "--valid-from", "2026-06-01T11:00+02:00"
    )
    assert outcome.code == 0
    assert "superseded" in outcome.out
    put = server.calls("Write")[0].request.mutations[0].put_fact
    name, value = sent
    assert put.fact.value.WhichOneof("kind") == name
    assert getattr(put.fact.value, name) == value
    assert put.fact.valid_from.seconds == INSTANT["seconds"]
    assert put.precondition.unconditional


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["--if-version", "4"], types_pb2.Precondition(version_equals=4)),
        (["--if-new"], types_pb2.Precondition(must_not_exist=True)),
        (["--if-exists"], types_pb2.Precondition(must_exist=True)),
    ],
)
def test_write_fact_sends_the_precondition(at, server, given, sent):
    server.script("Write", WRITTEN)
    assert at("write", "fact", "user:mira", "age", "30", *given).code == 0
    assert server.calls("Write")[0].request.mutations[0].put_fact.precondition == sent


@pytest.mark.parametrize(
    ("source", "done", "told"),
    [
        ("inference", {"outcome": pb.MUTATION_OUTCOME_CREATED}, True),
        # It took a place on the timeline.
        ("inference", {"outcome": pb.MUTATION_OUTCOME_CREATED, "fact_version": 4}, False),
        ("inference", {"outcome": pb.MUTATION_OUTCOME_EVIDENCE}, False),
        ("user_statement", {"outcome": pb.MUTATION_OUTCOME_CREATED}, False),
    ],
)
def test_whoever_writes_a_guess_is_told_that_reads_leave_it_out(at, server, source, done, told):
    written = pb.WriteResponse(
        revision=4, results=[pb.MutationResult(id=FACT.id, version=4, **done)]
    )
    for line in (("memory", "user:mira", "may like tea"), ("fact", "user:mira", "hobby", "chess")):
        server.script("Write", written)
        shown = at("write", *line, "--source", source)
        assert shown.code == 0
        assert (f"pillion confirm {FACT.id}" in shown.out) is told


def test_write_memory_and_episode(at, server, monkeypatch):
    server.script("Write", WRITTEN)
    memory = at(
        "write",
        "memory",
        "user:mira",
        "likes tea",
        "--kind",
        "semantic",
        "--label",
        "a",
        "--label",
        "b",
        "--wait-for-vector",
        "--request-id",
        "r1",
        "--importance",
        "0.9",
        "--json",
    )
    assert memory.document["results"][0]["outcome"] == "superseded"
    assert memory.document["request_id"] == "r1"
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO("from stdin"))
    assert at("write", "episode", "user:mira", "-", "--external-ref", "m-1").code == 0
    first, second = (call.request for call in server.calls("Write"))
    assert first.embedding_mode == pb.EMBEDDING_MODE_INLINE
    assert list(first.mutations[0].add_memory.memory.labels) == ["a", "b"]
    assert second.mutations[0].capture_episode.episode.content == "from stdin"
    assert second.mutations[0].capture_episode.episode.external_ref == "m-1"


def test_get_shows_a_fact_or_a_record_by_id(at, server):
    server.script("Get", pb.GetResponse(record=pb.Record(memory=FACT)))
    people = at("get", "user:mira", "passport_deadline", "--as-of", "2026-06-02T00:00Z")
    assert people.code == 0
    for part in ("2026-06-30 [/]", "2026-06-01T09:00:00Z to open", "e2", "It is now"):
        assert part in people.out
    programs = at("get", FACT.id, "--json").document
    assert programs["value"] == "2026-06-30 [/]"
    assert programs["valid_from"] == "2026-06-01T09:00:00Z"
    assert "valid_to" not in programs
    first, second = (call.request.target.WhichOneof("kind") for call in server.calls("Get"))
    assert (first, second) == ("fact", "memory_id")


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        (["get", "user:mira", "city"], "Get"),
        (["list"], "List"),
        (["search", "x"], "Search"),
        (["history", "user:mira", "city"], "History"),
    ],
)
def test_every_reading_command_asks_for_a_recorded_state(at, server, command, verb):
    answer = {
        "Get": pb.GetResponse(record=pb.Record(memory=FACT)),
        "List": pb.ListResponse(),
        "Search": pb.SearchResponse(),
        "History": pb.HistoryResponse(),
    }[verb]
    server.script(verb, answer, answer)
    assert at(*command, "--known-at", "2026-06-01T11:00+02:00").code == 0
    assert at(*command, "--at-revision", "0", "--at-least-revision", "7").code == 0
    first, second = (call.request.read for call in server.calls(verb))
    assert (first.WhichOneof("recorded"), first.known_at.seconds) == (
        "known_at",
        INSTANT["seconds"],
    )
    assert (second.WhichOneof("recorded"), second.exact_revision) == ("exact_revision", 0)
    assert second.at_least_revision == 7
    both = at(*command, "--at-revision", "1", "--known-at", "2026-06-01T11:00Z")
    assert both.code == 2
    assert "give one of them" in both.err
    assert at(*command, "--known-at", "2026-06-01T11:00").code == 2
    assert at(*command, "--at-revision", "-1").code == 2
    assert len(server.calls(verb)) == 2


def test_get_looks_for_an_episode_when_there_is_no_memory(at, server):
    server.script(
        "Get",
        failure("NOT_FOUND", StatusCode.NOT_FOUND),
        pb.GetResponse(record=pb.Record(episode={"id": "e2", "content": "It is now"})),
    )
    assert "It is now" in at("get", "e2").out


def test_an_unknown_id_is_neither_memory_nor_episode(at, server):
    server.script("Get", failure("NOT_FOUND", StatusCode.NOT_FOUND, "there is no episode"))
    people, programs = at("get", FACT.id), at("get", FACT.id, "--json")
    assert people.code == programs.code == ExitCode.REFUSED
    assert f"there is no memory or episode {FACT.id}" in people.err
    assert programs.document["error"]["reason"] == "NOT_FOUND"


def test_search_shows_scores_and_the_first_words(at, server):
    hit = search_pb2.SearchHit(memory=FACT, score=0.75)
    hit.parts.MergeFrom(search_pb2.ScoreParts(relevance=0.5, recency=1, lexical=4.25))
    server.script(
        "Search",
        pb.SearchResponse(hits=[hit], revision=9, exactness=1, admitted=3),
        pb.SearchResponse(),
    )
    people = at(
        "search", "deadline", "--parts", "-k", "3", "--subject", "user:mira", "--superseded"
    )
    for part in (
        "0.750",
        "rel 0.50 rec 1.00",
        "words 4.25",
        "passport_deadline",
        "exact",
        "revision 9",
    ):
        assert part in people.out
    (call,) = server.calls("Search")
    assert call.request.top_k == 3
    assert call.request.filter.subjects[0].id == "mira"
    assert call.request.filter.validity == search_pb2.VALIDITY_FILTER_ANY
    nothing = at("search", "x")
    assert (nothing.code, nothing.out.strip()) == (0, "nothing matched")


def test_search_takes_an_order_and_shows_what_is_older(at, server):
    older = search_pb2.SearchHit(memory=FACT, score=0.5, older_statement=True)
    latest = search_pb2.SearchHit(memory=FACT, score=0.25, folded_ids=["a", "b"])
    server.script("Search", pb.SearchResponse(hits=[latest, older], exactness=1))
    people = at("search", "x", "--profile", "fresh", "--diversity", "0.25", "--fold")
    assert "0.500 (older)" in people.out
    assert "0.250 (+2 older)" in people.out
    request = server.calls("Search")[0].request
    assert (request.ranking.name, request.ranking.diversity) == ("fresh", 0.25)
    assert request.older_statements == search_pb2.OLDER_STATEMENTS_FOLD


def test_search_for_programs(at, server):
    hit = search_pb2.SearchHit(memory=FACT, score=0.75)
    server.script("Search", pb.SearchResponse(hits=[hit], exactness=1, path=1))
    document = at("search", "x", "--json").document
    assert document["exactness"] == "exact"
    assert document["hits"][0]["score"] == 0.75
    assert document["hits"][0]["memory"]["id"] == FACT.id


def test_history_and_list_give_json_lines(at, server):
    entry = pb.HistoryEntry(memory=FACT, recorded_from_revision=4, recorded_from=INSTANT)
    server.script("History", pb.HistoryResponse(entries=[entry, entry]))
    server.script("List", pb.ListResponse(records=[pb.Record(memory=FACT)] * 3))
    entries = at("history", "user:mira", "passport_deadline", "--json").documents
    assert [one["recorded_from_revision"] for one in entries] == [4, 4]
    assert "recorded_to" not in entries[0]
    assert len(at("list", "--limit", "2", "--json").documents) == 2
    assert "still held" in at("history", FACT.id).out
    assert "the first 2" in at("list", "--limit", "2").out


def test_list_episodes(at, server):
    record = pb.Record(episode={"id": "e1", "content": "hello"})
    server.script("List", pb.ListResponse(records=[record]))
    assert at("list", "--episodes", "--json").document["content"] == "hello"
    assert "hello" in at("list", "--episodes").out
    assert server.calls("List")[0].request.episodes


PREVIEW = pb.ForgetResponse(report={"memories": 3, "dry_run": True, "sample_ids": ["m1"]})


@pytest.mark.parametrize(
    ("given", "runs"),
    [
        (["a", "b"], [pb.FORGET_RUN_EXECUTE]),
        (["a", "--dry-run"], [pb.FORGET_RUN_DRY_RUN]),
        (["--subject", "user:mira"], [pb.FORGET_RUN_DRY_RUN]),
        (["--subject", "user:mira", "--yes"], [pb.FORGET_RUN_DRY_RUN, pb.FORGET_RUN_EXECUTE]),
        (["--subject", "user:mira", "--attribute", "city"], [pb.FORGET_RUN_DRY_RUN]),
        (["--episode", "e1"], [pb.FORGET_RUN_DRY_RUN]),
        (["--last", "1h"], [pb.FORGET_RUN_DRY_RUN]),
        (["--topic", "x", "--yes"], [pb.FORGET_RUN_DRY_RUN, pb.FORGET_RUN_EXECUTE]),
    ],
)
def test_forget_shows_first_and_does_it_only_when_told(at, server, given, runs):
    server.script("Forget", PREVIEW)
    server.script("BatchGet", pb.BatchGetResponse(items=[{}]))
    outcome = at("forget", *given)
    assert outcome.code == 0
    assert [call.request.run for call in server.calls("Forget")] == runs
    shown = pb.FORGET_RUN_DRY_RUN in runs
    assert ("would be forgotten: 3 memories" in outcome.out) == shown
    assert ("--yes" in outcome.err) == (
        runs == [pb.FORGET_RUN_DRY_RUN] and "--dry-run" not in given
    )


def test_a_preview_says_what_would_be_taken(at, server):
    server.script("Forget", PREVIEW)
    server.script("BatchGet", pb.BatchGetResponse(items=[{"record": {"memory": FACT}}]))
    outcome = at("forget", "--subject", "user:mira")
    assert list(server.calls("BatchGet")[0].request.targets) == [pb.RecordTarget(memory_id="m1")]
    assert f"{FACT.id}\tuser:mira\tpassport_deadline" in outcome.out
    assert "2026-06-30 [/]" in outcome.out


@pytest.mark.parametrize("mode", ["expire", "retract"])
def test_forget_says_that_nothing_was_left_to_do(at, server, mode):
    server.script("Forget", pb.ForgetResponse(report={"memories": 0}))
    assert "nothing was left to do" in at("forget", "m1", "--mode", mode).out


def test_the_shared_options_are_told_by_a_group_too(at):
    for name in ("schema", "write"):
        assert "--tenant" in at(name, "--help").out


def test_forget_for_programs(at, server):
    server.script("Forget", PREVIEW)
    document = at("forget", "--subject", "user:mira", "--json").document
    assert document["preview"]["report"]["memories"] == 3
    assert "result" not in document


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["a", "--subject", "user:mira"],
        ["a", "--context", "work"],
        ["a", "--yes", "--dry-run"],
        ["--subject", "mira"],
        ["--subject", "user:mira", "--attribute", "x", "--context", "a", "--context", "b"],
        ["--last", "1h", "--recorded-from", "2026-06-01T00:00:00Z"],
        ["--last", "1h", "--expired"],
        ["--last", "1h", "--subject", "user:mira"],
        ["--topic", "x", "--label", "y"],
        ["--last", "yesterday"],
        ["--decayed", "episodic"],
        ["--decayed", "episodic=2"],
        ["--expired", "--context", "work"],
        ["--expired", "--attribute", "city"],
    ],
)
def test_forget_refuses_an_unclear_selector(at, server, given):
    assert at("forget", *given).code == ExitCode.USAGE
    assert server.calls("Forget") == []


def test_info_and_stats(at, server):
    server.script(
        "GetServerInfo",
        pb.GetServerInfoResponse(
            server_version="0.1.0",
            capabilities=[1],
            store="lmdb",
            limits={
                "default_deadline": {"seconds": 30},
                "message_bytes_max": 4096,
                "request_id_window": {"seconds": 129_600},
            },
        ),
    )
    server.script("Check", health_pb2.HealthCheckResponse(status=1))
    part = admin.PartitionStats(
        partition={"tenant": "acme"}, memories=12, record_bytes=2048, index_lag=3, vectors_failed=2
    )
    server.script(
        "GetStats",
        admin.GetStatsResponse(
            store={"kind": "lmdb", "commits": 7},
            partitions=[part],
            uptime={"seconds": 61, "nanos": 500_600_700},
        ),
    )
    info, stats = at("info"), at("stats", "--all")
    assert "0.1.0" in info.out
    assert re.search(r"healthy\s+yes", info.out)
    assert "default deadline\t30 s" in info.out
    assert "message max\t4,096 bytes" in info.out
    assert "request id window\t36 h" in info.out
    assert "history window\tfor ever" in info.out
    assert re.search(r"acme: .* 12 memories, .* 2 failed, index lag 3$", stats.out, re.MULTILINE)
    assert "up for\t0:01:02\n" in stats.out
    assert at("info", "--json").document["healthy"] is True
    assert at("stats", "--json").document["store"]["commits"] == 7


def test_shared_options_come_before_or_after_the_command(pillion, server):
    server.script("Search", pb.SearchResponse())
    for line in (
        ["--target", server.target, "--tenant", "a", "--json", "search", "x"],
        ["search", "x", "--target", server.target, "--tenant", "a", "--json"],
        [
            "--tenant",
            "b",
            "--json",
            "--target",
            "unix:/nowhere",
            "search",
            "x",
            "--tenant",
            "a",
            "--target",
            server.target,
        ],
    ):
        outcome = pillion(*line)
        assert outcome.code == 0
        assert outcome.document["hits"] == []
    tenants = [call.request.partition.tenant for call in server.calls("Search")]
    assert tenants == ["a", "a", "a"]


def test_the_environment_is_weaker_than_an_option(pillion, server, monkeypatch):
    server.script("Search", pb.SearchResponse())
    monkeypatch.setenv("PILLION_TARGET", server.target)
    monkeypatch.setenv("PILLION_TENANT", "from-env")
    assert pillion("search", "x").code == 0
    assert pillion("--tenant", "said", "search", "x").code == 0
    assert [call.request.partition.tenant for call in server.calls("Search")] == [
        "from-env",
        "said",
    ]


def test_the_token_comes_from_a_file(at, server, folder):
    server.script("Search", pb.SearchResponse())
    (folder / "token").write_text("s3cret\n")
    assert at("--token-file", folder / "token", "search", "x").code == 0
    assert server.calls("Search")[0].metadata["authorization"] == "Bearer s3cret"
    missing = at("--token-file", folder / "none", "search", "x")
    assert missing.code == ExitCode.USAGE
    assert "cannot be read" in missing.err
    (folder / "list").write_text("[[tokens]]\nsha256 = 1\n")
    assert "not the server's list" in at("--token-file", folder / "list", "search", "x").err


def test_a_missing_token_says_how_to_give_one(at, server):
    server.script("Search", failure("UNAUTHENTICATED", StatusCode.UNAUTHENTICATED, "send one"))
    outcome = at("search", "x")
    assert outcome.code == ExitCode.REFUSED
    assert "this server needs a token: --token-file FILE (the token itself, not" in outcome.err


def test_without_a_server_the_exit_code_is_3_and_the_advice_clear(pillion):
    people = pillion("search", "x")
    assert people.code == ExitCode.NO_SERVER
    assert "pillion serve" in people.err
    assert "PILLION_TARGET=unix:///path/to/pillion.sock" in people.err
    assert "--target unix:///path/to/pillion.sock" in people.err
    assert people.out == ""
    programs = pillion("search", "x", "--json")
    assert programs.code == ExitCode.NO_SERVER
    assert programs.document["error"]["code"] == "UNAVAILABLE"


def test_a_refusal_says_what_to_do(at, server):
    server.script(
        "Write",
        failure(
            "VERSION_MISMATCH",
            StatusCode.ABORTED,
            "expected version 3: read it again",
            metadata={"current_version": "9"},
        ),
    )
    line = ("write", "fact", "user:mira", "age", "30", "--if-version", "3")
    people, programs = at(*line), at(*line, "--json")
    assert people.code == programs.code == ExitCode.REFUSED
    assert "version is now 9" in people.err
    error = programs.document["error"]
    assert (error["reason"], error["metadata"]) == ("VERSION_MISMATCH", {"current_version": "9"})
    assert programs.err == ""


def test_a_refusal_names_the_current_version_once(at, server):
    version = {"current_version": "9"}
    server.script(
        "Write",
        failure("VERSION_MISMATCH", StatusCode.ABORTED, "it is version 9: redo", metadata=version),
        failure("ALREADY_EXISTS", StatusCode.ALREADY_EXISTS, "it exists", metadata=version),
    )
    line = ("write", "fact", "user:mira", "age", "30")
    assert at(*line, "--if-version", "3").err.count("version 9") == 1
    assert "its version is now 9" not in at(*line, "--if-new").out
    server.script(
        "Write",
        failure("ALREADY_EXISTS", StatusCode.ALREADY_EXISTS, "it exists", metadata=version),
    )
    assert "it exists (its version is now 9)" in at(*line, "--if-new").err


def test_a_fact_without_a_value_says_where_to_look(at, server):
    missing = failure("NOT_FOUND", StatusCode.NOT_FOUND, "there is no value")
    server.script("Get", missing, missing)
    assert (
        "there is no value; `pillion history user:mira city`" in at("get", "user:mira", "city").err
    )
    elsewhere = at("get", "user:mira b", "city", "--context", "at work")
    assert "`pillion history 'user:mira b' city --context 'at work'`" in elsewhere.err


@pytest.mark.parametrize("option", ["--tenant", "--namespace", "--target", "--request-id", "--id"])
def test_an_empty_option_never_stands_for_the_default(at, server, option):
    line = ("write", "fact", "user:mira", "age", "30")
    outcome = at(*line, option, "")
    assert outcome.code == ExitCode.USAGE
    assert option in outcome.err
    assert "it is empty" in outcome.err
    assert not server.calls("Write")


def test_field_violations_are_shown(at, server):
    server.script(
        "Write",
        failure(
            "INVALID_FIELD",
            StatusCode.INVALID_ARGUMENT,
            "refused",
            field_violations={"importance": "0 to 1"},
        ),
    )
    outcome = at("write", "memory", "user:mira", "x", "--importance", "7")
    assert "importance: 0 to 1" in outcome.err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (["search", "x", "--as-of", "2026-06-02T00:00"], "example 2026-06-02T00:00:00Z"),
        (
            ["search", "x", "--as-of", "2026-06-01"],
            "no offset: write for example 2026-06-01T00:00:00Z",
        ),
        (["get", "user:mira"], "a subject needs an ATTRIBUTE; `pillion list --subject user:mira`"),
        (["history", "user:mira"], "a subject needs an ATTRIBUTE"),
        (["search", "x", "--as-of", "tuesday"], "ISO 8601"),
        (["write", "fact", "mira", "age", "30"], "type:id"),
        (["write", "fact", "user:mira", "age", "x", "--type", "int"], "not of type int"),
        (["write", "fact", "user:mira", "age", "x", "--type", "bool"], "true or false"),
        (["write", "fact", "user:mira", "age", "nan", "--type", "float"], "finite"),
        (["write", "fact", "user:mira", "a", "x", "--if-new", "--if-exists"], "exclude"),
        (["nonsense"], "No such command"),
        (["--target", "nowhere", "info"], "not a target"),
    ],
)
def test_a_wrong_command_line_exits_2_and_says_why(at, pillion, line, why):
    for run, extra in ((at, []), (pillion, ["--json"])):
        outcome = run(*line, *extra) if run is at else run(*extra, *line)
        assert outcome.code == ExitCode.USAGE
        assert why in (outcome.document["error"]["message"] if extra else outcome.err)


def test_output_has_no_colours_without_a_terminal(at, server):
    server.script("Get", pb.GetResponse(record=pb.Record(memory=FACT)))
    assert "\x1b" not in at("get", FACT.id).out


def test_json_is_one_line_of_plain_text(at, server):
    memory = types_pb2.Memory(id="a", text="Zürich\nline two")
    server.script("Get", pb.GetResponse(record=pb.Record(memory=memory)))
    outcome = at("get", "a", "--json")
    assert outcome.out.count("\n") == 1
    assert "Zürich" in outcome.out
    assert json.loads(outcome.out)["text"] == "Zürich\nline two"


def test_retract_names_a_fact_a_member_or_a_memory_and_an_instant(at, server):
    server.script("Write", WRITTEN)
    line = ("retract", "user:mira", "speaks", "--member", "7", "--member-type", "int")
    assert at(*line, "--at", "2026-06-01T11:00+02:00").code == 0
    sent = server.calls("Write")[0].request.mutations[0].retract_memory
    assert (sent.fact.subject.id, sent.fact.attribute, sent.fact.member.int_value) == (
        "mira",
        "speaks",
        7,
    )
    assert sent.valid_to.seconds == INSTANT["seconds"]
    assert sent.precondition.unconditional
    assert at("retract", FACT.id, "--if-version", "4").code == 0
    sent = server.calls("Write")[1].request.mutations[0].retract_memory
    assert (sent.memory_id, sent.precondition.version_equals) == (FACT.id, 4)
    assert not sent.HasField("valid_to")


def test_restore_and_confirm(at, server):
    server.script("Write", WRITTEN)
    assert at("restore", FACT.id, "--request-id", "r-1").code == 0
    request = server.calls("Write")[0].request
    assert (request.request_id, request.mutations[0].restore_memory.memory_id) == ("r-1", FACT.id)
    assert at("confirm", FACT.id, "--quote", "yes, that is so", "--author", "mira").code == 0
    sent = server.calls("Write")[1].request.mutations[0].confirm_memory
    assert (sent.memory_id, sent.source.quote, sent.source.author) == (
        FACT.id,
        "yes, that is so",
        "mira",
    )
    assert sent.source.kind == types_pb2.SOURCE_KIND_USER_CONFIRMATION


def _selected(at, server, *given):
    server.script("Forget", pb.ForgetResponse(report={"dry_run": True}))
    assert at("forget", *given).code == 0
    return server.calls("Forget")[-1].request.selector


def test_forget_selects_by_every_selector_of_the_contract(at, server):
    mira = {"type": "user", "id": "mira"}
    expected = {
        ("--attribute", "city"): {"filter": {"all_contexts": True, "attributes": ["city"]}},
        ("--label", "a", "--label", "b", "--context", "work", "--subject", "user:mira"): {
            "filter": {"contexts": ["work"], "labels_all": ["a", "b"], "subjects": [mira]}
        },
        ("--topic", "the move", "--score-min", "0.25", "--subject", "user:mira"): {
            "topic": {"text": "the move", "score_min": 0.25, "subjects": [mira]}
        },
        ("--retention-class", "chat"): {"retention_class": "chat"},
        ("--expired",): {"expired": True},
        ("--decayed", "episodic=0.25", "--decayed", "session=0.5"): {
            "decayed": {"thresholds": [{"kind": 1, "vitality": 0.25}, {"kind": 4, "vitality": 0.5}]}
        },
        ("--episode", "e1"): {"episode_id": "e1"},
    }
    for given, selector in expected.items():
        assert _selected(at, server, *given) == pb.ForgetSelector(**selector), given
    window = _selected(at, server, "--last", "90m").recorded
    assert window.to.ToMicroseconds() - getattr(window, "from").ToMicroseconds() == 90 * 60_000_000


def test_forget_tells_what_is_held_and_what_the_preview_did_not_show(at, server):
    server.script("BatchGet", pb.BatchGetResponse())
    server.script(
        "Forget",
        pb.ForgetResponse(report={"memories": 1, "dry_run": True}, revision=7),
        pb.ForgetResponse(report={"memories": 3, "exempt_ids": ["h1"], "unpreviewed": 2}),
    )
    outcome = at("forget", "--last", "1h", "--yes", "--force")
    assert "h1" in outcome.out
    assert "not in the preview" in outcome.out
    done = server.calls("Forget")[-1].request
    assert (done.preview_revision, done.force) == (7, True)
