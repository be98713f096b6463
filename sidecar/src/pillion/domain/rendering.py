"""The sentence that is embedded and searched for a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillion.domain.scope import FactKey
    from pillion.domain.values import Value


def render_fact(key: FactKey, value: Value) -> str:
    """Return a fact as a short sentence: ``mira passport deadline (work): 2026-07-15``."""
    attribute = key.attribute.replace("_", " ").replace(".", " ").strip()
    context = f" ({key.context})" if key.context else ""
    return f"{key.subject.id} {attribute}{context}: {value.render()}"
