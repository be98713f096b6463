"""Bar charts as SVG: text in, text out, the same bytes for the same figures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LABEL_WIDTH: Final = 330
BAR_WIDTH: Final = 380
BAR_HEIGHT: Final = 15
GROUP_GAP: Final = 14
HEAD_HEIGHT: Final = 64
COLOURS: Final = ("#4269d0", "#efb118", "#3ca951")


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
