"""The ranking profiles that an operator named, and the one that is always there."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError
from pillion.domain.queries import PLAIN_RANKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pillion.domain.queries import RankingProfile

DEFAULT_NAME: Final = "default"


class Profiles:
    """Profiles by name. Immutable. ``default`` is built in, and may be configured otherwise."""

    def __init__(self, configured: Mapping[str, RankingProfile] | None = None) -> None:
        named = {DEFAULT_NAME: PLAIN_RANKING} | dict(configured or {})
        self._named: Final = MappingProxyType(named)
        self.default: Final = named[DEFAULT_NAME]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name, sorted."""
        return tuple(sorted(self._named))

    def named(self, name: str) -> RankingProfile:
        """Return a profile by its name; "" is the default.

        Raises:
            PillionError: INVALID_FIELD on ``ranking.name``, with the names that there are.
        """
        found = self._named.get(name or DEFAULT_NAME)
        if found is None:
            raise PillionError.of_field(
                "ranking.name",
                f"no profile has this name; there are: {', '.join(self.names)}",
            )
        return found


BUILT_IN: Final = Profiles()
