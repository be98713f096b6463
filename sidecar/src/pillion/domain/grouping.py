"""Groups of statements: which untyped memories say the same thing, and which of them leads.

Relevance cannot order an old and a new statement of one thing. A fact has its timeline for that;
of memories without an attribute nobody said what they are about, so it is told from their words
and, where the embedder's cosines were measured, their vectors. Nothing is merged or dropped by
it: a wrong guess costs an order within a few positions, and no memory outside the group moves.

Two memories state the same thing when subject, context and kind are the same and

  - their words do: apart from names, numbers, little words and words of change ("now", "moved"),
    half of their words are common to both; or
  - their vectors do, by bars that were measured for the embedder: a lower one where the newer
    statement says that something changed, or where some words are common;
  - the later one answers the query about as well, where relevance was measured;
  - the later one counts: it holds at the instant asked about, nothing took it back or out of
    recall, and it is no guess (a search may ask for such, and they lead nobody); and
  - the query does not tell them apart: it has no name or number that the older statement has and
    the newer one lacks, and where one is the other with some words replaced, no such word at all
    ("When is Anna's birthday?" is not answered by a newer statement of Ben's); and
  - they are not among many that differ in numbers alone: those are a series of records.

Measured by benchmarks/quality/updated_statements.py; see docs/adr/0021.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pillion.domain.little_words import CHANGE, LITTLE
from pillion.domain.memory import MemoryKind, MemoryStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pillion.domain.memory import Memory

# The share of two statements' words that they have in common (Dice): where it is at least so many
# words, and where it is one.
OVERLAP_MIN: Final = 0.5
SHARED_MIN: Final = 2
OVERLAP_OF_ONE: Final = 1.0
# The share with which a lower cosine is enough.
OVERLAP_TOGETHER: Final = 0.25
# The share of words, little ones included, from which one sentence is the pattern of the other.
WORDED_ALIKE: Final = 0.5
# A word is a piece of text: statements that are read in full are one or a few sentences, and of a
# longer text its first words are as good a summary as any.
WORDS_MAX: Final = 64
# Shorter words of alphabets say little; longer little words are listed.
_LETTERS_MIN: Final = 3
_STEM_MIN: Final = 4
_CACHED_TEXTS: Final = 16_384
_CACHED_WORDS: Final = 16_384
# More memories than these that differ from the latest in numbers alone are the records of a series
# (a report for each account, a reading for each day), none of which is out of date.
SERIES_MAX: Final = 8
# A prime, so that every byte of a word counts.
_BITS: Final = 1021

_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
# What may stand between the end of a sentence and the first word of the next.
_OPENING: Final = " \t\"'()[]-\u201c\u201d\u201e\u00ab\u00bb\u2013\u2014\u00bf\u00a1"
_SENTENCE_END: Final = frozenset(".!?:;\n")
_ENDINGS: Final = ("ing", "ed", "es", "en", "er", "s", "e")


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of a text.

    Attributes:
        topic: What it is about: stems without names, numbers, little words and words of change.
        names: Stems of numbers and of what may be a name: capitalised, or the first of a sentence.
        every: Both.
        pattern: Both, but for numbers: what the records of a series have in common.
        sequence: All words as they stand, at most `WORDS_MAX`.
        changes: Whether it has a word of change.
        bits: One for each word of the topic, by its bytes: what two have in common says how
            many words they share. Where two words have the same bit it says one too few.
    """

    topic: frozenset[str]
    names: frozenset[str]
    every: frozenset[str]
    pattern: frozenset[str]
    sequence: tuple[str, ...]
    changes: bool
    bits: int


@dataclass(frozen=True, slots=True)
class CosineBars:
    """From which cosine two statements are one thing.

    Attributes:
        alone: Whatever their words are.
        changed: Where the newer one says that something changed.
        together: Where they share some words.
        worded: Where their words alone would do.
        less_relevant: By how much less relevant to the query the later one may be: an update of
            what answers a question answers it too, about as well.
    """

    alone: float
    changed: float
    together: float
    worded: float
    less_relevant: float

    @property
    def lowest(self) -> float:
        """The lowest of them that needs no common word."""
        return min(self.alone, self.changed)


@dataclass(frozen=True, slots=True)
class Grouped:
    """What became of a candidate list.

    Attributes:
        order: The list's places in their new order.
        leader: For each place that follows in a group, the place of the memory that leads it.
        records: How many would follow, were they not the records of a series.
    """

    order: tuple[int, ...]
    leader: dict[int, int]
    records: int


@functools.lru_cache(maxsize=_CACHED_TEXTS)
def wording(text: str) -> Wording:
    """Return the words of a text."""
    topic: set[str] = set()
    names: set[str] = set()
    numbers: set[str] = set()
    sequence: list[str] = []
    changes = False
    for found in itertools.islice(_WORD.finditer(text), WORDS_MAX):
        lower, sort, stems = _word(found[0])
        sequence.append(lower)
        if sort is _Sort.TOPIC:
            topic.update(stems)
        elif sort is _Sort.NUMBER:
            numbers.update(stems)
        elif sort is _Sort.NAME:
            names.update(stems)
            if _begins_sentence(text, found.start()):
                topic.update(stems)
        elif sort is _Sort.CHANGE:
            changes = True
            topic.update(stems)
    bits = 0
    for one in topic:
        bits |= _bit(one)
    pattern = frozenset(topic | names)
    return Wording(
        topic=frozenset(topic),
        names=frozenset(names | numbers),
        every=pattern | numbers,
        pattern=pattern,
        sequence=tuple(sequence),
        changes=changes,
        bits=bits,
    )


class _Sort(enum.Enum):
    """What a word is to a statement."""

    TOPIC = enum.auto()
    NUMBER = enum.auto()
    NAME = enum.auto()
    CHANGE = enum.auto()
    LITTLE = enum.auto()


@functools.lru_cache(maxsize=_CACHED_WORDS)
def _word(word: str) -> tuple[str, _Sort, tuple[str, ...]]:
    """Return a word in lower case, what it is, and what stands for it."""
    lower = word.lower()
    if _UNSPACED.search(word):
        pairs = tuple(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        return lower, _Sort.CHANGE if lower in CHANGE else _Sort.TOPIC, pairs
    if any(letter.isdigit() for letter in word):
        return lower, _Sort.NUMBER, (lower,)
    if lower in CHANGE:
        return lower, _Sort.CHANGE, ()
    if lower in LITTLE or len(word) < _LETTERS_MIN:
        return lower, _Sort.LITTLE, ()
    return lower, _Sort.NAME if word[0].isupper() else _Sort.TOPIC, (_stem(lower),)


@functools.lru_cache(maxsize=_CACHED_WORDS)
def _bit(word: str) -> int:
    return 1 << int.from_bytes(word.encode(), "little") % _BITS


def _begins_sentence(text: str, at: int) -> bool:
    before = text[:at].rstrip(_OPENING)
    return not before or before[-1] in _SENTENCE_END


def _stem(word: str) -> str:
    """Return a word without its commonest endings, as long as enough of it is left."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM_MIN - 1:
            return word[: -len(ending)]
    return word


def states_the_same(
    older: Wording,
    newer: Wording,
    query: Wording | None,
    cosine: float | None,
    bars: CosineBars | None,
) -> bool:
    """Return whether two statements are about one thing, as far as a query can tell.

    Args:
        older: The earlier statement.
        newer: The later one.
        query: The query's words; None: it has none.
        cosine: That of their vectors; None: not both have one.
        bars: What cosines mean in their space; None: it was not measured.
    """
    shared = len(older.topic & newer.topic)
    words = len(older.topic) + len(newer.topic)
    overlap = 2 * shared / words if words else 0.0
    same = shared > 0 and overlap >= (OVERLAP_MIN if shared >= SHARED_MIN else OVERLAP_OF_ONE)
    if bars is not None and cosine is not None:
        bar = bars.alone
        if newer.changes:
            bar = min(bar, bars.changed)
        if overlap >= OVERLAP_TOGETHER:
            bar = min(bar, bars.together)
        same = cosine >= (bars.worded if same else bar)
    if not same or query is None:
        return same
    apart = (older.every - newer.every) & query.every
    return not (apart & older.names or (apart and _worded_alike(older, newer)))


def _worded_alike(one: Wording, other: Wording) -> bool:
    """Return whether one text is the other with some words replaced, more or less."""
    shared = (Counter(one.sequence) & Counter(other.sequence)).total()
    return shared >= WORDED_ALIKE * max(len(one.sequence), len(other.sequence))


class _Leader(NamedTuple):
    place: int
    memory: Memory
    words: Wording
    bits: int
    size: int


def _likely(
    words: Wording,
    leaders: Sequence[_Leader],
    alike: Sequence[float | None] | None,
    bars: CosineBars | None,
) -> Iterator[_Leader]:
    """Yield those of the leaders that a statement may be the same as.

    Of a few hundred pairs most are ruled out here, at a fraction of what a look at both costs: by
    the cosine, or by the bits that their words have in common.
    """
    bits, size = words.bits, len(words.topic)
    for one in leaders:
        common = (bits & one.bits).bit_count()
        least = OVERLAP_MIN
        if alike is not None and bars is not None:
            cosine = alike[one.place]
            if cosine is not None:
                if cosine < bars.worded:
                    continue
                least = 0.0 if cosine >= bars.lowest else OVERLAP_TOGETHER
        if 2 * common >= least * (size + one.size):
            yield one


def grouped(
    memories: Sequence[Memory],
    query: str,
    cosines: Callable[[int], Sequence[float | None]],
    bars: CosineBars | None,
    relevances: Sequence[float | None],
    *,
    as_of: int,
    now: int,
) -> Grouped:
    """Order a candidate list so that in each group the latest statement leads.

    The places of a group's members stay those of its members, the latest takes the best of them
    and the others follow from late to early. Everything else stays where it is. A memory joins
    the latest statement that it says the same as, never another follower: what is like what it is
    like may be about something else.

    Args:
        memories: The candidates, best first; facts and kinds that are not grouped may be there.
        query: The query's text; "": none.
        cosines: Those of the candidate at a place with all, by place; None: one has no vector.
            Not asked for without ``bars``.
        bars: What cosines mean in their space; None: it was not measured.
        relevances: Of the candidates' vectors to the query's, 0..1; None: one of them is absent.
            Not looked at without ``bars``.
        as_of: Of valid time: what does not hold then leads no group.
        now: By which expiry is judged.
    """
    asked = wording(query) if query else None
    places = [place for place, one in enumerate(memories) if _is_grouped(one)]
    places.sort(key=lambda place: (-memories[place].valid_from, place))
    members: dict[int, list[int]] = {}
    leader: dict[int, int] = {}
    leaders: dict[tuple[str, str, str], list[_Leader]] = {}
    for place in places:
        one = memories[place]
        words = wording(one.text)
        key = (one.subject.type, one.subject.id, one.context)
        rivals = leaders.setdefault(key, [])
        alike = cosines(place) if bars is not None and rivals else None
        for rival in _likely(words, rivals, alike, bars):
            later = rival.memory
            if later.kind is not one.kind or later.valid_from == one.valid_from:
                continue
            if bars and _answers_less(relevances[rival.place], relevances[place], bars):
                continue
            cosine = alike[rival.place] if alike is not None else None
            if states_the_same(words, rival.words, asked, cosine, bars):
                members.setdefault(rival.place, [rival.place]).append(place)
                leader[place] = rival.place
                break
        else:
            if _may_lead(one, as_of, now):
                rivals.append(_Leader(place, one, words, words.bits, len(words.topic)))
    order = list(range(len(memories)))
    records = 0
    for group in members.values():
        for record in _series(memories, group):
            group.remove(record)
            del leader[record]
            records += 1
        for to, place in zip(sorted(group), group, strict=True):
            order[to] = place
    return Grouped(tuple(order), leader, records)


def _series(memories: Sequence[Memory], group: Sequence[int]) -> list[int]:
    """Return the followers in a group that are records of its leader's series."""
    pattern = wording(memories[group[0]].text).pattern
    alike = [place for place in group[1:] if wording(memories[place].text).pattern == pattern]
    return alike if len(alike) > SERIES_MAX else []


def _answers_less(later: float | None, earlier: float | None, bars: CosineBars) -> bool:
    return later is not None and earlier is not None and later < earlier - bars.less_relevant


def _may_lead(memory: Memory, as_of: int, now: int) -> bool:
    """Return whether a memory counts by itself, whatever a search asks to see beside such."""
    return (
        memory.valid_at(as_of)
        and memory.recallable_at(now)
        and memory.status is not MemoryStatus.CANDIDATE
    )


def _is_grouped(memory: Memory) -> bool:
    # A summary of a session and an open item do not take the place of another one.
    kind = memory.kind
    return (
        not memory.attribute and kind is not MemoryKind.SESSION and kind is not MemoryKind.OPEN_ITEM
    )
