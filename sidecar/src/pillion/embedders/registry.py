"""Choose an embedder by name. `auto` is the best one that works here without asking anybody."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from pillion.domain.embedding import EmbedderIdentity
from pillion.embedders import weights
from pillion.embedders.entry_points import PluginError, load_factory
from pillion.embedders.errors import EmbedderMisconfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pillion.ports import Embedder

GROUP = "pillion.embedders"
AUTO = "auto"

_log = logging.getLogger(__name__)


def create_embedder(name: str, options: Mapping[str, object]) -> Embedder:
    """The embedder `name` of group `pillion.embedders`, or the one that `auto` picks.

    Raises:
        EmbedderMisconfigured: Unknown or broken plug-in, wrong options, or options for `auto`,
            which cannot know whose they are.
    """
    if name == AUTO:
        if options:
            raise EmbedderMisconfigured("embedder 'auto' takes no options: name the embedder")
        name = _automatic()
    try:
        factory = load_factory(GROUP, name)
    except PluginError as error:
        raise EmbedderMisconfigured(str(error)) from error
    if not callable(factory):
        raise EmbedderMisconfigured(f"embedder '{name}': its entry point is not callable")
    embedder = factory(options)
    _check(name, embedder)
    return cast("Embedder", embedder)


def _automatic() -> str:
    if weights.installed_path() is not None:
        _log.info("embedder: e5 (its weights are installed)")
        return "e5"
    _log.warning(
        "embedder: hashing, which matches spelling and not meaning; for meaning: %s",
        weights.INSTALL_HINT,
    )
    return "hashing"


def _check(name: str, embedder: object) -> None:
    """Refuse at start-up what would otherwise fail at the first write."""
    identity = getattr(embedder, "identity", None)
    if not isinstance(identity, EmbedderIdentity) or not identity.name or identity.dimension < 1:
        raise EmbedderMisconfigured(f"embedder '{name}' has no usable identity")
    for method in ("embed_passages", "embed_queries", "close"):
        if not callable(getattr(embedder, method, None)):
            raise EmbedderMisconfigured(f"embedder '{name}' has no method {method}")
