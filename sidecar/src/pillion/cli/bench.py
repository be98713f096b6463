"""``pillion bench``: a load on a server of its own, floors beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from pillion.cli.exits import ExitCode
from pillion.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMNS = (
    "calls a second",
    "of",
    "answered",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "CPU µs a call",
    "errors",
)


def _rates(_: click.Context, __: click.Parameter, text: str | None) -> tuple[float, ...]:
    try:
        rates = tuple(float(one) for one in text.split(",")) if text else ()
    except ValueError:
        raise click.BadParameter("name numbers, such as 100,500,1000") from None
    if any(not 0 < one < float("inf") for one in rates):
        raise click.BadParameter("a rate is above 0")
    return rates


@click.command()
@click.option(
    "--mix", default="search", show_default=True, help="What is called; --list shows all."
)
@click.option("--list", "lists", is_flag=True, help="Show the mixes.")
@click.option(
    "--rates", callback=_rates, help="Calls a second to measure at. Absent: looks for the knee."
)
@click.option(
    "--bound",
    "bound_ms",
    type=click.FloatRange(0.1, 10_000),
    default=10.0,
    show_default=True,
    help="Milliseconds that the p99 may take at the knee.",
)
@click.option(
    "--memories",
    type=click.IntRange(10, 10_000_000),
    default=10_000,
    show_default=True,
    help="Memories with a vector of 384 dimensions.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.5, 3600),
    default=10.0,
    show_default=True,
    help="How long each rate is measured, after a warm-up of a fifth of it.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Client processes; the bench says when they are the bottleneck.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the schedule.")
@click.option(
    "--histograms",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write every histogram (HdrHistogram V2, base64) to this file, one a line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bench(
    *,
    mix: str,
    lists: bool,
    rates: Sequence[float],
    bound_ms: float,
    memories: int,
    seconds: float,
    processes: int,
    seed: int,
    histograms: Path | None,
    as_json: bool,
) -> int:
    """Measure latency under load, on a server started for it and removed at the end.

    Open loop: calls are due at random instants at a set rate, and are timed from when they were
    due, whatever became of those before. An echo RPC of the same sizes on the same gRPC stack is
    measured in turn. Needs the package's extra "bench".
    """
    output = Output(as_json=as_json)
    try:
        from pillion.bench.data import Data
        from pillion.bench.run import Run, Settings
        from pillion.bench.schedule import MIXES
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("hdrh"):
            raise
        raise click.ClickException(
            "install 'pillion[bench]': the bench needs HdrHistogram"
        ) from None
    if lists:
        return _list(output, {name: one.about for name, one in MIXES.items()})
    if mix not in MIXES:
        raise click.BadParameter(f"name one of {', '.join(MIXES)}", param_hint="--mix")
    settings = Settings(
        mix=mix,
        data=Data(memories=memories),
        rates=rates,
        bound_ms=bound_ms,
        seconds=seconds,
        warm_up=seconds / 5,
        processes=processes,
        seed=seed,
    )
    with _progress(output) as progress:
        task = progress.add_task("starting", total=None)
        run = Run(settings, lambda text: progress.update(task, description=text))
        run.measure()
    if histograms is not None:
        lines = (f"{name}\t{text}\n" for name, text in run.histograms())
        histograms.write_text("".join(lines), encoding="utf-8")
    found = run.as_dict()
    if as_json:
        output.document(found)
    else:
        _show(output, found)
    rounds = found["pillion"]["rounds"]
    return ExitCode.OK if all(not one["wrong"] for one in rounds) else ExitCode.REFUSED


def _list(output: Output, mixes: dict[str, str]) -> int:
    if output.as_json:
        output.document(mixes)
    else:
        output.table("", ("mix", "what is called"), list(mixes.items()))
    return ExitCode.OK


def _progress(output: Output) -> Progress:
    shown = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    plain = output.progress()
    return Progress(*shown, console=plain.console, disable=plain.disable, transient=True)


def _show(output: Output, found: dict[str, Any]) -> None:
    rows = []
    for name in ("pillion", "echo"):
        rows += [_row(name, one) for one in found[name]["rounds"]]
    rows.sort(key=lambda row: float(row[0].replace(",", "")))
    data = found["data"]
    tenants = "1 tenant" if data["tenants"] == 1 else f"{data['tenants']:,} tenants"
    title = f"{found['about']}; {data['memories']:,} memories, {tenants}"
    output.table(title, _COLUMNS, rows)
    for name in ("pillion", "echo"):
        knee = found[name]["knee"]
        if knee:
            output.line(
                f"{name}: {knee['offered']:,.0f} calls a second at a p99 within "
                f"{found['bound_ms']:g} ms"
            )
    if "throughput_ratio" in found:
        output.line(f"that is {found['throughput_ratio']:g} of the echo's")
    if "flush_ms" in found:
        output.line(f"one flush to this disk: p50 {found['flush_ms']['p50']:g} ms")
    if not all(
        one["of_the_server"] for name in ("pillion", "echo") for one in found[name]["rounds"]
    ):
        output.line("* the client was late itself: more --processes, or a machine with more cores")


def _row(name: str, one: dict[str, Any]) -> tuple[str, ...]:
    late = "" if one["of_the_server"] else " *"
    latency = one["latency_ms"]
    errors = ", ".join(f"{count} {code}" for code, count in sorted(one["errors"].items()))
    if one["wrong"]:
        errors = f"{one['wrong']} wrong answers " + errors
    return (
        f"{one['rate']:,.0f}",
        name,
        f"{one['answered_per_second']:,.0f}",
        f"{latency['p50']:.2f}",
        f"{latency['p99']:.2f}{late}",
        f"{latency['p99_9']:.2f}",
        f"{latency['max']:.2f}",
        f"{one['server_cpu_us_per_call'] or 0:.0f}",
        errors,
    )
