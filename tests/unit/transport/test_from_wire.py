"""What comes from the wire: good requests convert whole, and each bad one is named by its field."""

from dataclasses import replace
from uuid import UUID

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.mutations import (
    AddMemory,
    ConflictPolicy,
    EmbeddingMode,
    Guard,
    MemoryDraft,
    Precondition,
    PreconditionKind,
    PutFact,
)
from pillion.domain.queries import (
    NESTED,
    RECALLED_STATUSES,
    Filter,
    RankingProfile,
    ReadAt,
    RecencyAnchor,
    SearchQuery,
    Window,
)
from pillion.domain.scope import FactKey, Subject
from pillion.domain.values import Value, ValueKind
from pillion.service.profiles import Profiles
from pillion.transport.convert import commands, forgetting, mutations, queries
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import search_pb2, types_pb2

ID = "01890000-0000-7000-8000-000000000001"
OTHER = "01890000-0000-7000-8000-000000000002"
MIRA = types_pb2.Subject(type="user", id="mira")
SAID = types_pb2.Source(kind=types_pb2.SOURCE_KIND_USER_STATEMENT)
ALWAYS = types_pb2.Precondition(unconditional=True)
KEY = types_pb2.FactKey(subject=MIRA, attribute="deadline")


def put_fact(**changes):
    fact = types_pb2.Memory(
        subject=MIRA,
        attribute="deadline",
        value=types_pb2.Value(string_value="soon"),
        source=SAID,
    )
    fact.MergeFrom(types_pb2.Memory(**changes))
    return wire.Mutation(put_fact=wire.PutFact(fact=fact, precondition=ALWAYS))


def test_a_fact_converts_with_everything_a_caller_can_state():
    mutation = put_fact(
        id=ID,
        context="work",
        text="t",
        vector=b"\0\0\x80?",
        importance=0.0,
        confidence=0.25,
        status=types_pb2.MEMORY_STATUS_CANDIDATE,
        pinned=True,
        pii_labels=["email"],
        labels=["a", "b"],
        derived_from=[OTHER],
        valid_from=Timestamp(seconds=1),
        valid_to=Timestamp(seconds=2),
        expires_at=Timestamp(seconds=3),
        retention_class="short",
        session_id="s",
        source=types_pb2.Source(episode_id=OTHER, quote="q", author="a"),
    )
    mutation.put_fact.conflict_policy = wire.CONFLICT_POLICY_CORRECT
    assert mutations.mutation_from_wire(mutation) == PutFact(
        MemoryDraft(
            subject=Subject("user", "mira"),
            source=Source(SourceKind.USER_STATEMENT, UUID(OTHER), "q", "a"),
            kind=MemoryKind.SEMANTIC,
            id=UUID(ID),
            context="work",
            attribute="deadline",
            value=Value(ValueKind.TEXT, "soon"),
            text="t",
            vector=b"\0\0\x80?",
            importance=0.0,
            confidence=0.25,
            status=MemoryStatus.CANDIDATE,
            pinned=True,
            pii_labels=("email",),
            labels=("a", "b"),
            derived_from=(UUID(OTHER),),
            valid_from=1_000_000,
            valid_to=2_000_000,
            expires_at=3_000_000,
            retention_class="short",
            session_id="s",
        ),
        Precondition(PreconditionKind.UNCONDITIONAL),
        ConflictPolicy.CORRECT,
    )


def test_what_a_caller_leaves_out_stays_unsaid():
    draft = mutations.mutation_from_wire(put_fact()).fact
    assert (draft.importance, draft.confidence, draft.status) == (None, None, None)
    assert (draft.valid_from, draft.valid_to, draft.expires_at, draft.id) == (None,) * 4


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        ("int_value", -(2**63), Value(ValueKind.INTEGER, -(2**63))),
        ("double_value", 1.5, Value(ValueKind.DOUBLE, 1.5)),
        ("bool_value", False, Value(ValueKind.BOOLEAN, data=False)),
        ("time_value", Timestamp(seconds=0), Value(ValueKind.INSTANT, 0)),
        ("subject_value", MIRA, Value(ValueKind.SUBJECT, Subject("user", "mira"))),
        ("json_value", '{"b": 1, "a": [null]}', Value(ValueKind.JSON, '{"a":[null],"b":1}')),
        ("string_value", "", Value(ValueKind.TEXT, "")),
    ],
)
def test_every_kind_of_value_converts(kind, data, value):
    mutation = put_fact(value=types_pb2.Value(**{kind: data}))
    assert mutations.mutation_from_wire(mutation).fact.value == value


def an(kind, **fields):
    return wire.Mutation(**{kind: fields})


MEMORY = {"subject": MIRA, "kind": 1, "text": "t", "source": SAID}
EPISODE = {"subject": MIRA, "content": "c", "source_kind": 1}
INVALID = [
    ("kind", wire.Mutation()),
    ("put_fact.fact", an("put_fact", precondition=ALWAYS)),
    ("put_fact.fact.kind", put_fact(kind=types_pb2.MEMORY_KIND_EPISODIC)),
    ("put_fact.fact.kind", put_fact(kind=99)),
    ("put_fact.fact.status", put_fact(status=99)),
    ("put_fact.fact.id", put_fact(id="nonsense")),
    ("put_fact.fact.id", put_fact(id=ID.upper().replace("1", "A", 1))),
    ("put_fact.fact.id", put_fact(id="{" + ID[:-2] + "}")),
    ("put_fact.fact.derived_from[1]", put_fact(derived_from=[ID, "x"])),
    ("put_fact.fact.source.kind", put_fact(source=types_pb2.Source(kind=77))),
    ("put_fact.fact.source.episode_id", put_fact(source=types_pb2.Source(episode_id="7"))),
    ("put_fact.fact.valid_from", put_fact(valid_from=Timestamp(seconds=2**62))),
    ("put_fact.fact.value.json_value", put_fact(value=types_pb2.Value(json_value='{"a":1,"a":2}'))),
    ("put_fact.fact.value.json_value", put_fact(value=types_pb2.Value(json_value="[" * 9000))),
    ("put_fact.fact.value.json_value", put_fact(value=types_pb2.Value(json_value="NaN"))),
    ("add_memory.memory", an("add_memory")),
    ("add_memory.memory.kind", an("add_memory", memory=MEMORY | {"kind": 0})),
    ("add_memory.memory.subject", an("add_memory", memory={"kind": 1, "source": SAID})),
    ("add_memory.memory.source", an("add_memory", memory={"kind": 1, "subject": MIRA})),
    ("add_memory.memory.source.kind", an("add_memory", memory=MEMORY | {"source": {}})),
    ("add_memory.memory.attribute", an("add_memory", memory=MEMORY | {"attribute": "a"})),
    ("capture_episode.episode", an("capture_episode")),
    ("capture_episode.episode.source_kind", an("capture_episode", episode={"subject": MIRA})),
    ("capture_episode.indexing", an("capture_episode", episode=EPISODE, indexing=9)),
    ("capture_episode.extraction", an("capture_episode", episode=EPISODE, extraction=9)),
    ("patch_memory.update_mask", an("patch_memory", memory_id=ID, precondition=ALWAYS)),
    (
        "patch_memory.update_mask",
        an("patch_memory", memory_id=ID, update_mask={"paths": ["subject"]}, precondition=ALWAYS),
    ),
    (
        "patch_memory.memory_id",
        an("patch_memory", update_mask={"paths": ["text"]}, precondition=ALWAYS),
    ),
    ("confirm_memory.source", an("confirm_memory", memory_id=ID)),
    ("confirm_memory.source.kind", an("confirm_memory", memory_id=ID, source=SAID)),
    ("retract_memory.target", an("retract_memory", precondition=ALWAYS)),
    ("retract_memory.fact.subject", an("retract_memory", fact={}, precondition=ALWAYS)),
    ("close_open_item.memory_id", an("close_open_item")),
    (
        "close_open_item.precondition.version_equals",
        an("close_open_item", memory_id=ID, precondition={"version_equals": 0}),
    ),
]


@pytest.mark.parametrize(("field", "mutation"), INVALID, ids=[field for field, _ in INVALID])
def test_a_bad_mutation_is_refused_by_its_field(field, mutation):
    with pytest.raises(PillionError) as caught:
        commands.write_from_wire(wire.WriteRequest(mutations=[put_fact(), mutation]))
    assert caught.value.reason is Reason.INVALID_FIELD
    assert [violation.field for violation in caught.value.violations] == [f"mutations[1].{field}"]


@pytest.mark.parametrize(
    "precondition",
    [
        None,
        types_pb2.Precondition(),
        types_pb2.Precondition(must_not_exist=False),
        types_pb2.Precondition(must_exist=False),
        types_pb2.Precondition(unconditional=False),
    ],
)
@pytest.mark.parametrize(
    "mutation",
    [
        put_fact(),
        an("patch_memory", memory_id=ID, update_mask={"paths": ["text"]}),
        an("retract_memory", memory_id=ID),
    ],
)
def test_a_missing_or_false_precondition_is_refused(mutation, precondition):
    changed = wire.Mutation()
    changed.CopyFrom(mutation)
    inner = getattr(changed, changed.WhichOneof("kind"))
    inner.ClearField("precondition")
    if precondition is not None:
        inner.precondition.CopyFrom(precondition)
        inner.precondition.SetInParent()
    with pytest.raises(PillionError) as caught:
        mutations.mutation_from_wire(changed)
    assert caught.value.reason is Reason.PRECONDITION_MISSING
    assert caught.value.violations[0].field.endswith(".precondition")


def test_an_absent_precondition_of_an_added_memory_is_must_not_exist():
    added = mutations.mutation_from_wire(an("add_memory", memory=MEMORY))
    assert isinstance(added, AddMemory)
    assert added.precondition == Precondition(PreconditionKind.MUST_NOT_EXIST)
    closed = mutations.mutation_from_wire(an("close_open_item", memory_id=ID))
    assert closed.precondition == Precondition(PreconditionKind.MUST_EXIST)


def test_a_path_that_might_hold_content_is_not_repeated():
    mutation = an(
        "patch_memory", memory_id=ID, update_mask={"paths": ["my secret"]}, precondition=ALWAYS
    )
    with pytest.raises(PillionError) as caught:
        mutations.mutation_from_wire(mutation)
    assert "secret" not in caught.value.message


def test_guards_convert_and_an_unconditional_one_is_refused():
    request = wire.WriteRequest(
        mutations=[put_fact()],
        guards=[wire.Guard(fact=KEY, precondition={"version_equals": 4})],
        embedding_mode=wire.EMBEDDING_MODE_INLINE,
        validate_only=True,
    )
    command = commands.write_from_wire(request)
    key = FactKey(Subject("user", "mira"), "", "deadline")
    guard = Guard(Precondition(PreconditionKind.VERSION_EQUALS, 4), fact=key)
    assert command.guards == (guard,)
    assert command.embedding_mode is EmbeddingMode.INLINE
    assert command.validate_only
    request.guards[0].precondition.unconditional = True
    with pytest.raises(PillionError) as caught:
        commands.write_from_wire(request)
    assert caught.value.violations[0].field == "guards[0].precondition"


@pytest.mark.parametrize(("count", "reason"), [(0, "INVALID_FIELD"), (101, "LIMIT_EXCEEDED")])
def test_a_write_of_none_or_too_many_is_refused(count, reason):
    with pytest.raises(PillionError) as caught:
        commands.write_from_wire(wire.WriteRequest(mutations=[wire.Mutation()] * count))
    assert caught.value.reason == reason


def test_the_digest_tells_bodies_apart_and_not_retries():
    first = wire.WriteRequest(request_id="r", mutations=[put_fact()])
    retry = wire.WriteRequest(
        request_id="r", mutations=[put_fact()], partition={"namespace": "default"}
    )
    other = wire.WriteRequest(request_id="r", mutations=[put_fact(text="other")])
    digest = commands.body_digest(first)
    assert digest == commands.body_digest(retry) != commands.body_digest(other)
    assert first.request_id == "r"
    assert commands.body_digest(wire.WriteRequest(mutations=[put_fact()])) == b""


def test_an_item_that_cannot_be_read_keeps_its_place_in_an_import():
    batch = wire.ImportBatch(sequence=1, items=[put_fact(), wire.Mutation(), put_fact(id="x")])
    good, unset, bad = commands.import_items_from_wire(batch)
    assert isinstance(good, PutFact)
    assert isinstance(unset, PillionError)
    assert isinstance(bad, PillionError)
    assert bad.violations[0].field == "put_fact.fact.id"


def test_a_search_without_anything_is_the_default():
    assert queries.search_from_wire(wire.SearchRequest(top_k=3)) == SearchQuery(top_k=3)


def test_a_search_converts_whole():
    request = wire.SearchRequest(
        top_k=7,
        text="q",
        vector=b"1234",
        filter=search_pb2.Filter(
            subjects=[MIRA],
            contexts=["", "work"],
            kinds=[types_pb2.MEMORY_KIND_SEMANTIC],
            statuses=[types_pb2.MEMORY_STATUS_CANDIDATE],
            attributes=["a"],
            labels_all=["x"],
            labels_any=["y"],
            labels_none=["z"],
            importance_min=0.5,
            confidence_min=0.25,
            source_kinds=[types_pb2.SOURCE_KIND_DOCUMENT],
            episode_ids=[ID],
            session_ids=["s"],
            include_retracted=True,
            include_expired=True,
            validity=search_pb2.VALIDITY_FILTER_ANY,
            any_of=[{"labels_any": ["w"]}],
            none_of=[{"labels_any": ["v"]}],
        ),
        read=types_pb2.ReadOptions(at_least_revision=9, as_of=Timestamp(seconds=4)),
        ranking=search_pb2.RankingProfile(
            name="default", relevance_weight=0.0, half_lives=[{"kind": 1}]
        ),
        score_min=0.5,
        include_vectors=True,
    )
    getattr(request.filter.created, "from").seconds = 1
    query = queries.search_from_wire(request)
    assert query.read == ReadAt(at_least_revision=9, as_of=4_000_000)
    assert query.ranking == RankingProfile(
        relevance_weight=0.0, half_lives={MemoryKind.EPISODIC: None}
    )
    request.filter.valid_from.to.seconds = 2
    request.filter.derived_from.append(OTHER)
    asked = queries.filter_from_wire(request)
    assert replace(asked, valid_from=Window(), derived_from=frozenset()) == query.filter
    assert asked.derived_from == {UUID(OTHER)}
    assert asked.contexts == {"", "work"}
    assert (asked.created.start, asked.created.end) == (1_000_000, None)
    assert (asked.valid_from.start, asked.valid_from.end) == (None, 2_000_000)
    assert asked.statuses == {MemoryStatus.CANDIDATE}
    assert not asked.valid_only
    # No field of the domain's filter was left at its default: nothing is forgotten here.
    default = Filter()
    same = {name for name in Filter.__slots__ if getattr(asked, name) == getattr(default, name)}
    assert same == {"facts", "edges", "value_subjects"}  # the contract has no words for these


def test_a_request_chooses_a_profile_and_changes_it_in_parts():
    fresh = RankingProfile(
        recency_weight=0.9,
        usual_half_lives={MemoryKind.SEMANTIC: None},
        source_confidence={SourceKind.INFERENCE: 0.5},
        diversity=0.25,
    )
    profiles = Profiles({"fresh": fresh})

    def ranking(**asked):
        return queries.ranking_from_wire(wire.SearchRequest(ranking=asked), profiles)

    assert queries.ranking_from_wire(wire.SearchRequest(), profiles) is profiles.default
    assert ranking() == RankingProfile()
    assert ranking(name="fresh") is fresh
    assert ranking(name="fresh", recency_weight=0.25) == replace(fresh, recency_weight=0.25)
    changed = ranking(name="fresh", half_lives=[{"kind": 2, "half_life": {"seconds": 60}}])
    assert changed == replace(fresh, half_lives={MemoryKind.SEMANTIC: 60_000_000})
    with pytest.raises(PillionError, match=r"there are: default, fresh"):
        ranking(name="frsh")


def test_the_default_profile_may_be_configured():
    chosen = RankingProfile(importance_weight=1.0)
    profiles = Profiles({"default": chosen})
    for request in (wire.SearchRequest(), wire.SearchRequest(ranking={"name": "default"})):
        assert queries.ranking_from_wire(request, profiles) is chosen


def test_filter_defaults_are_those_of_the_contract():
    asked = queries.filter_from_wire(wire.SearchRequest(filter={}))
    assert asked == Filter()
    assert asked.statuses == RECALLED_STATUSES
    every = queries.filter_from_wire(wire.SearchRequest(filter={"all_contexts": True}))
    assert every.contexts is None


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("filter.kinds[0]", wire.SearchRequest(filter={"kinds": [99]})),
        ("filter.kinds[0]", wire.SearchRequest(filter={"kinds": [0]})),
        ("filter.statuses[0]", wire.SearchRequest(filter={"statuses": [9]})),
        ("filter.source_kinds[0]", wire.SearchRequest(filter={"source_kinds": [99]})),
        ("filter.validity", wire.SearchRequest(filter={"validity": 9})),
        ("filter.episode_ids[0]", wire.SearchRequest(filter={"episode_ids": ["x"]})),
        ("filter.contexts", wire.SearchRequest(filter={"all_contexts": True, "contexts": ["a"]})),
        ("read.at_least_revision", wire.SearchRequest(read={"at_least_revision": -1})),
        ("read.exact_revision", wire.SearchRequest(read={"exact_revision": -1})),
        ("read.as_of", wire.SearchRequest(read={"as_of": Timestamp(nanos=-1)})),
        ("read.known_at", wire.SearchRequest(read={"known_at": Timestamp(nanos=-1)})),
        ("read.known_at", wire.SearchRequest(read={"known_at": Timestamp(seconds=1 << 60)})),
        ("ranking.name", wire.SearchRequest(ranking={"name": "fresh"})),
        ("ranking.recency_anchor", wire.SearchRequest(ranking={"recency_anchor": 9})),
        ("ranking.half_lives[0].kind", wire.SearchRequest(ranking={"half_lives": [{}]})),
        (
            "ranking.half_lives[1].kind",
            wire.SearchRequest(ranking={"half_lives": [{"kind": 1}, {"kind": 1}]}),
        ),
        ("older_statements", wire.SearchRequest(older_statements=9)),
    ],
)
def test_a_bad_search_is_refused_by_its_field(field, request_):
    with pytest.raises(PillionError) as caught:
        queries.search_from_wire(request_)
    assert caught.value.reason is Reason.INVALID_FIELD
    assert caught.value.violations[0].field == field


NOT_SERVED = [
    (
        "EXTRACTION",
        mutations.mutation_from_wire,
        an("capture_episode", episode=EPISODE, extraction=2),
    ),
    (
        "EXTRACTION",
        mutations.mutation_from_wire,
        an("capture_episode", episode=EPISODE, extraction=3),
    ),
    ("BACKGROUND", commands.consolidate_from_wire, wire.ConsolidateRequest()),
    (
        "BACKGROUND",
        commands.consolidate_from_wire,
        wire.ConsolidateRequest(subject=MIRA, background=True),
    ),
]


@pytest.mark.parametrize(("what", "convert", "request_"), NOT_SERVED)
def test_what_is_not_served_is_refused_and_never_ignored(what, convert, request_):
    with pytest.raises(PillionError) as caught:
        convert(request_)
    assert caught.value.reason is Reason.NOT_SERVED
    assert caught.value.metadata["capability"] in {what, f"CAPABILITY_{what}"}


SELECT_IDS = {"ids": {"ids": [ID]}}
SELECT_SUBJECT = {"subject": {"subject": MIRA}}
SELECT_FACT = {"fact": KEY}


@pytest.mark.parametrize(
    ("selector", "run", "dry_run"),
    [
        (SELECT_IDS, 0, False),
        (SELECT_SUBJECT, 0, True),
        (SELECT_FACT, 0, True),
        (SELECT_IDS, wire.FORGET_RUN_DRY_RUN, True),
        (SELECT_SUBJECT, wire.FORGET_RUN_EXECUTE, False),
        (SELECT_FACT, wire.FORGET_RUN_EXECUTE, False),
    ],
)
def test_a_forget_of_more_than_ids_is_a_dry_run_unless_said_otherwise(selector, run, dry_run):
    request = wire.ForgetRequest(mode=wire.FORGET_MODE_RETRACT, selector=selector, run=run)
    command = forgetting.forget_from_wire(request)
    assert command.dry_run is dry_run
    assert command.mode is ForgetMode.RETRACT


def test_a_forget_by_subject_names_contexts_or_all():
    request = wire.ForgetRequest(mode=1, selector=SELECT_SUBJECT)
    assert forgetting.forget_from_wire(request).selector.contexts is None
    request.selector.subject.contexts.append("")
    assert forgetting.forget_from_wire(request).selector.contexts == {""}


@pytest.mark.parametrize(
    ("field", "request_"),
    [
        ("mode", wire.ForgetRequest(selector=SELECT_IDS)),
        ("mode", wire.ForgetRequest(selector=SELECT_IDS, mode=9)),
        ("run", wire.ForgetRequest(selector=SELECT_IDS, mode=1, run=9)),
        ("selector", wire.ForgetRequest(mode=1)),
        ("selector", wire.ForgetRequest(mode=1, selector={})),
        ("selector.ids.ids", wire.ForgetRequest(mode=1, selector={"ids": {}})),
        ("selector.ids.ids[0]", wire.ForgetRequest(mode=1, selector={"ids": {"ids": ["x"]}})),
        ("selector.subject.subject", wire.ForgetRequest(mode=1, selector={"subject": {}})),
        ("selector.fact.subject", wire.ForgetRequest(mode=1, selector={"fact": {}})),
        ("selector.episode_id", wire.ForgetRequest(mode=1, selector={"episode_id": "x"})),
        ("selector.expired", wire.ForgetRequest(mode=1, selector={"expired": False})),
        (
            "selector.recorded.from",
            wire.ForgetRequest(mode=1, selector={"recorded": {"from": Timestamp(nanos=-1)}}),
        ),
        (
            "selector.filter.contexts",
            wire.ForgetRequest(
                mode=1, selector={"filter": {"all_contexts": True, "contexts": ["a"]}}
            ),
        ),
        (
            "selector.decayed.thresholds[0].kind",
            wire.ForgetRequest(mode=1, selector={"decayed": {"thresholds": [{}]}}),
        ),
        (
            "selector.decayed.thresholds[1].kind",
            wire.ForgetRequest(
                mode=1, selector={"decayed": {"thresholds": [{"kind": 1}, {"kind": 1}]}}
            ),
        ),
        ("preview_revision", wire.ForgetRequest(mode=1, selector=SELECT_IDS, preview_revision=-1)),
    ],
)
def test_a_bad_forget_is_refused_by_its_field(field, request_):
    with pytest.raises(PillionError) as caught:
        forgetting.forget_from_wire(request_)
    assert caught.value.reason is Reason.INVALID_FIELD
    assert caught.value.violations[0].field == field


def test_targets_must_name_something():
    for convert in (
        lambda: queries.target_from_wire(wire.RecordTarget(), "target"),
        lambda: queries.history_target_from_wire(wire.HistoryRequest()),
    ):
        with pytest.raises(PillionError) as caught:
            convert()
        assert caught.value.violations[0].field == "target"


def test_a_history_as_of_an_instant_is_refused():
    with pytest.raises(PillionError):
        queries.history_read_from_wire(wire.HistoryRequest(read={"as_of": Timestamp(seconds=1)}))


def test_a_search_takes_several_groups_of_alternatives_and_may_say_that_it_is_no_use():
    query = queries.search_from_wire(
        wire.SearchRequest(
            without_access=True,
            filter={
                "labels_any": ["a", "b"],
                "session_ids": ["c", "d"],
                "valid_from": {"to": {"seconds": 1}},
            },
        )
    )
    assert query.filter.labels_any == {"a", "b"}
    assert query.filter.session_ids == {"c", "d"}
    assert query.filter.valid_from == Window(None, 1_000_000)
    assert not query.counts_as_use
    assert queries.search_from_wire(wire.SearchRequest()).counts_as_use


def test_recency_may_count_from_the_last_use():
    asked = queries.search_from_wire(wire.SearchRequest(ranking={"recency_anchor": 2}))
    assert asked.ranking.recency_anchor is RecencyAnchor.LAST_USED


def test_what_a_filter_within_a_filter_leaves_out_is_no_condition():
    asked = {
        "any_of": [{"labels_any": ["a"]}, {"contexts": ["work"], "validity": 1}],
        "none_of": [{"any_of": [{"statuses": [1]}, {"all_contexts": True}]}],
    }
    made = queries.search_from_wire(wire.SearchRequest(filter=asked)).filter
    assert (made.contexts, made.statuses) == ({""}, RECALLED_STATUSES)  # the outer one's own
    assert made.any_of == (
        replace(NESTED, labels_any=frozenset({"a"})),
        replace(NESTED, contexts=frozenset({"work"}), valid_only=True),
    )
    candidates = replace(NESTED, statuses=frozenset({MemoryStatus.CANDIDATE}))
    assert made.none_of == (replace(NESTED, any_of=(candidates, NESTED)),)


@pytest.mark.parametrize(
    ("nested", "field"),
    [
        ({"contexts": ["x"], "all_contexts": True}, "filter.any_of[1].contexts"),
        ({"kinds": [77]}, "filter.any_of[1].kinds[0]"),
        ({"validity": 9}, "filter.any_of[1].validity"),
        (
            {"none_of": [{"any_of": [{"any_of": [{"any_of": [{}]}]}]}]},
            "filter.any_of[1].none_of[0].any_of[0].any_of[0].any_of[0]",
        ),
    ],
)
def test_a_filter_within_a_filter_is_checked_where_it_stands(nested, field):
    with pytest.raises(PillionError) as caught:
        queries.search_from_wire(wire.SearchRequest(filter={"any_of": [{}, nested]}))
    assert [one.field for one in caught.value.violations] == [field]


def test_a_listing_takes_every_filter():
    wanted = {
        "valid_from": {"to": {"seconds": 1}},
        "labels_any": ["a", "b"],
        "session_ids": ["c", "d"],
    }
    assert queries.filter_from_wire(wire.ListRequest(filter=wanted)).valid_from.end == 1_000_000
