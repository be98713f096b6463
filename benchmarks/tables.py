"""What sections of the page are made of."""

from __future__ import annotations


def table(header: list[str], rows: list[list[object]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def verdict(value: float, bound: float, *, at_least: bool = False) -> str:
    """Say whether a figure keeps its target."""
    kept = value >= bound if at_least else value <= bound
    word = "at least" if at_least else "at most"
    return f"{value:g} x ({'kept' if kept else 'NOT kept'}: {word} {bound:g})"
