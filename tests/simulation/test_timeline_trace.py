"""The mission's trace, replayed from its golden vectors on both stores."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from pathlib import Path

import pytest
from pillion.domain.memory import FOREVER
from pillion.domain.scope import FactKey, Subject
from pillion_testing.service import lmdb_service, put_fact, ram_service

TRACE = json.loads((Path(__file__).parents[1] / "vectors" / "timeline_trace.json").read_text())
SUBJECT = Subject(**TRACE["subject"])
KEY = FactKey(SUBJECT, "", TRACE["attribute"])


def instant(text: str | None) -> int:
    if text is None:
        return FOREVER
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1_000_000 + moment.microsecond


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def state(service, statement):
    return service.one(
        put_fact(
            statement["value"],
            subject=SUBJECT,
            attribute=TRACE["attribute"],
            valid_from=instant(statement["valid_from"]),
        )
    )


def test_the_trace(service):
    ids: dict[str | None, object] = {None: None}
    revisions = {}
    for statement in TRACE["statements"]:
        service.clock.advance()
        result = state(service, statement)
        ids[statement["name"]] = result.id
        revisions[statement["name"]] = service.revision
        assert result.outcome.name == statement["outcome"]
        assert result.superseded_id == ids[statement["supersedes"]]
    for row in TRACE["timeline"]:
        memory = service.get(ids[row["name"]])
        assert memory.valid_from == instant(row["valid_from"])
        assert memory.valid_to == instant(row["valid_to"])
        assert memory.end_reason.name == row["end_reason"]
        assert memory.superseded_by == ids[row["superseded_by"]]
    for answer in TRACE["answers"]:
        row = service.current(KEY, as_of=instant(answer["as_of"]))
        assert (row.id if row is not None else None) == ids[answer["name"]], answer
    entries, _, _ = service.history(KEY)
    for answer in TRACE["recorded"]:
        revision, as_of = revisions[answer["after"]], instant(answer["as_of"])
        believed = [
            one.memory.id
            for one in entries
            if one.from_revision <= revision
            and (one.to_revision == 0 or revision < one.to_revision)
            and one.memory.valid_at(as_of)
        ]
        wanted = ids[answer["name"]]
        assert believed == ([] if wanted is None else [wanted]), answer
    assert [hit.memory.id for hit in service.search("passport deadline").hits] == [ids["e2"]]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_trace_in_any_order_answers_the_same(order):
    service = ram_service()
    values = {one["name"]: one["value"] for one in TRACE["statements"]}
    for place in order:
        service.clock.advance()
        state(service, TRACE["statements"][place])
    for answer in TRACE["answers"]:
        expected = values.get(answer["name"])
        assert service.value_at(instant(answer["as_of"]), KEY) == expected
