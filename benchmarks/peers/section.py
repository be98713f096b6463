"""The section of the page that shows a run beside other products."""

from __future__ import annotations

from typing import Any

from benchmarks.tables import table, verdict

# hnswlib is to be beaten where we scan; beyond, the target says nothing of it.
EQUAL_RECALL_MEMORIES_MAX = 20_000


def peers(run: dict[str, Any]) -> str:
    """Our search in process beside other products'."""
    results = run["results"]
    parts = []
    for size in results["sizes"]:
        rows = [
            _peer_row(name, one, size["memories"], results) for name, one in size["rows"].items()
        ]
        header = ["", "found by", "kept in", "recall", "searches", "p50 ms", "p99 ms", "p50 / ours"]
        parts.append(f"{size['memories']:,} memories:\n\n" + table(header, rows))
    stores = "in memory" if results["stores_in_memory"] else "on disk"
    return (
        f"## In process, beside other products, k = {results['top_k']}\n\n"
        f"The same {results['dimension']}-dimensional vectors ({results['vectors']}) and queries "
        "for all, no RPC, one caller, everybody at its defaults in a process of its own, in turns. "
        "Recall is against brute force. Ours is the whole search of the server but its messages; "
        "products that keep data in memory only, or no texts, do less. Only searches are timed, "
        f"and every folder was {stores}.\n\n" + "\n\n".join(parts)
    )


def _peer_row(
    name: str, one: dict[str, Any], memories: int, results: dict[str, Any]
) -> list[object]:
    title = " ".join([results["titles"][name], one.get("version", "")]).strip()
    about = [title, results["how"][name], results["keeps"][name]]
    if "failed" in one:
        return [*about, f"not measured: {one['failed']}".replace("|", "/"), "", "", "", ""]
    ratio = f"{one['ratio_p50']:g} x" if "ratio_p50" in one else ""
    bound = results["at_least"][name]
    if ratio and bound is not None and (bound > 1 or memories <= EQUAL_RECALL_MEMORIES_MAX):
        ratio = verdict(one["ratio_p50"], bound, at_least=True)
    effort = ""
    if "effort" in one:
        effort = f" (ef {one['effort']}; {one['recall_at_default']:g} with its default)"
    return [*about, f"{one['recall']:g}{effort}", one["count"], one["p50_ms"], one["p99_ms"], ratio]
