"""Recall of gold evidence on LoCoMo, through the real server: import, search, compare.

Each conversation is one tenant, each turn one episode, each question one text search. The data is
public but not ours to ship (CC BY-NC 4.0): it is looked for where ``--data`` or PILLION_LOCOMO
says, else at ``data/locomo/locomo10.json`` under the project, and its absence is said.

recall@k is the mean over questions of the share of a question's evidence turns among the first k
hits; MRR that of 1 / rank of its first evidence turn.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import Client, Partition

from benchmarks import harness

DATA = harness.ROOT / "data" / "locomo" / "locomo10.json"
EVIDENCE = re.compile(r"^D0*(\d+):(?:0*\d+:)?0*(\d+)$")
CUTS = (5, 10, 20)
CATEGORIES = {4: "single-hop", 1: "multi-hop", 2: "temporal", 3: "open-domain", 5: "adversarial"}


@dataclass(frozen=True)
class Question:
    """A question with the turns that hold its answer."""

    text: str
    category: int
    evidence: frozenset[str]


def find_data(asked: str | None) -> Path | None:
    """Return where the data is, or None when it is absent."""
    path = Path(asked or os.environ.get("PILLION_LOCOMO") or DATA)
    return path if path.is_file() else None


def turns_of(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a conversation's turns as lines for ``pillion import``."""
    lines = []
    for name, session in conversation.items():
        if not re.fullmatch(r"session_\d+", name) or not isinstance(session, list):
            continue
        stamp = conversation[f"{name}_date_time"]
        at = datetime.strptime(stamp, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in session:
            text = f'{turn["speaker"]} said, "{turn["text"]}"'
            if turn.get("blip_caption"):
                text += f" and shared {turn['blip_caption']}"
            lines.append(
                {
                    "type": "episode",
                    "subject": "conversation:locomo",
                    "content": text,
                    "source_kind": "user_statement",
                    "author": turn["speaker"],
                    "occurred_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "session_id": name,
                    "external_ref": turn["dia_id"],
                }
            )
    return lines


def questions_of(sample: dict[str, Any], turns: set[str]) -> list[Question]:
    """Return the questions whose evidence names at least one turn."""
    found = []
    for entry in sample["qa"]:
        named = set()
        for part in re.split(r"[;\s]+", " ".join(entry.get("evidence", []))):
            match = EVIDENCE.match(part)
            if match:
                named.add(f"D{match[1]}:{match[2]}")
        named &= turns
        if named:
            found.append(Question(entry["question"], entry["category"], frozenset(named)))
    return found


def import_turns(target: str, tenant: str, lines: list[dict[str, Any]]) -> None:
    """Run ``pillion import`` on a conversation."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        file.flush()
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pillion.cli",
                "--target",
                target,
                "--namespace",
                "locomo",
                "--tenant",
                tenant,
                "import",
                file.name,
            ],
            check=True,
        )


def wait_for_vectors(client: Client, partition: Partition) -> float:
    """Wait until every turn has its vector; return the seconds that took."""
    start = time.perf_counter()
    while client.stats(partition=partition).partitions[0].vectors_pending:
        time.sleep(0.2)
    return time.perf_counter() - start


def ranks_of(
    client: Client, partition: Partition, question: Question, references: dict[str, str]
) -> list[int]:
    """Return the ranks, from 1, at which evidence turns were found among the first 20."""
    found = client.search(question.text, top_k=max(CUTS), partition=partition)
    return [
        rank
        for rank, hit in enumerate(found.hits, 1)
        if references.get(hit.memory.source.episode_id or "") in question.evidence
    ]


def score(ranks: list[tuple[Question, list[int]]]) -> dict[str, Any]:
    """Return recall at each cut, and MRR, in per cent."""
    count = len(ranks)
    result: dict[str, Any] = {"questions": count}
    for cut in CUTS:
        total = sum(
            sum(rank <= cut for rank in found) / len(question.evidence) for question, found in ranks
        )
        result[f"recall_at_{cut}"] = round(100 * total / count, 1)
    result["mrr"] = round(
        100 * sum(1 / min(found) if found else 0.0 for _, found in ranks) / count, 1
    )
    return result


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="where locomo10.json is")
    parser.add_argument("--target", help="a server that runs; absent: one is started")
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--conversations", type=int, default=10)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    path = find_data(arguments.data)
    if path is None:
        print(f"LoCoMo is not here: say --data or PILLION_LOCOMO, or put it at {DATA}.")
        return 3
    samples = json.loads(path.read_text(encoding="utf-8"))[: arguments.conversations]
    if arguments.target:
        results = measure(arguments.target, samples)
    else:
        options = ("--embedder", arguments.embedder, "--log-level", "warning")
        with harness.serving(*options) as served:
            results = measure(served.target, samples)
    harness.record("locomo_recall", results, keep=arguments.keep)
    return 0


def measure(target: str, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Import every conversation, ask every question, and score the answers."""
    answered: list[tuple[Question, list[int]]] = []
    turns_total = 0
    vector_seconds = import_seconds = search_seconds = 0.0
    with Client(target) as client:
        for sample in samples:
            partition = Partition("locomo", sample["sample_id"])
            lines = turns_of(sample["conversation"])
            start = time.perf_counter()
            import_turns(target, partition.tenant, lines)
            import_seconds += time.perf_counter() - start
            vector_seconds += wait_for_vectors(client, partition)
            references = {
                episode.id: episode.external_ref or ""
                for episode in client.list_episodes(partition=partition)
            }
            turns = set(references.values())
            if len(turns) != len(lines):
                raise RuntimeError(f"{len(lines)} turns sent, {len(turns)} there")
            turns_total += len(turns)
            start = time.perf_counter()
            answered += [
                (question, ranks_of(client, partition, question, references))
                for question in questions_of(sample, turns)
            ]
            search_seconds += time.perf_counter() - start
        embedder = client.info().embedder
    return {
        "conversations": len(samples),
        "turns": turns_total,
        "embedder": embedder.name if embedder else "none",
        "indexed_text": "speaker and text as said, no context",
        "all": score(answered),
        "by_category": {
            name: score([one for one in answered if one[0].category == number])
            for number, name in CATEGORIES.items()
        },
        "import_seconds": round(import_seconds, 1),
        "vector_wait_seconds": round(vector_seconds, 1),
        "search_seconds": round(search_seconds, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
