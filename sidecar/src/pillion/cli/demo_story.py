"""The story of the demo: three statements that arrive out of order, and questions about them.

A user's passport deadline is stated, then changed, and then a message that was delayed arrives
last with the oldest value. A pile of notes has three sentences and no way to tell them apart; a
timeline has one answer for every instant. Each answer is checked against what it must be.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pillion_client import (
    FactKey,
    PutFact,
    Source,
    Subject,
    VersionMismatch,
    unconditional,
    version_equals,
)

from pillion.cli.documents import instant_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_client import Client, Memory

MIRA: Final = Subject("user", "mira")
ATTRIBUTE: Final = "passport_deadline"
QUERY: Final = "passport deadline"


@dataclass(frozen=True, slots=True)
class Statement:
    """One message: what it says, which value that is, and since when it is so."""

    name: str
    content: str
    value: str
    valid_from: datetime


E1: Final = Statement(
    "e1",
    "Her passport deadline is 2026-07-15",
    "2026-07-15",
    datetime(2026, 6, 1, 9, tzinfo=UTC),
)
E2: Final = Statement(
    "e2", "It is now 2026-06-30", "2026-06-30", datetime(2026, 6, 3, 10, tzinfo=UTC)
)
E0: Final = Statement("e0", "2026-08-01", "2026-08-01", datetime(2026, 5, 30, 8, tzinfo=UTC))
ARRIVALS: Final = (E1, E2, E0)


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what was done or asked, what came of it, and whether that is right.

    ``checks`` names what was verified, each with its outcome. A step without checks only tells.
    """

    name: str
    title: str
    result: str
    checks: dict[str, bool] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        """True when every check held."""
        return all(self.checks.values())


class Story:
    """Plays the story against one server, in a partition that nothing else uses."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._episodes: dict[str, str] = {}
        self._rows: dict[str, str] = {}
        self._versions: dict[str, int] = {}

    def play(self) -> Iterator[Step]:
        """Yield each step as it is done."""
        for statement in ARRIVALS:
            yield self._tell(statement)
        yield self._ask_now()
        yield self._ask_on_2_june()
        yield self._ask_on_31_may()
        yield self._ask_a_pile_of_notes()
        yield self._write_with_a_stale_version()
        yield self._repeat_a_request()

    def _tell(self, statement: Statement) -> Step:
        """Capture the message as an episode, then state its fact with the episode as source."""
        captured = self._client.capture_episode(
            MIRA,
            statement.content,
            source_kind="user_statement",
            author=str(MIRA),
            occurred_at=statement.valid_from,
        ).only
        self._episodes[statement.name] = captured.id
        put = self._client.put_fact(
            MIRA,
            ATTRIBUTE,
            statement.value,
            source=Source("user_statement", captured.id, statement.value, str(MIRA)),
            precondition=unconditional,
            valid_from=statement.valid_from,
        ).only
        self._rows[statement.name] = put.id
        self._versions[statement.name] = put.fact_version
        expected = {"e1": "created", "e2": "superseded", "e0": "inserted"}[statement.name]
        late = ", arriving late" if statement is E0 else ""
        return Step(
            f"tell_{statement.name}",
            f'{statement.name}: "{statement.content}", valid from '
            f"{instant_text(statement.valid_from)}{late}",
            f"{put.outcome.value}, row {put.id}",
            {f"outcome is {expected}": put.outcome.value == expected},
        )

    def _fact(self, as_of: datetime | None = None) -> Memory:
        return self._client.get_fact(MIRA, ATTRIBUTE, as_of=as_of)

    def _from(self, row: Memory, statement: Statement) -> dict[str, bool]:
        return {
            f"value is {statement.value}": row.value == statement.value,
            f"source is {statement.name}": row.source.episode_id == self._episodes[statement.name],
        }

    def _ask_now(self) -> Step:
        row = self._fact()
        checks = self._from(row, E2)
        checks["supersedes e1's row"] = row.supersedes == self._rows["e1"]
        return Step("now", "What is her passport deadline now?", _answer(row, "e2"), checks)

    def _ask_on_2_june(self) -> Step:
        row = self._fact(datetime(2026, 6, 2, tzinfo=UTC))
        return Step(
            "on_2_june", "And what was it on 2 June?", _answer(row, "e1"), self._from(row, E1)
        )

    def _ask_on_31_may(self) -> Step:
        row = self._fact(datetime(2026, 5, 31, tzinfo=UTC))
        checks = self._from(row, E0)
        checks["ends where e1's begins"] = row.valid_to == E1.valid_from
        return Step("on_31_may", "And on 31 May?", _answer(row, "e0"), checks)

    def _ask_a_pile_of_notes(self) -> Step:
        """What a store of notes would answer: the raw sentence that shares most words."""
        asked = _words(QUERY)
        best = max(ARRIVALS, key=lambda statement: len(asked & _words(statement.content)))
        return Step(
            "pile_of_notes",
            f'For comparison, not Pillion: a text match for "{QUERY}" over the three messages',
            f'"{best.content}" ({best.name}), which is out of date',
            {"the naive match is e1": best is E1},
        )

    def _write_with_a_stale_version(self) -> Step:
        """Write as a tool would that read the fact before e0 arrived."""
        current, stale = self._fact().fact_version, self._versions["e2"]
        try:
            self._client.put_fact(
                MIRA,
                ATTRIBUTE,
                "2026-09-09",
                source=Source("tool_result"),
                precondition=version_equals(stale),
            )
        except VersionMismatch as refusal:
            said, result = refusal.current, f"refused: the version is {refusal.current}"
        else:
            said, result = None, "accepted"
        return Step(
            "stale_write",
            f"A tool that read version {stale}, before e0 arrived, now writes another date",
            result,
            {
                "refused with the current version": said == current,
                "nothing has changed": self._fact().value == E2.value,
            },
        )

    def _repeat_a_request(self) -> Step:
        """Send one write twice with one request_id, as after an answer that was lost."""
        request_id = str(uuid.uuid4())
        change = PutFact(
            MIRA, "home_city", "Bern", source=Source("user_statement"), precondition=unconditional
        )
        first = self._client.write(change, request_id=request_id)
        second = self._client.write(change, request_id=request_id)
        rows = list(self._client.history(FactKey(MIRA, "home_city")))
        return Step(
            "repeated_request",
            "A write is sent twice with the same request_id",
            f"revision {first.revision}, then again revision {second.revision}",
            {
                "the second answer is the first": second.results == first.results
                and second.revision == first.revision,
                "it says so": second.replayed and not first.replayed,
                "it took effect once": len(rows) == 1,
            },
        )


def _answer(row: Memory, name: str) -> str:
    until = "open" if row.valid_to is None else instant_text(row.valid_to)
    since = "" if row.valid_from is None else instant_text(row.valid_from)
    return f'{row.value} from {name}, "{row.source.quote}", valid {since} to {until}'


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
