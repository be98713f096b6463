"""Make the token counters that are installed, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion.domain.recall import DEFAULT_COUNTER
from pillion.token_counters.errors import CounterMisconfiguredError, CounterNotConfiguredError
from pillion.token_counters.estimate import EstimatingCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pillion.ports import TokenCounter

    Factory = Callable[[Mapping[str, object]], TokenCounter]

GROUP = "pillion.token_counters"


def create_counters(
    factories: Mapping[str, Factory], options: Mapping[str, Mapping[str, object]]
) -> dict[str, TokenCounter]:
    """Return the counters; one that lacks options that it needs is left out.

    The default counter is always there: a Recall that names none must work.

    Args:
        factories: What makes each, by its name.
        options: What an operator chose, by the same names.

    Raises:
        CounterMisconfiguredError: Options are of a counter that is not there, or are wrong, or a
            factory makes no counter.
    """
    unknown = sorted(set(options) - set(factories))
    if unknown:
        known = ", ".join(sorted(factories)) or "none"
        raise CounterMisconfiguredError(f"none is called '{unknown[0]}'; known: {known}")
    made: dict[str, TokenCounter] = {DEFAULT_COUNTER: EstimatingCounter()}
    for name, create in factories.items():
        try:
            counter = create(options.get(name, {}))
        except CounterNotConfiguredError as error:
            if name in options:
                raise CounterMisconfiguredError(f"{name}: {error}") from None
        except CounterMisconfiguredError as error:
            raise CounterMisconfiguredError(f"{name}: {error}") from None
        else:
            made[name] = _checked(name, counter)
    return made


def _checked(name: str, counter: TokenCounter) -> TokenCounter:
    """Refuse at start-up what would otherwise fail at the first Recall."""
    estimates = getattr(counter, "estimates", None)
    if not isinstance(estimates, bool) or not callable(getattr(counter, "count", None)):
        raise CounterMisconfiguredError(f"{name}: it makes no counter (estimates, count)")
    return counter
