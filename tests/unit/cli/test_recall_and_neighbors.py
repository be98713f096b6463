"""``pillion recall`` and ``pillion neighbors``: what they send, and what they show."""

from __future__ import annotations

import pytest
from pillion_proto.memory.v1 import memory_service_pb2 as pb
from pillion_proto.memory.v1 import search_pb2

ID = "11111111-1111-4111-8111-111111111111"
CONTEXT = pb.RecallResponse(
    lines=[
        pb.RecallLine(
            section=2,
            text="- [since 2026-06-01] user:mira city: Lisbon [/]",
            tokens=9,
            citation=pb.Citation(memory_id=ID, version=4, valid_from={"seconds": 1_780_304_400}),
        )
    ],
    text="# What is so\n- [since 2026-06-01] user:mira city: Lisbon [/]",
    tokens=12,
    tokens_estimated=True,
    omitted=[pb.OmittedLine(memory_id=ID, section=5, reason="budget")],
    revision=7,
)
EDGE = search_pb2.Edge(
    attribute="works_at", to={"type": "org", "id": "acme"}, memory_id=ID, version=4
)
getattr(EDGE, "from").CopyFrom(
    pb.NeighborsRequest(subjects=[{"type": "user", "id": "mira"}]).subjects[0]
)
REACHED = pb.NeighborsResponse(
    neighbors=[pb.Neighbor(subject={"type": "org", "id": "acme"}, path=[EDGE])],
    truncated=True,
    revision=7,
)


def test_recall_sends_what_is_said(at, server):
    server.script("Recall", CONTEXT)
    outcome = at(
        *["recall", "user:mira", "where?", "--budget", "300", "--also", "org:acme", "--start"],
        *["--context", "", "--context", "work", "--counter", "words", "--section", "related=90"],
        *["--as-of", "2026-06-01T09:00:00Z", "--at-revision", "5"],
    )
    assert outcome.code == 0
    request = server.calls("Recall")[0].request
    assert [one.id for one in request.subjects] == ["mira", "acme"]
    assert (request.query, request.token_budget, request.token_counter) == ("where?", 300, "words")
    assert list(request.contexts) == ["", "work"]
    assert [(one.section, one.tokens) for one in request.section_budgets] == [(5, 90)]
    assert request.purpose == pb.RECALL_PURPOSE_SESSION_START
    assert (request.read.as_of.seconds, request.read.exact_revision) == (1_780_304_400, 5)


def test_recall_shows_the_text_and_notes_beside_it(at, server):
    server.script("Recall", CONTEXT, CONTEXT)
    outcome = at("recall", "user:mira")
    assert outcome.out == CONTEXT.text + "\n"
    assert outcome.err.splitlines() == [
        "about 12 of 1000 tokens, 1 lines, at revision 7",
        f"left out: {ID} of related (budget)",
    ]
    assert at("--json", "recall", "user:mira").document == {
        "lines": [
            {
                "section": "facts",
                "text": CONTEXT.lines[0].text,
                "tokens": 9,
                "citation": {
                    "memory_id": ID,
                    "version": 4,
                    "valid_from": "2026-06-01T09:00:00Z",
                },
            }
        ],
        "text": CONTEXT.text,
        "tokens": 12,
        "tokens_estimated": True,
        "omitted": [{"memory_id": ID, "section": "related", "reason": "budget"}],
        "revision": 7,
    }


@pytest.mark.parametrize("words", ["related", "related=x", "nosuch=3", "=3"])
def test_a_malformed_section_budget_is_a_usage_error(pillion, words):
    outcome = pillion("recall", "user:mira", "--section", words)
    assert outcome.code == 2
    assert "related=300" in outcome.err


def test_neighbors_sends_what_is_said_and_shows_paths(at, server):
    server.script("Neighbors", REACHED, REACHED, pb.NeighborsResponse())
    outcome = at(
        *["neighbors", "user:mira", "user:jo", "--direction", "both", "--depth", "2"],
        *["--fan-out", "7", "--along", "works_at", "--context", "work", "--edges", "9"],
        *["--known-at", "2026-06-01T09:00:00Z"],
    )
    request = server.calls("Neighbors")[0].request
    assert [one.id for one in request.subjects] == ["mira", "jo"]
    assert request.direction == pb.EDGE_DIRECTION_BOTH
    expansion = request.expansion
    assert (expansion.depth, expansion.fan_out, list(expansion.attributes)) == (2, 7, ["works_at"])
    assert (list(request.contexts), request.edges_max) == (["work"], 9)
    assert request.read.known_at.seconds == 1_780_304_400
    assert outcome.out == f"org:acme\tuser:mira works_at org:acme\t{ID}\n"
    assert "there is more" in outcome.err
    told = at("--json", "neighbors", "user:mira").document
    assert told["neighbors"][0]["path"][0]["memory_id"] == ID
    assert at("neighbors", "user:mira").out == "nothing is connected\n"


def test_search_expands_and_shows_what_is_connected_apart(at, server):
    memory = {"id": ID, "subject": {"type": "org", "id": "acme"}, "text": "Acme moves"}
    found = pb.SearchResponse(
        hits=[
            search_pb2.SearchHit(memory=memory | {"text": "Mira works"}, score=0.5),
            search_pb2.SearchHit(memory=memory, score=0.4, path=[EDGE]),
        ],
        exactness=1,
        path=1,
        admitted=1,
    )
    server.script("Search", found, found, found)
    shown = at("search", "where?", "--expand", "2").out.splitlines()
    assert server.calls("Search")[0].request.expansion.depth == 2
    assert shown[0].startswith("0.500\tMira works")
    assert shown[1] == "connected with these:"
    assert shown[2].startswith("0.400\tAcme moves")
    assert shown[2].endswith("\tuser:mira works_at org:acme")
    assert shown[3].startswith("1 of 1 admitted memories")
    told = at("--json", "search", "where?").document["hits"]
    assert not server.calls("Search")[1].request.HasField("expansion")
    assert told[1]["path"][0]["attribute"] == "works_at"
