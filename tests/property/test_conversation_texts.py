"""What is indexed follows from what is stored, whatever was written and erased on the way.

Every turn has a word that no other has. So a row's text says of whom it borrows, and an erased
word that is found anywhere has leaked.
"""

from __future__ import annotations

import contextlib
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.indexed_text import BORROWED_WEIGHTS, EpisodeIndexing, conversation_of
from pillion.domain.scope import Subject
from pillion.service.conversation_texts import ConversationTexts
from pillion_storage import codec
from pillion_storage.api import Batch
from pillion_storage.keys import id_of, memory_key, prefix_end
from pillion_testing.fakes import SECOND, START
from pillion_testing.service import ACME, MIRA, episode, patch, ram_service

NOOR = Subject("user", "noor")
WORD = re.compile(r"word\d+")
WHERE = st.tuples(
    # Mostly one conversation, so that turns have neighbours.
    st.sampled_from([MIRA, MIRA, MIRA, MIRA, NOOR]),
    st.sampled_from(["", "", "", "", "work"]),
    st.sampled_from(["monday", "monday", "monday", ""]),
    st.integers(-3, 3),  # when, in seconds: so that late arrivals and equal instants are common
    st.sampled_from([None, None, START + 50 * SECOND, START + 60 * SECOND]),  # when it expires
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(WHERE, min_size=1, max_size=4)),
        st.tuples(st.just("patch"), st.integers(0, 30)),
        st.tuples(st.just("expire"), st.integers(0, 30)),
        st.tuples(st.just("erase"), st.lists(st.integers(0, 30), min_size=1, max_size=3)),
        st.tuples(st.just("catch up"), st.none()),
        st.tuples(st.just("catch up"), st.none()),
    ),
    min_size=4,
    max_size=25,
)


class Rows:
    """A table's texts."""

    def __init__(self) -> None:
        self.texts: dict[bytes, list[tuple[str, int]]] = {}

    def set_texts(self, ids, texts) -> None:
        self.texts.update(zip((one.tobytes() for one in ids), texts, strict=True))

    def words(self, one: bytes) -> dict[str, int]:
        return {word: weight for text, weight in self.texts[one] for word in WORD.findall(text)}


class Follower:
    """Keeps rows level with the store by its feed, as a partition in memory does."""

    def __init__(self, store) -> None:
        self._store = store
        self._applied = 0
        self.rows = Rows()
        self.texts = ConversationTexts(store, ACME, EpisodeIndexing.CONTEXT)

    def catch_up(self) -> None:
        while self._applied < self._store.head(ACME).revision:
            page = self._store.changes(ACME, self._applied, limit=3)
            ids = {key[1:] for one in page.changes for key, _ in one.keys if key[:1] == b"m"}
            result = self._store.read(ACME, [b"m" + one for one in ids])
            memories = [
                codec.decode_memory(id_of(key), entry.value, entry.version)
                for key, entry in result.entries.items()
            ]
            gone = ids - {memory.id.bytes for memory in memories}
            for one in gone:
                self.rows.texts.pop(one, None)
            self.texts.forget(gone)
            self.texts.note(memories)
            self.texts.index(self.rows, memories, result.revision)
            self.texts.settle(self.rows, result.revision)
            self._applied = page.changes[-1].revision


def memories_of(store):
    page = store.scan(ACME, b"m", prefix_end(b"m"), limit=1000)
    return [codec.decode_memory(id_of(row.key), row.value, row.version) for row in page.rows]


def loaded(store) -> Rows:
    """The rows of a partition that is read anew."""
    rows = Rows()
    texts = ConversationTexts(store, ACME, EpisodeIndexing.CONTEXT)
    memories = memories_of(store)
    texts.note(memories)
    texts.index(rows, memories, store.head(ACME).revision)
    texts.settle(rows, store.head(ACME).revision)
    return rows


@settings(max_examples=60)
@given(STEPS)
def test_rows_that_follow_the_feed_are_those_of_a_fresh_load(steps):
    service = ram_service()
    store = service.store
    follower = Follower(store)
    live, words, erased = [], {}, set()
    count = 0
    for verb, what in steps:
        if verb == "write":
            turns = []
            for subject, context, session, second, expires in what:
                count += 1
                turns.append(
                    episode(
                        f"word{count}",
                        subject=subject,
                        context=context,
                        session_id=session,
                        occurred_at=START + second * SECOND,
                        expires_at=expires,
                    )
                )
            results = service.write(*turns).results
            for place, result in enumerate(results):
                live.append(result.memory_id)
                words[result.memory_id] = f"word{count - len(turns) + place + 1}"
        elif verb == "catch up":
            follower.catch_up()
        elif not live:
            continue
        elif verb == "patch":
            count += 1
            one = live[what % len(live)]
            erased.add(words[one])
            words[one] = f"word{count}"
            service.write(patch(one, text=words[one]))
        elif verb == "expire":
            one = live[what % len(live)]
            service.forget(ForgetMode.EXPIRE, ids=(one,))
        else:
            gone = {live[place % len(live)] for place in what}
            live = [one for one in live if one not in gone]
            erased |= {words[one] for one in gone}
            keys = [memory_key(one) for one in gone]
            store.commit(ACME, Batch(deletes=keys))
    follower.catch_up()
    assert follower.rows.texts == loaded(store).texts
    by_word = {words[memory.id]: memory for memory in memories_of(store)}
    for memory in by_word.values():
        found = follower.rows.words(memory.id.bytes)
        assert found.pop(words[memory.id]) == 8
        assert not found.keys() & erased
        for word, weight in found.items():
            lender = by_word[word]
            assert weight in BORROWED_WEIGHTS
            assert conversation_of(lender) == conversation_of(memory)
            assert lender.valid_from <= memory.valid_from
            assert lender.expires_at >= memory.expires_at
    service.close()


def test_a_text_that_is_owed_is_not_forgotten_when_reading_fails():
    service = ram_service()
    first, second = (
        one.memory_id
        for one in service.write(
            episode("word1", session_id="monday"), episode("word2", session_id="monday")
        ).results
    )
    follower = Follower(service.store)
    follower.catch_up()
    assert follower.rows.words(second.bytes) == {"word2": 8, "word1": 4}
    service.store.commit(ACME, Batch(deletes=[memory_key(first)]))
    follower.texts.forget([first.bytes])
    read, follower.texts.read = follower.texts.read, lambda *_: 1 / 0
    with contextlib.suppress(ZeroDivisionError):
        follower.texts.settle(follower.rows, service.revision)
    follower.texts.read = read
    follower.texts.note([])
    follower.texts.settle(follower.rows, service.revision)
    assert follower.rows.words(second.bytes) == {"word2": 8}
    service.close()
