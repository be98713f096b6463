"""Whatever bytes a caller sends to a real server, the answer is OK or a published error.

Never INTERNAL, never a word that was stored in an error, never another tenant's memory. An answer
that is OK holds what its filter admits, by a model of `Filter` that is written here from the
contract and shares nothing with the server, and is sorted and no longer than was asked for.
"""

from __future__ import annotations

import math
import struct
from collections import Counter

import grpc
import pytest
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from hypothesis import given, settings
from pillion.domain.errors import Reason
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import search_pb2, types_pb2
from pillion_testing.fuzzing import damaged, requests
from pillion_testing.servers import SECONDS, ServerProcess, note

OURS, THEIRS = "", "other"
CANARY, SECRET = "canary-theirs-77c1", "secret-ours-77c1"
KINDS = {
    "Search": wire.SearchRequest,
    "Recall": wire.RecallRequest,
    "List": wire.ListRequest,
    "Neighbors": wire.NeighborsRequest,
    "Get": wire.GetRequest,
    "BatchGet": wire.BatchGetRequest,
    "History": wire.HistoryRequest,
}
MIRA = {"type": "user", "id": "mira"}
REQUIRED = {
    "Search": {"top_k": 5},
    "Recall": {"subjects": [MIRA], "token_budget": 300},
    "Neighbors": {"subjects": [MIRA]},
    "Get": {"target": {"fact": {"subject": MIRA, "attribute": "knows"}}},
    "BatchGet": {"targets": [{"fact": {"subject": MIRA, "attribute": "deadline"}}]},
    "History": {"fact": {"subject": MIRA, "attribute": "deadline"}},
}
POOL = {
    "": ["mira", "note", "red"],
    **{name: ["red", "blue"] for name in ("labels_all", "labels_any", "labels_none")},
    "type": ["user"],
    "id": ["mira", "mir"],
    "context": [""],
    "contexts": ["", "work"],
    "attribute": ["deadline", "knows"],
    "attributes": ["deadline", "knows"],
    "episode_ids": ["01890000-0000-7000-8000-000000000001"],
    "memory_id": ["01890000-0000-7000-8000-000000000001"],
    "page_token": [""],
    "query": [f"note 1 {SECRET}"],
}
ANSWERS = {name: getattr(wire, f"{name}Response") for name in KINDS}
ALLOWED = {reason.name for reason in Reason} - {"INTERNAL"}
# How many calls of each verb were answered: a fuzzer that is always refused looks at nothing.
ANSWERED = Counter()
ANSWERED_MIN = 3


def memories(word):
    """Mutations whose memories differ in all that a filter can ask for."""
    made = [
        note(
            f"note {number} {word}",
            subject=["mira", "mir"][number % 2],
            kind=1 + number % 4,
            labels=["red", "blue"][: number % 3],
            context=["", "work"][number % 5 == 0],
            importance=number / 10,
            confidence=1 - number / 20,
            session_id=["", "mira"][number % 3 == 0],
            vector=struct.pack("<4f", 1, number, 0, -number),
        )
        for number in range(9)
    ]
    facts = [
        wire.Mutation(
            put_fact={
                "precondition": {"unconditional": True},
                "fact": {
                    "subject": {"type": "user", "id": "mira"},
                    "attribute": attribute,
                    "value": value,
                    "text": f"{attribute} {word}",
                    "source": {"kind": 1},
                    "vector": struct.pack("<4f", 0, 1, 1, 0),
                },
            }
        )
        for attribute, value in [
            ("deadline", {"string_value": f"soon {word}"}),
            ("knows", {"subject_value": {"type": "user", "id": "mir"}}),
        ]
    ]
    return made + facts


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    # A read of a revision that is not there yet waits as long as it may.
    flags = ("--default-deadline-ms", "1000")
    running = ServerProcess(tmp_path_factory.mktemp("fuzz") / "d", *flags)
    for tenant, word in [(OURS, SECRET), (THEIRS, CANARY)]:
        where = {"tenant": tenant} if tenant else None
        request = wire.WriteRequest(partition=where, mutations=memories(word))
        running.stub.Write(request, timeout=SECONDS)
    yield running
    assert "Traceback" not in running.log
    running.stop()
    assert CANARY not in running.log
    assert SECRET not in running.log


def names_theirs(request):
    return request is not None and request.partition.tenant == THEIRS


def ask(server, verb, data):
    """Send bytes and return the answer, or None for an error, which is held to the law."""
    call = server.channel.unary_unary(f"/pillion.memory.v1.MemoryService/{verb}")
    try:
        answer = call(data)
    except grpc.RpcError as caught:
        error = caught
    else:
        ANSWERED[verb] += 1
        return answer
    check_error(verb, error)
    return None


def check_error(verb, error):
    """Hold an error to the law: a published reason, and nothing that anybody stored."""
    status = rpc_status.from_call(error)
    assert status is not None, (verb, error.code(), error.details())
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.reason in ALLOWED, (verb, info.reason, error.details())
    said = status.SerializeToString() + error.details().encode()
    assert CANARY.encode() not in said
    assert SECRET.encode() not in said


def parsed(kind, data):
    try:
        return kind.FromString(data)
    except DecodeError:
        return None


def within(window, stamp):
    at = (stamp.seconds, stamp.nanos // 1000)
    start, end = window["from"], window["to"]
    return (start is None or start <= at) and (end is None or at < end)


def window_of(filter_, name):
    window = getattr(filter_, name)
    ends = {}
    for end in ("from", "to"):
        stamp = getattr(window, end)
        has = filter_.HasField(name) and window.HasField(end)
        ends[end] = (stamp.seconds, stamp.nanos // 1000) if has else None
    return ends


def admits(asked, memory, *, nested=False):
    """Whether the contract's Filter admits a memory, but for what hangs on the clock."""
    stated = {types_pb2.MEMORY_STATUS_STATED, types_pb2.MEMORY_STATUS_CONFIRMED}
    statuses = set(asked.statuses) or (set() if nested else stated)
    contexts = set(asked.contexts) or (set() if nested or asked.all_contexts else {""})
    subjects = {(one.type, one.id) for one in asked.subjects}
    labels = set(memory.labels)
    return (
        (not subjects or (memory.subject.type, memory.subject.id) in subjects)
        and (not contexts or memory.context in contexts)
        and (not asked.kinds or memory.kind in asked.kinds)
        and (not statuses or memory.status in statuses)
        and (not asked.attributes or memory.attribute in asked.attributes)
        and set(asked.labels_all) <= labels
        and (not asked.labels_any or bool(labels & set(asked.labels_any)))
        and not labels & set(asked.labels_none)
        and within(window_of(asked, "created"), memory.created_at)
        and within(window_of(asked, "valid_from"), memory.valid_from)
        and memory.importance >= asked.importance_min
        and memory.confidence >= asked.confidence_min
        and (not asked.source_kinds or memory.source.kind in asked.source_kinds)
        and (not asked.episode_ids or memory.source.episode_id in asked.episode_ids)
        and (not asked.session_ids or memory.session_id in asked.session_ids)
        and (not asked.any_of or any(admits(one, memory, nested=True) for one in asked.any_of))
        and not any(admits(one, memory, nested=True) for one in asked.none_of)
    )


def check_answer(verb, request, answer):
    """Hold an answer that is OK to what was asked."""
    if verb == "Search":
        assert sum(not hit.path for hit in answer.hits) <= request.top_k
        scores = [hit.score for hit in answer.hits]
        assert not any(math.isnan(score) for score in scores)
        if not request.ranking.diversity and request.older_statements == 0:
            found = [hit.score for hit in answer.hits if not hit.path and not hit.older_statement]
            assert found == sorted(found, reverse=True)
        assert all(score >= request.score_min for score in scores)
        anyone = search_pb2.Filter()
        anyone.CopyFrom(request.filter)
        anyone.ClearField("subjects")  # to leave them is what a walk is for
        for hit in answer.hits:
            asked = anyone if hit.path else request.filter
            assert admits(asked, hit.memory), (request, hit.memory)
        assert sum(bool(hit.path) for hit in answer.hits) <= request.top_k
    if verb == "List" and not request.episodes:
        for record in answer.records:
            assert admits(request.filter, record.memory), (request, record.memory)


@pytest.mark.parametrize("verb", KINDS)
def test_every_request_is_answered_or_refused_with_a_reason(server, verb):
    @given(requests(KINDS[verb], POOL, **REQUIRED.get(verb, {})))
    def law(request):
        request.partition.Clear()
        answer = ask(server, verb, request.SerializeToString())
        if answer is not None:
            assert CANARY.encode() not in answer
            check_answer(verb, request, ANSWERS[verb].FromString(answer))

    before = ANSWERED[verb]
    law()
    assert ANSWERED[verb] - before >= ANSWERED_MIN


@pytest.mark.parametrize("verb", KINDS)
def test_broken_bytes_are_answered_or_refused_with_a_reason(server, verb):
    @given(damaged(requests(KINDS[verb], POOL, **REQUIRED.get(verb, {}))))
    def law(data):
        answer = ask(server, verb, data)
        if answer is not None:
            assert names_theirs(parsed(KINDS[verb], data)) or CANARY.encode() not in answer

    law()


def test_a_search_with_a_nested_filter_is_what_the_model_says(server):
    """Searches that are well formed, so that most are answered; every admitted memory is found."""
    everything = search_pb2.Filter(all_contexts=True)
    call = wire.ListRequest(filter=everything, page_size=100)
    known = [record.memory for record in server.stub.List(call, timeout=SECONDS).records]
    assert len(known) == len(memories(SECRET))

    # One field of twenty is drawn at a time, so a single broken one needs many draws to show.
    @settings(max_examples=8 * settings.default.max_examples)
    @given(requests(search_pb2.Filter, POOL))
    def law(asked):
        request = wire.SearchRequest(filter=asked, top_k=100, without_access=True)
        answer = ask(server, "Search", request.SerializeToString())
        if answer is None:
            return
        hits = ANSWERS["Search"].FromString(answer).hits
        expected = {memory.id for memory in known if admits(asked, memory)}
        assert {hit.memory.id for hit in hits} == expected

    before = ANSWERED["Search"]
    law()
    assert ANSWERED["Search"] - before >= ANSWERED_MIN
