"""Retrieval of gold evidence on LoCoMo, through the real server and without a language model.

Each conversation is one tenant, each turn one episode, each question one text search. Of the same
server and the same indexed text come four rankings: the default profile, relevance alone, BM25
alone and the embedder's cosine alone (the last two from the score parts of every turn). A second
server, without an embedder, gives BM25 on the bare turns: what the context in the text is worth.

recall@k is the mean over questions of the share of a question's evidence turns among the first k
hits; MRR that of 1 / rank of its first evidence turn within the first 20.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import Client, Partition, Ranking

from benchmarks import harness
from benchmarks.quality.conversations import (
    CATEGORIES,
    DATA,
    TUNED_ON,
    Conversation,
    Question,
    conversations,
    find_data,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CUTS = (5, 10, 20)
EVERYTHING = 1000  # more than the turns of any conversation: the most that a search returns
RELEVANCE = Ranking(relevance_weight=1.0, recency_weight=0.0, importance_weight=0.0)
Ranks = list[tuple[Question, list[int]]]

# On the same questions, by their own account; none was run again here.
PUBLISHED = {
    "DRAGON on turns (the LoCoMo paper)": {"recall_at_5": 56.7, "recall_at_10": 66.2},
    "a public Go benchmark's tuned hybrid": {
        "recall_at_5": 66.3,
        "recall_at_10": 76.2,
        "mrr": 51.5,
    },
}


def import_turns(target: str, tenant: str, lines: list[dict[str, Any]]) -> None:
    """Run ``pillion import`` on a conversation."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        file.flush()
        where = ["--target", target, "--namespace", "locomo", "--tenant", tenant]
        command = [sys.executable, "-m", "pillion.cli", *where, "import", file.name]
        subprocess.run(command, check=True)


def wait_for_vectors(client: Client, partition: Partition) -> float:
    """Wait until every turn has its vector; return the seconds that took."""
    start = time.perf_counter()
    while client.stats(partition=partition).partitions[0].vectors_pending:
        time.sleep(0.2)
    return time.perf_counter() - start


def ranks(order: Iterable[str], question: Question) -> list[int]:
    """Return the ranks, from 1, at which evidence turns are among the first 20."""
    return [
        rank for rank, turn in zip(range(1, 21), order, strict=False) if turn in question.evidence
    ]


def score(found: Ranks) -> dict[str, Any]:
    """Return recall at each cut, and MRR, in per cent."""
    count = len(found)
    result: dict[str, Any] = {"questions": count}
    for cut in CUTS:
        total = sum(
            sum(rank <= cut for rank in one) / len(question.evidence) for question, one in found
        )
        result[f"recall_at_{cut}"] = round(100 * total / max(count, 1), 1)
    reciprocal = sum(1 / min(one) if one else 0.0 for _, one in found)
    result["mrr"] = round(100 * reciprocal / max(count, 1), 1)
    return result


def summary(found: Ranks) -> dict[str, Any]:
    """Return the scores of one ranking: of all, of each half and of each category."""

    def some(wanted: Callable[[Question], bool]) -> dict[str, Any]:
        return score([one for one in found if wanted(one[0])])

    return {
        "all": score(found),
        "tuned_on": some(lambda question: question.conversation < TUNED_ON),
        "held_out": some(lambda question: question.conversation >= TUNED_ON),
        "by_category": {
            name: some(lambda question, number=number: question.category == number)
            for number, name in CATEGORIES.items()
        },
    }


class Measured:
    """One server with some conversations in it."""

    def __init__(self, target: str, data: list[Conversation]) -> None:
        self.rankings: dict[str, Ranks] = {}
        self.seconds = dict.fromkeys(("import", "vectors", "searches"), 0.0)
        self._client = Client(target)
        self._target = target
        self._data = data
        info = self._client.info()
        self.embedder = info.embedder.name if info.embedder else "none"

    def run(self, ask: Callable[[Client, Partition, str], dict[str, list[str]]]) -> None:
        """Import every conversation and ask every question; ``ask`` returns orders of episodes."""
        with self._client:
            for conversation in self._data:
                partition = Partition("locomo", conversation.name)
                references = self._import(conversation, partition)
                start = time.perf_counter()
                for question in conversation.questions:
                    for name, order in ask(self._client, partition, question.text).items():
                        turns = [references[one] for one in order]
                        ranking = self.rankings.setdefault(name, [])
                        ranking.append((question, ranks(turns, question)))
                self.seconds["searches"] += time.perf_counter() - start

    def _import(self, conversation: Conversation, partition: Partition) -> dict[str, str]:
        start = time.perf_counter()
        import_turns(self._target, partition.tenant, conversation.turns)
        self.seconds["import"] += time.perf_counter() - start
        self.seconds["vectors"] += wait_for_vectors(self._client, partition)
        references = {
            episode.id: episode.external_ref or ""
            for episode in self._client.list_episodes(partition=partition)
        }
        if len(references) != len(conversation.turns):
            raise RuntimeError(f"{len(conversation.turns)} turns sent, {len(references)} there")
        return references


def every_ranking(client: Client, partition: Partition, text: str) -> dict[str, list[str]]:
    """Return the episodes by the default profile, by relevance, by BM25 and by cosine."""
    default = client.search(text, top_k=max(CUTS), partition=partition)
    relevance = client.search(
        text, top_k=EVERYTHING, partition=partition, ranking=RELEVANCE, include_parts=True
    )
    by_parts = {
        "BM25 alone": lambda parts: parts.lexical or 0.0,
        "cosine alone": lambda parts: parts.cosine if parts.cosine is not None else -1.0,
    }
    orders = {"default profile": default.hits, "relevance": relevance.hits[: max(CUTS)]}
    if all(hit.parts.cosine is None for hit in relevance.hits):
        del by_parts["cosine alone"]
    for name, part in by_parts.items():
        order = sorted(relevance.hits, key=lambda hit, part=part: -part(hit.parts))
        orders[name] = order[: max(CUTS)]
    return {
        name: [hit.memory.source.episode_id or "" for hit in hits] for name, hits in orders.items()
    }


def lexical_ranking(client: Client, partition: Partition, text: str) -> dict[str, list[str]]:
    """Return the episodes by relevance, on a server without an embedder."""
    found = client.search(text, top_k=max(CUTS), partition=partition, ranking=RELEVANCE)
    return {"BM25 on bare turns": [hit.memory.source.episode_id or "" for hit in found.hits]}


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where locomo10.json is")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    path = find_data(arguments.data)
    if path is None:
        print(f"LoCoMo is not here: say --data or PILLION_LOCOMO, or put it at {DATA}.")
        return 3
    data = conversations(path, arguments.conversations)
    with harness.serving("--embedder", arguments.embedder, "--log-level", "warning") as served:
        blended = Measured(served.target, data)
        blended.run(every_ranking)
    options = ("--embedder", "none", "--episode-indexing", "plain", "--log-level", "warning")
    with harness.serving(*options) as served:
        plain = Measured(served.target, data)
        plain.run(lexical_ranking)
    results = {
        "conversations": len(data),
        "turns": sum(len(one.turns) for one in data),
        "embedder": blended.embedder,
        "rankings": {
            name: summary(found) for name, found in (blended.rankings | plain.rankings).items()
        },
        "published": PUBLISHED,
        "seconds": {name: round(value, 1) for name, value in blended.seconds.items()},
    }
    harness.record("locomo_recall", results, keep=arguments.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
