"""The long form of the histories: hundreds of kills; ``--keep`` keeps the result as a run.

Exit codes: 0 nothing was lost, doubled or out of order; 1 something was; 2 no checker.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from pillion_histories import checking  # noqa: E402
from pillion_histories.accounts import audit, read_histories  # noqa: E402
from pillion_histories.campaign import Campaign  # noqa: E402
from pillion_storage.verify import verify  # noqa: E402

from benchmarks import harness  # noqa: E402


def progress(text):
    """Show one line that replaces the last, or plain lines where nobody watches."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
    else:
        sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="at least so many")
    parser.add_argument("--kills-per-round", type=int, default=20)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--directory", type=Path, default=None, help="keep everything there")
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    with tempfile.TemporaryDirectory(prefix="pillion-histories-") as scratch:
        directory = arguments.directory or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        try:
            checker = checking.build(scratch)
        except checking.NoCheckerError as missing:
            sys.stderr.write(f"{missing}\n")
            return 2
        started = time.monotonic()
        campaign = Campaign(directory, seed=seed, processes=arguments.processes, say=progress)
        try:
            while campaign.counts.kills < arguments.kills:
                left = arguments.kills - campaign.counts.kills
                campaign.round(min(left, arguments.kills_per_round))
            same = campaign.end()
        finally:
            campaign.server.close()
        seconds = time.monotonic() - started
        books = audit(read_histories(campaign.histories), campaign.readbacks)
        damage = verify(directory / "data").findings
        progress("checking for linearizability")
        verdict = checking.check(checker, campaign.histories)
    sound = not books.findings and same and not damage and verdict["linearizable"]
    harness.record(
        "histories",
        {
            "sound": sound,
            "seed": seed,
            "processes": arguments.processes,
            "seconds": round(seconds, 1),
            "kills": campaign.counts.kills,
            **asdict(campaign.counts),
            "lost_updates": len(books.lost_updates),
            "double_effects": len(books.double_effects),
            "acknowledged_writes_lost": len(books.acknowledged_lost),
            "half_batches": len(books.half_batches),
            "effects_nobody_asked_for": len(books.unasked),
            "findings": books.findings,
            "increments": books.increments,
            "outcomes": dict(sorted(books.outcomes.items())),
            "same_after_another_kill": same,
            "verify_findings": len(damage),
            "linearizability": verdict,
        },
        keep=arguments.keep and sound,
    )
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
