"""Old and updated statements of one thing, through the real server: which comes first?

The data is built here, see `statements`. The bars by which statements are grouped were chosen on
the topics of even number; a run reports those of odd number. Each subject has one pair of every
topic, lookalikes, and noise between, so that every pair lies among some fifty other memories.

Per pair: is the current statement before the old one, and among the first five? "Before" is what
the scores alone come to: the same hits, sorted by score. Lookalikes are two statements about two
things, and the question is about the older: it must stay before the newer. Typed pairs are facts.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Partition, PutFact, Ranking, Source, unconditional

from benchmarks import harness
from benchmarks.quality.statements import NOISE, Pair, pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEED = 20261130
SUBJECTS = 14
TYPED_SUBJECTS = 4
NOISE_OF_EACH = 10
TOP = 5
UNTYPED = Partition("updates", "untyped")
TYPED = Partition("updates", "typed")
TOLD = Source("user_statement")
RANKINGS = {"default": Ranking(), "without_recency": Ranking(recency_weight=0.0)}


def spread(found: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Give every subject one pair of each topic, and two of each sort of lookalike."""
    of_topic: dict[int, list[Pair]] = defaultdict(list)
    for pair in found:
        of_topic[pair.topic].append(pair)
    subjects: dict[str, list[Pair]] = defaultdict(list)
    for ones in of_topic.values():
        for number, pair in enumerate(ones):
            subjects[f"user:p{number % SUBJECTS}"].append(pair)
    return subjects


def written(subjects: dict[str, list[Pair]], *, typed: bool) -> list[Any]:
    """Return the writes: the old statements most of a year ago, the new ones of late."""
    chance = random.Random(SEED)
    now = datetime.now(UTC)
    made: list[Any] = []

    def ago(least: int, most: int) -> datetime:
        return now - timedelta(days=chance.randint(least, most), seconds=chance.randint(1, 80_000))

    for subject, ones in subjects.items():
        for pair in ones:
            for text, at in ((pair.older, ago(200, 330)), (pair.newer, ago(1, 60))):
                if typed and pair.same:
                    made.append(
                        PutFact(
                            subject,
                            f"topic{pair.topic}",
                            text,
                            TOLD,
                            text=text,
                            valid_from=at,
                            precondition=unconditional,
                        )
                    )
                elif not typed:
                    made += [AddMemory(subject, text, TOLD, valid_from=at)]
        noise = chance.sample(NOISE, NOISE_OF_EACH)
        made += [AddMemory(subject, text, TOLD, valid_from=ago(1, 330)) for text in noise]
    chance.shuffle(made)
    return made


def send(client: Client, partition: Partition, mutations: Sequence[Any]) -> None:
    """Write in batches and wait for the vectors."""
    for start in range(0, len(mutations), 100):
        client.write(*mutations[start : start + 100], partition=partition)
    while client.stats(partition=partition).partitions[0].vectors_pending:
        time.sleep(0.2)


def place(texts: Sequence[str], wanted: str) -> int:
    """Return the place of a text from 1; one beyond the last where it is absent."""
    return texts.index(wanted) + 1 if wanted in texts else len(texts) + 1


def percent(values: Iterable[bool]) -> float:
    """Return the share of what is true, in per cent."""
    told = list(values)
    return round(100 * sum(told) / len(told), 1)


def judged(
    client: Client, partition: Partition, subjects: dict[str, list[Pair]], ranking: Ranking
) -> dict[str, Any]:
    """Ask every question and score the answers."""
    first: dict[str, list[bool]] = defaultdict(list)
    top: dict[str, list[bool]] = defaultdict(list)
    marked, kept = [], []
    scored: list[bool] = []
    for subject, ones in subjects.items():
        for pair in ones:
            found = client.search(
                pair.question, subjects=[subject], ranking=ranking, partition=partition
            )
            texts = [hit.text for hit in found.hits]
            by_score = [hit.text for hit in sorted(found.hits, key=lambda hit: -hit.score)]
            if pair.same:
                for how, order in (("grouped", texts), ("by_score", by_score)):
                    new, old = place(order, pair.newer), place(order, pair.older)
                    first[how].append(new < old)
                    top[how].append(new <= TOP)
                marked += [hit.older_statement for hit in found.hits if hit.text == pair.older]
            else:
                kept.append(place(texts, pair.older) < place(texts, pair.newer))
                scored.append(place(by_score, pair.older) < place(by_score, pair.newer))
    results: dict[str, Any] = {"pairs": len(first["grouped"])}
    for how in ("by_score", "grouped"):
        results[f"current_first_{how}"] = percent(first[how])
        results[f"current_in_top_{TOP}_{how}"] = percent(top[how])
    if marked:
        results["older_ones_that_are_marked"] = percent(marked)
    if kept:
        results["lookalikes"] = len(kept)
        results["right_one_first_by_score"] = percent(scored)
        results["right_one_first_grouped"] = percent(kept)
    return results


def measure(target: str, *, odd: bool) -> dict[str, Any]:
    """Write, ask, and score; typed pairs too."""
    subjects = spread(pairs(SEED, odd=odd, of_each_topic=SUBJECTS))
    some = {
        subject: [pair for pair in ones if pair.same]
        for subject, ones in list(subjects.items())[:TYPED_SUBJECTS]
    }
    with Client(target) as client:
        send(client, UNTYPED, written(subjects, typed=False))
        send(client, TYPED, written(some, typed=True))
        embedder = client.info().embedder
        return {
            "topics": "odd, none of which the bars were chosen on" if odd else "even",
            "embedder": embedder.name if embedder else "none",
            "untyped": {
                name: judged(client, UNTYPED, subjects, ranking)
                for name, ranking in RANKINGS.items()
            },
            "typed": {
                name: judged(client, TYPED, some, ranking) for name, ranking in RANKINGS.items()
            },
        }


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", help="a server that runs; absent: one is started")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--tuning", action="store_true", help="the topics the bars were chosen on")
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    if arguments.target:
        results = measure(arguments.target, odd=not arguments.tuning)
    else:
        options = ("--embedder", arguments.embedder, "--log-level", "warning")
        with harness.serving(*options) as served:
            results = measure(served.target, odd=not arguments.tuning)
    name = "updated_statements"
    if arguments.embedder != "auto":
        name += f"_{arguments.embedder}"
    harness.record(name, results, keep=arguments.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
