"""Write docs/benchmarks.md from the latest kept run of each benchmark; ``--check`` compares.

The page has no number that is not in a run. Sections whose run is absent are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pillion.bench.schedule import MIXES

from benchmarks.charts import grouped_bars
from benchmarks.open_loop_section import chart_file, open_loop, open_loop_chart
from benchmarks.peers.section import peers
from benchmarks.tables import table, verdict

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "benchmarks" / "runs"
PAGE = ROOT / "docs" / "benchmarks.md"
Run = dict[str, Any]

HEAD = (
    "# Benchmarks\n\n"
    "Made by `python benchmarks/report.py` from `benchmarks/runs/`: every figure is in a run "
    "there, with machine, commit and command. Machines are noisy: compare ratios within one run, "
    "and not figures of two. `make bench` measures anew.\n"
)


def latest() -> dict[str, Run]:
    """Return the latest run of each name, by the date of its folder."""
    found: dict[str, Run] = {}
    for path in sorted(RUNS.glob("*/*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        run["file"] = path.relative_to(ROOT).as_posix()
        found[path.stem] = run
    return found


def provenance(run: Run) -> str:
    """Return where a run came from."""
    machine = run["machine"]
    return (
        f"{run['at']}, {machine['processor']}, {machine['cores']} cores, commit "
        f"{run['commit']}: `{run['command']}` ({run['file']})"
    )


PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "max_ms")


def search_latency(run: Run) -> str:
    """Search beside an echo RPC."""
    results = run["results"]
    rows = [
        [name, *(results[name][key] for key in PERCENTILES)]
        for name in ("search", "echo", "client")
        if name in results
    ]
    by_stub = "client" in results  # earlier runs called the server through the thin client only
    how = "the generated stub on both sides" if by_stub else "Python client"
    extra = f" Through the thin client: p50 {results['client_ratio_p50']:g} x." if by_stub else ""
    return (
        f"## Search with a given vector, {results['memories']:,} memories, k = "
        f"{results['top_k']}\n\n"
        f"One caller, {how}, Unix socket, {results['exactness'].lower()} answers; in turns "
        f"with an echo RPC of the same sizes ({results['request_bytes']:,} bytes there, "
        f"{results['response_bytes']:,} back), whose handler does nothing.\n\n"
        + table(["", "p50 ms", "p90 ms", "p99 ms", "max ms"], rows)
        + f"\n\nRatio: p50 {verdict(results['ratio_p50'], 1.5)}, p99 "
        f"{verdict(results['ratio_p99'], 2)}.{extra}"
    )


def get_latency(run: Run) -> str:
    """Get beside an echo RPC."""
    results = run["results"]
    rows = []
    for name, title, bound in (
        ("current", "a current fact", 1.2),
        ("by_id", "a memory by id", None),
        ("as_of", f"a fact of {results['versions']:,} versions, as of its past", 1.5),
    ):
        one = results[name]
        ratio = verdict(one["ratio_p50"], bound) if bound is not None else f"{one['ratio_p50']:g} x"
        rows.append(
            [
                title,
                *(f"{one['get'][key]} / {one['echo'][key]}" for key in PERCENTILES[:3]),
                ratio,
                f"{one['client_ratio_p50']:g} x",
            ]
        )
    header = ["", "p50 ms", "p90 ms", "p99 ms", "p50 ratio", "thin client, p50 ratio"]
    return (
        "## Get, beside an echo RPC\n\n"
        f"One caller, the generated stub on both sides, Unix socket, {results['keys']:,} keys in "
        "turn; each cell: the Get / an echo RPC of the same messages, whose handler does "
        "nothing.\n\n" + table(header, rows)
    )


def import_memory(run: Run) -> str:
    """Memory of an import."""
    results = run["results"]
    indexed = results["indexed_vectors"]
    how = f"with an index of all {indexed:,} vectors" if indexed else "scanned exactly, no index"
    return (
        f"## Import of {results['memories']:,} memories, {how}\n\n"
        f"{results['memories_per_second']:,} memories a second. The process grew by "
        f"{results['grown_bytes'] / 1e6:.0f} MB, of its vectors and texts "
        f"{verdict(results['grown_ratio'], 2.2)}; {results['disk_bytes'] / 1e6:.0f} MB on disk."
    )


def cold_load(run: Run) -> str:
    """The first search of a partition that is not in memory."""
    results = run["results"]
    cold, floor = results["cold_first_search"], results["floor_read"]
    return (
        f"## First search of {results['memories']:,} memories that are not in memory\n\n"
        f"Encryption {results['encryption']}, 384 dimensions: {cold['p50_ms']:,.0f} ms, beside "
        f"{floor['p50_ms']:,.0f} ms to read the same {results['read_bytes'] / 1e6:.0f} MB from the "
        f"data file and keep none. The process grew by {results['grown_bytes_per_memory']:,} bytes "
        "a memory."
    )


def locomo(run: Run) -> str:
    """Retrieval of gold evidence on LoCoMo."""
    results = run["results"]
    if "rankings" not in results:
        return ""
    rankings, published = results["rankings"], results["published"]
    halves = [
        [name, *_cells(one["all"]), *_cells(one["tuned_on"]), *_cells(one["held_out"])]
        for name, one in rankings.items()
    ]
    halves += [[f"published: {name}", *_cells(one)] + [""] * 6 for name, one in published.items()]
    parts = ["R@5", "R@10", "MRR"]
    beside = [one for one in (BM25, COSINE) if one in rankings]
    categories = []
    for name, one in rankings[BEST]["by_category"].items():
        others = [
            cell for other in beside for cell in _cells(rankings[other]["by_category"][name])[:2]
        ]
        categories.append([name, one["questions"], *_cells(one), *others])
    aims = [("R@5", "recall_at_5", 66.0), ("R@10", "recall_at_10", 76.0), ("MRR", "mrr", 51.0)]
    kept = [
        f"{name} {rankings[BEST]['all'][key]:g} ({'kept' if value else 'NOT kept'}: {bound:g})"
        for name, key, bound in aims
        for value in [rankings[BEST]["all"][key] >= bound]
    ]
    return (
        f"## Gold evidence on LoCoMo, through the real server, embedder {results['embedder']}\n\n"
        f"{results['turns']:,} turns of {results['conversations']} conversations as episodes, "
        f"{rankings[BEST]['all']['questions']:,} questions as searches, embedder "
        f"{results['embedder']}. Per cent. The constants were chosen on conversations 1 to 5 "
        "([ADR 0022](adr/0022-indexed-text.md)); 6 to 10 were held out. The other "
        "rankings are of one and the same indexed text; *BM25 on bare turns* is a server with "
        '`episode_indexing = "plain"` and no embedder. Published figures are by their own '
        "account. The data is not shipped (CC BY-NC 4.0).\n\n"
        f"![recall and MRR of each ranking]({LOCOMO_CHART.name})\n\n"
        + table(
            ["", *parts, *(f"{one} 1-5" for one in parts), *(f"{one} 6-10" for one in parts)],
            halves,
        )
        + f"\n\nAims, by relevance, all questions: {', '.join(kept)}.\n\n"
        + table(
            ["relevance, by category", "questions", *parts]
            + [f"{name}, {one}" for name in beside for one in parts[:2]],
            categories,
        )
    )


def updated_statements(run: Run) -> str:
    """Old and updated statements of one thing."""
    results = run["results"]
    rows = []
    for name, key, what in (
        ("untyped, default profile", "untyped", "default"),
        ("untyped, no weight on recency", "untyped", "without_recency"),
        ("typed, default profile", "typed", "default"),
        ("typed, no weight on recency", "typed", "without_recency"),
    ):
        one = results[key][what]
        rows.append(
            [
                name,
                one["pairs"],
                one["current_first_by_score"],
                one["current_first_grouped"],
                one["current_in_top_5_by_score"],
                one["current_in_top_5_grouped"],
                one.get("right_one_first_by_score", ""),
                one.get("right_one_first_grouped", ""),
            ]
        )
    return (
        "## Old and updated statements of one thing\n\n"
        "Pairs built from templates, most of a year apart and among some 60 other memories of the "
        f"subject; topics: {results['topics']}; embedder {results['embedder']}. Per cent of pairs "
        "whose current statement is before the old one, and among the first 5; before is by score "
        "alone, after is grouped. Lookalikes are two statements of two things, of which the older "
        "is asked for: how often it stays before the newer.\n\n"
        + table(
            [
                "",
                "pairs",
                "current first",
                "grouped",
                "in the first 5",
                "grouped",
                "lookalikes right",
                "grouped",
            ],
            rows,
        )
    )


def _cells(one: dict[str, Any]) -> list[object]:
    return [one.get(key, "") for key in ("recall_at_5", "recall_at_10", "mrr")]


def locomo_chart(run: Run) -> str:
    """Draw every ranking of the run beside the published figures."""
    results = run["results"]
    groups = {name: one["all"] for name, one in results["rankings"].items()} | results["published"]
    keys = ("recall_at_5", "recall_at_10", "mrr")
    return grouped_bars(
        "Gold evidence on LoCoMo, all questions, per cent",
        ("R@5", "R@10", "MRR"),
        {name: [one.get(key) for key in keys] for name, one in groups.items()},
    )


BEST, BM25, COSINE = "relevance", "BM25 alone", "cosine alone"
LOCOMO_CHART = PAGE.parent / "locomo.svg"


def ranker(run: Run) -> str:
    """The scan kernels."""
    results = run["results"]
    rows = []
    for name, one in results.items():
        if "times_bare_read" in one:
            ratio = one.get("times_faster_than_float32", "")
            rows.append([name, one["median_us"], one["times_bare_read"], ratio])
    return (
        "## Scan kernels, 384 dimensions, one core\n\n"
        "Beside a bare read of the same bytes in the same run.\n\n"
        + table(["", "median µs", "x bare read", "x faster than float32"], rows)
        + "\n\nfloat32 at 10,000 beside a bare read: "
        + verdict(results["scan_float32[10000]"]["times_bare_read"], 1.5)
        + "; int8 at 100,000 beside float32: "
        + verdict(results["scan_int8[100000]"]["times_faster_than_float32"], 2.5, at_least=True)
        + "."
    )


def storage(run: Run) -> str:
    """Group commit."""
    grouped = run["results"]["durable_writes_of_64_threads"]
    return (
        "## Durable writes, 64 concurrent writers\n\n"
        f"{grouped['grouped_writes_per_second']:,} writes a second by group commit, "
        f"{grouped['alone_writes_per_second']:,} with one transaction and fsync a write in the "
        f"same run: {verdict(grouped['ratio'], 6, at_least=True)}, {grouped['batches_per_group']} "
        f"writes a group. Rounds in turn: {', '.join(map(str, grouped['ratio_each_round']))}."
    )


def cas_contention(run: Run) -> str:
    """Increments of one key by many writers."""
    results = run["results"]
    took = results["increment"]
    return (
        f"## Compare-and-set under contention: {results['writers']} writers, one key\n\n"
        "Each writer is a process with the Python client, and reads, adds one and writes unless "
        f"somebody wrote between. {results['increments']:,} increments, each counted exactly once; "
        f"{results['attempts_per_increment']} attempts an increment. "
        f"{results['increments_per_second']:,} increments a second "
        f"({results['increments_per_second_alone']:,} by one writer alone), beside "
        f"{results['flushes_per_second']:,} flushes of a page a second on the same disk: "
        f"{results['flushes_per_increment']} flushes' time an increment. An increment with all of "
        f"its attempts: p50 {took['p50_ms']} ms, p99 {took['p99_ms']} ms."
    )


def histories(run: Run) -> str:
    """Concurrent histories under kill -9."""
    results = run["results"]
    outcomes, checked = results["outcomes"], results["linearizability"]
    counts = [
        ("lost updates", results["lost_updates"]),
        ("double effects", results["double_effects"]),
        ("acknowledged writes lost", results["acknowledged_writes_lost"]),
        ("half batches", results["half_batches"]),
        ("effects that nobody asked for", results["effects_nobody_asked_for"]),
    ]
    return (
        f"## Concurrent histories under kill -9: {results['kills']:,} kills\n\n"
        f"{results['processes']} client processes at a time read, count by compare-and-set, put, "
        "write batches under guards and send writes again, while the server is killed at random "
        f"and started again. {checked['operations']:,} operations, of which "
        f"{outcomes['write ok']:,} writes were acknowledged, {outcomes['write refused']:,} "
        f"refused, {outcomes['writes sent again']:,} sent again and "
        f"{outcomes.get('write unknown', 0):,} left unknown. The history is "
        f"{'' if checked['linearizable'] else 'NOT '}linearizable (each partition as one object, "
        "with revisions, by Porcupine).\n\n" + table(["", "found"], [list(one) for one in counts])
    )


def grpc_versions(run: Run) -> str:
    """Two versions of grpcio."""
    rows = [
        [version, one["cpu_us"], f"{one['calls_per_second']:,.0f}"]
        for version, one in run["results"].items()
    ]
    return (
        "## An echo RPC under two versions of grpcio\n\n"
        "Median of rounds in turns, 8 callers, processor time of the server. Why grpcio is held to "
        "one minor: docs/adr/0003.\n\n" + table(["grpcio", "CPU µs a call", "calls a second"], rows)
    )


def index_restart(run: Run) -> str:
    """Building the vector index against restoring it."""
    results = run["results"]
    rounds = {"built": [results["built"]], "restored": results["restored"]}
    rows = [
        [
            how,
            " / ".join(f"{one['indexed_seconds']:g}" for one in each),
            " / ".join(f"{one['first_search_ms']:g}" for one in each),
            " / ".join(f"{one['slowest_later_search_ms']:g}" for one in each),
        ]
        for how, each in rounds.items()
    ]
    return (
        f"## The vector index after a start, {results['memories']:,} memories\n\n"
        "From the first search until every vector is in the index; searches scan meanwhile. A "
        f"figure a start. The load of the machine was {run['machine']['load_average']:.0f} on its "
        "cores, so all of them are upper bounds.\n\n"
        + table(["index", "there after, s", "first search, ms", "slowest later one, ms"], rows)
    )


SECTIONS: dict[str, Callable[[Run], str]] = {
    "search_latency_10000": search_latency,
    "get_latency": get_latency,
    **{f"open_loop_{mix}": open_loop for mix in MIXES},
    "peers": peers,
    "micro_ranker": ranker,
    "micro_storage": storage,
    "cas_contention_16": cas_contention,
    "histories": histories,
    "import_memory_100000": import_memory,
    "import_memory_100000_indexed": import_memory,
    "cold_load_100000": cold_load,
    "index_restart_20000": index_restart,
    "locomo_recall": locomo,
    "locomo_words": locomo,
    "updated_statements": updated_statements,
    "grpc_versions": grpc_versions,
}


def page() -> str:
    """Return the whole page."""
    runs = latest()
    parts = [HEAD]
    parts += [
        f"{text}\n\n{provenance(runs[name])}\n"
        for name, section in SECTIONS.items()
        if name in runs and (text := section(runs[name]))
    ]
    return "\n".join(parts)


def charts() -> dict[Path, str]:
    """Return the charts that the page shows, by their files."""
    runs = latest()
    made = {
        PAGE.parent / chart_file(mix): open_loop_chart(runs[f"open_loop_{mix}"])
        for mix in MIXES
        if f"open_loop_{mix}" in runs
    }
    kept = [runs[name] for name in ("locomo_recall", "locomo_words") if name in runs]
    run = next((one for one in kept if "rankings" in one["results"]), None)
    return made if run is None else made | {LOCOMO_CHART: locomo_chart(run)}


def main() -> int:
    """Write the page and its charts, or say that they are stale."""
    made = {PAGE: page()} | charts()
    if "--check" in sys.argv[1:]:
        stale = [
            path
            for path, text in made.items()
            if not path.exists() or path.read_text(encoding="utf-8") != text
        ]
        for path in stale:
            name = path.relative_to(ROOT)
            print(f"{name} is stale: run `python benchmarks/report.py`")
        return 1 if stale else 0
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
