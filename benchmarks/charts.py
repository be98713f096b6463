"""Charts as SVG: text in, text out, the same bytes for the same figures."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL_WIDTH: Final = 330
BAR_WIDTH: Final = 380
BAR_HEIGHT: Final = 15
GROUP_GAP: Final = 14
HEAD_HEIGHT: Final = 64
COLOURS: Final = ("#4269d0", "#efb118", "#3ca951")
PLOT_WIDTH: Final = 620
PLOT_HEIGHT: Final = 260
PLOT_LEFT: Final = 60


def grouped_bars(
    title: str,
    series: Sequence[str],
    groups: Mapping[str, Sequence[float | None]],
    *,
    full: float = 100.0,
) -> str:
    """Return a chart of horizontal bars.

    Args:
        title: What is shown, with its unit.
        series: The names of a group's bars, at most as many as there are colours.
        groups: The values of each group, in the order of ``series``; None: not known, no bar.
        full: The value of a bar of full length.
    """
    height = HEAD_HEIGHT + len(groups) * (len(series) * BAR_HEIGHT + GROUP_GAP)
    width = LABEL_WIDTH + BAR_WIDTH + 60
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
    head += f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    lines = [
        head,
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for place, (name, colour) in enumerate(zip(series, COLOURS, strict=False)):
        left = LABEL_WIDTH + place * 90
        lines.append(f'<rect x="{left}" y="34" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{left + 17}" y="44">{escape(name)}</text>')
    top = HEAD_HEIGHT
    for name, values in groups.items():
        middle = top + len(series) * BAR_HEIGHT / 2 + 4
        lines.append(
            f'<text x="{LABEL_WIDTH - 10}" y="{middle:g}" text-anchor="end">{escape(name)}</text>'
        )
        for place, (value, colour) in enumerate(zip(values, COLOURS, strict=False)):
            if value is None:
                continue
            bar_top, length = top + place * BAR_HEIGHT, BAR_WIDTH * value / full
            lines.append(
                f'<rect x="{LABEL_WIDTH}" y="{bar_top + 1}" width="{length:.1f}" '
                f'height="{BAR_HEIGHT - 2}" fill="{colour}"/>'
            )
            lines.append(
                f'<text x="{LABEL_WIDTH + length + 5:.1f}" y="{bar_top + 12}">{value:g}</text>'
            )
        top += len(series) * BAR_HEIGHT + GROUP_GAP
    return "\n".join([*lines, "</svg>\n"])


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points.

    Attributes:
        name: What it shows.
        points: (x, y), y above 0, in the order of x.
        colour: Which of the colours it has.
        is_dashed: Whether it is drawn with gaps.
    """

    name: str
    points: Sequence[tuple[float, float]]
    colour: int
    is_dashed: bool = False


def curves(title: str, x_name: str, lines: Sequence[Curve]) -> str:
    """Return a chart of lines over a linear x from 0 and a logarithmic y."""
    x_full = max(x for line in lines for x, _ in line.points)
    values = [y for line in lines for _, y in line.points]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high = max(high, low + 1)
    width, height = PLOT_LEFT + PLOT_WIDTH + 30, HEAD_HEIGHT + PLOT_HEIGHT + 45
    bottom = HEAD_HEIGHT + PLOT_HEIGHT

    def across(x: float) -> str:
        return f"{PLOT_LEFT + PLOT_WIDTH * x / x_full:.1f}"

    def up(y: float) -> str:
        return f"{bottom - PLOT_HEIGHT * (log10(y) - low) / (high - low):.1f}"

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
        ),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        y = up(10.0**power)
        parts.append(
            f'<line x1="{PLOT_LEFT}" y1="{y}" x2="{PLOT_LEFT + PLOT_WIDTH}" y2="{y}" '
            'stroke="#dddddd"/>'
        )
        parts.append(f'<text x="{PLOT_LEFT - 8}" y="{y}" text-anchor="end">{10.0**power:g}</text>')
    parts += [
        f'<text x="{across(x)}" y="{bottom + 18}" text-anchor="middle">{x:.0f}</text>'
        for x in sorted({x for line in lines for x, _ in line.points})
    ]
    parts.append(
        f'<text x="{PLOT_LEFT + PLOT_WIDTH / 2:g}" y="{bottom + 38}" text-anchor="middle">'
        f"{escape(x_name)}</text>"
    )
    for place, line in enumerate(lines):
        dash = ' stroke-dasharray="5 4"' if line.is_dashed else ""
        stroke = f'stroke="{COLOURS[line.colour]}" stroke-width="2"{dash}'
        points = " ".join(f"{across(x)},{up(y)}" for x, y in line.points)
        left = PLOT_LEFT + place * 150
        parts.append(f'<polyline points="{points}" fill="none" {stroke}/>')
        parts.append(f'<line x1="{left}" y1="40" x2="{left + 24}" y2="40" {stroke}/>')
        parts.append(f'<text x="{left + 30}" y="44">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>\n"])
