"""Keys: ordered as time is, of fixed width, exact as ranges, and free of personal data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.memory import FOREVER
from pillion.domain.scope import FactKey, Partition, Subject
from pillion_storage import keys
from pillion_storage.keys import KeySpace, SubjectRecord
from pillion_testing.service import (
    add,
    episode,
    patch,
    put_fact,
    ram_service,
    retract,
)

GOLDEN = Path(__file__).parents[2] / "vectors" / "keys.json"
INT64 = st.integers(-(2**63), 2**63 - 1)
ID = UUID("0190f3a0-0000-7000-8000-000000000001")
SECRET = bytes(range(32))
SPACE = KeySpace(SECRET)
names = st.text(st.characters(codec="utf-8"), max_size=6)


@given(INT64, INT64)
def test_instants_order_as_time_does(one, other):
    assert (keys.instant_bytes(one) < keys.instant_bytes(other)) == (one < other)
    assert keys.instant_of(keys.instant_bytes(one)) == one
    assert len(keys.instant_bytes(one)) == 8


def test_the_extremes_of_time_are_the_extremes_of_keys():
    assert keys.instant_bytes(-(2**63)) == bytes(8)
    assert keys.instant_bytes(-1) < keys.instant_bytes(0)
    assert keys.instant_bytes(FOREVER) == b"\xff" * 8


@given(st.binary(min_size=1, max_size=6), st.binary(max_size=8))
def test_a_prefix_range_holds_what_begins_with_it_and_nothing_else(prefix, other):
    end = keys.prefix_end(prefix)
    assert (prefix <= other < end) == other.startswith(prefix)
    assert prefix <= prefix + other < end


@given(st.binary(max_size=8), st.binary(max_size=9))
def test_after_is_the_next_key(key, other):
    assert keys.after(key) > key
    assert not key < other < keys.after(key)


@given(
    st.tuples(names, names, names, names),
    st.tuples(names, names, names, names),
)
def test_different_names_have_different_hashes(one, other):
    """However the characters are spread over the parts."""
    first, second = (FactKey(Subject(a, b), c, d) for a, b, c, d in (one, other))
    assert (SPACE.fact(first) == SPACE.fact(second)) == (first == second)
    assert (SPACE.subject(first.subject) == SPACE.subject(second.subject)) == (
        first.subject == second.subject
    )


def test_another_secret_gives_other_hashes():
    key = FactKey(Subject("user", "mira"), "", "deadline")
    assert SPACE.fact(key) != KeySpace(bytes(32)).fact(key)


@given(names, names, st.binary(min_size=1, max_size=16), st.binary(min_size=1, max_size=16))
def test_members_share_all_but_their_timelines(subject, attribute, one, other):
    whole = FactKey(Subject("user", subject), "", attribute)
    first, second = replace(whole, member=one), replace(whole, member=other)
    assert SPACE.head(first) == SPACE.head(second) == SPACE.head(whole)
    assert SPACE.rows(first) == SPACE.rows(second) == SPACE.rows(whole)
    assert SPACE.entries(whole)[1:] == SPACE.head(whole)[1:]
    assert (SPACE.entries(first) == SPACE.entries(second)) == (one == other)
    assert SPACE.entries(whole) not in (SPACE.entries(first), SPACE.entries(second))


def golden_keys() -> dict[str, bytes]:
    fact = FactKey(Subject("user", "mira"), "work", "passport_deadline")
    return {
        "memory": keys.memory_key(ID),
        "episode": keys.episode_key(ID),
        "vector": keys.vector_key(ID),
        "pending": keys.pending_key(ID),
        "created": keys.created_key(-1, ID),
        "captured": keys.captured_key(1_780_480_800_000_000, ID),
        "derived": keys.derived_key(ID, UUID(int=2)),
        "head": SPACE.head(fact),
        "row": SPACE.row(fact, ID),
        "entry": SPACE.entry(fact, 0),
        "subject_memory": SPACE.of_subject(fact.subject, SubjectRecord.MEMORY, 1, ID),
        "subject_episode": SPACE.of_subject(fact.subject, SubjectRecord.EPISODE, 1, ID),
        "column": SPACE.column("label", "travel").to_bytes(8, "big"),
        "claim": SPACE.claim(("untyped", "user", "mira", "", "SEMANTIC"), "likes tea", "9"),
        "heard": SPACE.heard(("untyped", "user", "mira", "", "SEMANTIC"), ID),
        "taken": keys.taken_key(ID),
        "access": keys.access_key(ID),
        "sleep": SPACE.sleep(fact, 2),
        "displaced": SPACE.displaced(fact, 2, 0),
        "entry_of_member": SPACE.entry(replace(fact, member=b"m" * 16), 0),
        "sleep_of_member": SPACE.sleep(replace(fact, member=b"m" * 16), 2),
        "embedder": keys.EMBEDDER_KEY,
        "registration": SPACE.registration(fact.attribute),
        "schema": SPACE.schema(fact.attribute, 3),
        "of_attribute": SPACE.of_attribute(fact.attribute, ID),
    }


WIDTHS = {
    "a": None, "b": 33, "c": 25, "d": 33, "e": 17, "f": 33, "g": 17, "h": 17, "i": 33, "j": 21,
    "k": 25, "l": 17, "m": 17, "n": 33, "q": 17, "s": 42, "t": 25, "v": 17, "w": 25, "x": 17,
    "y": 17,
}  # fmt: skip


def test_keys_are_those_of_the_golden_vectors():
    """A change here is a change of the stored format: it needs a migration, not a new vector."""
    stored = json.loads(GOLDEN.read_text())
    assert stored["secret"] == SECRET.hex()
    assert stored["id"] == str(ID)
    assert {name: key.hex() for name, key in golden_keys().items()} == stored["keys"]


@pytest.mark.parametrize("name", sorted(golden_keys()))
def test_widths_are_fixed(name):
    key = golden_keys()[name]
    if name == "column":
        assert len(key) == 8
    elif name != "embedder":
        assert len(key) == WIDTHS[key[:1].decode()]


def test_no_key_holds_personal_data():
    """Canaries in every field that a caller fills; then every key of every family is looked at."""
    canaries = [f"canary-{number:02d}-zqx" for number in range(20)]
    it = iter(canaries)
    subject = Subject(next(it), next(it))
    partition = Partition(next(it), next(it))
    service = ram_service(partition=partition)
    captured = service.one(
        episode(
            next(it),
            subject=subject,
            context=next(it),
            author=next(it),
            session_id=next(it),
            external_ref=next(it),
            labels=(next(it),),
            retention_class=next(it),
        )
    )
    row = service.put(
        next(it), subject=subject, attribute=next(it), labels=(next(it),), pii_labels=(next(it),)
    )
    service.register('{"type": "string"}', attribute=next(it))
    service.put("other", subject=subject, attribute="x", derived_from=(row.id,))
    service.write(add(next(it), subject=subject, session_id=next(it), vector=b"\0\0\x80?" * 8))
    service.write(patch(captured.memory_id, text=next(it)), request_id=next(it))
    service.write(put_fact("third", subject=subject, attribute="y"))
    service.write(retract(row.id))
    service.forget(subject=subject)
    families = set()
    for key in service.records():
        families.add(key[:1].decode())
        for canary in canaries:
            assert canary.encode() not in key
        width = WIDTHS[key[:1].decode()]
        assert width is None or len(key) == width
    assert families >= set("abcdefghjkmstv")


if __name__ == "__main__":
    shown = {
        "secret": SECRET.hex(),
        "id": str(ID),
        "keys": {name: key.hex() for name, key in golden_keys().items()},
    }
    GOLDEN.write_text(json.dumps(shown, indent=1) + "\n")
