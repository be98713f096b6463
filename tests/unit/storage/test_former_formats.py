"""Stores that earlier versions made, kept in ``tests/fixtures/stores``, open and answer alike."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from pillion.domain.memory import EndReason
from pillion_storage.schema import FORMAT_VERSION
from pillion_storage.verify import verify
from pillion_testing.fakes import FakeClock
from pillion_testing.service import key_of, lmdb_service, put_fact, restore, retract

STORES = Path(__file__).parents[2] / "fixtures" / "stores"
_spec = importlib.util.spec_from_file_location("make_store", STORES / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)
FORMATS = sorted(one.name for one in STORES.glob("format-*"))


@pytest.fixture(params=[(one, sealed) for one in FORMATS for sealed in (False, True)], ids=str)
def kept(request, tmp_path):
    """A copy of a kept store, opened by this version, and what it once answered.

    The kept stores are plain; with encryption on, this opening is the one that marks them.
    """
    name, sealed = request.param
    source = STORES / name
    directory = tmp_path / "store"
    directory.mkdir()
    with gzip.open(source / "data.mdb.gz") as packed, (directory / "data.mdb").open("wb") as data:
        shutil.copyfileobj(packed, data)
    answers = json.loads((source / "answers.json").read_text())
    clock = FakeClock()
    clock.now = answers["now"]
    service = lmdb_service(directory, sealed=sealed, clock=clock)
    for _ in range(1000):  # ids that were given out then
        service.ids.new_id()
    yield service, answers, directory
    service.close()


def test_a_store_is_kept_of_every_former_format():
    assert {f"format-{number}" for number in range(1, FORMAT_VERSION)} <= set(FORMATS)


def test_it_answers_as_it_did(kept):
    service, answers, directory = kept
    assert json.loads(json.dumps(make.answers(service, sorted(answers["facts"])))) == answers
    service.close()
    assert verify(directory).clean


def test_a_retried_request_is_still_known(kept):
    service, answers, _ = kept
    again = put_fact("once", attribute="retried", valid_from=make.at(2))
    assert service.write(again, request_id="retry-me").replayed
    assert service.revision == answers["revision"]


def values(service, attribute, *instants):
    return [service.value_at(make.at(one), key_of(attribute)) for one in instants]


def test_its_timelines_go_on(kept):
    """What format 1 did not keep (ends as stated, retractions) is read as it was meant."""
    service, _, _ = kept
    service.clock.advance()
    service.put("x", attribute="retracted", valid_from=make.at(3))
    assert values(service, "retracted", 1, 3, 4, 5, 8, 12) == ["a", "x", "x", None, None, None]
    service.put("x", attribute="evidence", valid_from=make.at(10))
    assert values(service, "evidence", 6, 8, 10, 12) == ["b", "a", "x", "a"]
    service.put("x", attribute="ends", valid_from=make.at(8))
    assert values(service, "ends", 4, 7, 8, 9, 11) == ["b", "a", "x", "c", "a"]
    service.put("x", attribute="gap", valid_from=make.at(5), valid_to=make.at(20))
    assert values(service, "gap", 1, 4, 5, 8, 9) == ["a", None, "x", "x", "b"]
    row = service.current(key_of("plain"), as_of=make.at(9))
    service.one(retract(row.id, valid_to=make.at(11)))
    assert values(service, "plain", 9, 11) == ["b", None]
    service.one(restore(row.id))
    assert values(service, "plain", 9, 11) == ["b", "b"]
    assert service.get(row.id).end_reason is EndReason.OPEN
