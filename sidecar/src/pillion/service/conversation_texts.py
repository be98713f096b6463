"""What of a partition's memories is indexed, with what they borrow of the turns before them.

Invariant: once ``note`` and ``forget`` have been told of every change up to a revision, what
changed has been indexed and what is owed settled, every row has the text that it would have if the
partition were read anew at that revision. So nothing of an erased turn is left in its followers.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import id_of

from pillion.domain.conversations import Conversations, Turn
from pillion.domain.indexed_text import (
    EpisodeIndexing,
    borrowed_parts,
    conversation_of,
    lendable,
    lent_until,
    own_parts,
)
from pillion.service.table_rows import id_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pillion_ranker as ranker
    from pillion_storage.api import Store

    from pillion.domain.indexed_text import Part
    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition

# Turns whose lent text is kept at hand: conversations come in their order, mostly.
LOANS_KEPT: Final = 4096
READ_ROWS: Final = 2048
# A loan of usual length with its entry.
_LOAN_BYTES: Final = 400

_Loan = tuple[int, str]
"""Until when a turn lends, and what."""


class ConversationTexts:
    """The indexed texts of one partition. Its callers see to it that one thread changes it."""

    def __init__(self, store: Store, partition: Partition, indexing: EpisodeIndexing) -> None:
        self._store = store
        self._partition = partition
        self._indexing = indexing
        self._conversations = Conversations()
        self._loans: dict[bytes, _Loan] = {}
        self._owed: set[bytes] = set()

    @property
    def memory_bytes(self) -> int:
        """About how many bytes it takes."""
        return self._conversations.memory_bytes + len(self._loans) * _LOAN_BYTES

    def note(self, memories: Sequence[Memory]) -> None:
        """Take up memories as they are now. Those that borrow of them are owed a new text."""
        if self._indexing is EpisodeIndexing.PLAIN:
            return
        turns = []
        for memory in memories:
            conversation = conversation_of(memory)
            if conversation is None:
                continue
            loan = _loan(memory)
            turns.append(Turn(memory.id.bytes, conversation, memory.valid_from, hash(loan)))
            self._keep(memory.id.bytes, loan)
        self._owed |= self._conversations.put(turns)

    def forget(self, memory_ids: Collection[bytes]) -> None:
        """Let go of memories that are gone. Those that borrowed of them are owed a new text."""
        for one in memory_ids:
            self._loans.pop(one, None)
        self._owed |= self._conversations.remove(memory_ids)
        self._owed.difference_update(memory_ids)

    def index(self, table: ranker.Table, memories: Sequence[Memory], revision: int) -> None:
        """Give rows of a table their texts.

        Args:
            table: Has a row of each memory.
            memories: As of the revision; each has been noted.
            revision: At which what they borrow is read.
        """
        if memories:
            ids = id_rows([memory.id.bytes for memory in memories])
            texts = [
                [(part.text, part.weight) for part in parts]
                for parts in self.parts(memories, revision)
            ]
            table.set_texts(ids, texts)
            self._owed.difference_update(memory.id.bytes for memory in memories)

    def settle(self, table: ranker.Table, revision: int) -> None:
        """Index again whoever is owed it. One that fails half-way is gone on with by the next."""
        while self._owed:
            some = list(itertools.islice(self._owed, READ_ROWS))
            self.index(table, self.read(some, revision), revision)
            self._owed.difference_update(some)

    def parts(self, memories: Sequence[Memory], revision: int) -> list[tuple[Part, ...]]:
        """Return what is indexed of each memory, in their order.

        Args:
            memories: As of the revision; each one has been noted.
            revision: At which what they borrow is read.
        """
        before = {memory.id: self._conversations.before(memory.id.bytes) for memory in memories}
        loans = self._borrow({one for ids in before.values() for one in ids}, revision)
        return [
            own_parts(memory, self._indexing)
            + borrowed_parts(
                [
                    text if until >= memory.expires_at else ""
                    for until, text in (loans[one] for one in before[memory.id])
                ]
            )
            for memory in memories
        ]

    def read(self, memory_ids: Iterable[bytes], revision: int) -> list[Memory]:
        """Return these memories as of a revision; those that are not there are left out."""
        wanted = [b"m" + one for one in memory_ids]
        memories = []
        for start in range(0, len(wanted), READ_ROWS):
            part = wanted[start : start + READ_ROWS]
            entries = self._store.read(self._partition, part, at=revision).entries
            memories += [
                codec.decode_memory(id_of(key), entry.value, entry.version)
                for key, entry in entries.items()
            ]
        return memories

    def _borrow(self, wanted: set[bytes], revision: int) -> dict[bytes, _Loan]:
        found = {one: self._loans[one] for one in wanted if one in self._loans}
        missing = wanted - found.keys()
        for memory in self.read(missing, revision):
            found[memory.id.bytes] = _loan(memory)
            self._keep(memory.id.bytes, found[memory.id.bytes])
        # Gone by that revision, which the next change to be taken up says too.
        for one in missing - found.keys():
            found[one] = (0, "")
        return found

    def _keep(self, memory_id: bytes, loan: _Loan) -> None:
        self._loans.pop(memory_id, None)
        self._loans[memory_id] = loan
        while len(self._loans) > LOANS_KEPT:
            del self._loans[next(iter(self._loans))]


def _loan(memory: Memory) -> _Loan:
    until = lent_until(memory)
    return until, lendable(memory.text) if until else ""
