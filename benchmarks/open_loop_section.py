"""The page's section on load: one mix's curve, its knee, and the echo's beside it."""

from __future__ import annotations

from typing import Any

from benchmarks.charts import Curve, curves
from benchmarks.tables import table, verdict

SHARE_MIN = 0.7
"""What Search's throughput within the bound should be of the echo's."""

SIDES = ("pillion", "echo")


def chart_file(mix: str) -> str:
    """Return the name of a mix's chart, beside the page."""
    return f"open_loop_{mix}.svg"


def open_loop(run: dict[str, Any]) -> str:
    """One mix: what is called, the knee, and a line for each rate."""
    found = run["results"]
    data = found["data"]
    rows = [
        _row(side, one)
        for pair in zip(*(found[side]["rounds"] for side in SIDES), strict=True)
        for side, one in zip(SIDES, pair, strict=True)
    ]
    tenants = "1 tenant" if data["tenants"] == 1 else f"{data['tenants']:,} tenants"
    names = ("calls a second", "", "answered", "p50 ms", "p99 ms", "p99.9 ms", "max ms")
    text = (
        f"## Under load, open loop: {found['about']}\n\n"
        f"{data['memories']:,} memories of 384 dimensions and {data['keys']:,} facts, "
        f"{tenants}, Unix socket, one client process on the same machine. Calls "
        "are due at instants of a Poisson process and timed from when they were due. In turn with "
        "an echo RPC of the most frequent call's sizes, at the same rates. A star: the client was "
        "late itself with so many calls that the figure is not the server's.\n\n"
        f"![latency by rate]({chart_file(found['mix'])})\n\n"
        + table([*names, "CPU µs a call", "errors"], rows)
    )
    knees = [found[side]["knee"] for side in SIDES]
    if all(knees):
        rates = [f"{knee['offered']:,.0f}" for knee in knees]
        ratio = found["throughput_ratio"]
        judged = (
            verdict(ratio, SHARE_MIN, at_least=True) if found["mix"] == "search" else f"{ratio:g} x"
        )
        text += (
            f"\n\nWithin a p99 of {found['bound_ms']:g} ms: {rates[0]} calls a second, the echo "
            f"{rates[1]}: {judged}."
        )
    if "flush_ms" in found:
        text += f" One flush to the disk: p50 {found['flush_ms']['p50']:g} ms."
    return text


def open_loop_chart(run: dict[str, Any]) -> str:
    """Draw p50 and p99 by the rate, of both sides."""
    found = run["results"]
    lines = [
        Curve(
            f"{side} {name}",
            [(one["rate"], one["latency_ms"][name]) for one in found[side]["rounds"]],
            colour=place,
            is_dashed=name == "p50",
        )
        for place, side in enumerate(SIDES)
        for name in ("p50", "p99")
    ]
    return curves(f"{found['about']}: latency, ms", "calls a second", lines)


def _row(side: str, one: dict[str, Any]) -> list[object]:
    latency = one["latency_ms"]
    late = "" if one["of_the_server"] else " *"
    errors = ", ".join(f"{count} {code}" for code, count in sorted(one["errors"].items()))
    cpu = one["server_cpu_us_per_call"]
    return [
        f"{one['rate']:,.0f}",
        side,
        f"{one['answered_per_second']:,.0f}",
        latency["p50"],
        f"{latency['p99']}{late}",
        latency["p99_9"],
        latency["max"],
        "" if cpu is None else f"{cpu:.0f}",
        errors,
    ]
