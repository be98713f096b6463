"""When calls are due and what they are: drawn beforehand from a seed, so a round can be repeated.

Pure: nothing here reads a clock.
"""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Verb(StrEnum):
    """What a call does."""

    SEARCH = "search"  # by a given vector, k = 10
    GET = "get"  # the current row of a fact
    WRITE = "write"  # a fact is stated anew; durable when it is answered


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares of calls, and where they go.

    Attributes:
        name: What it is called on the command line.
        about: One line for people.
        shares: How much of all calls each verb is; they sum to 1.
        tenants: How many tenants are called.
        hot_share: How much of all calls go to the first tenant; the others share the rest.
    """

    name: str
    about: str
    shares: Mapping[Verb, float]
    tenants: int = 1
    hot_share: float = 1.0


MIXES: Final = {
    mix.name: mix
    for mix in (
        Mix("search", "Search alone", {Verb.SEARCH: 1.0}),
        Mix("get", "Get of a current fact alone", {Verb.GET: 1.0}),
        Mix("write", "durable writes alone", {Verb.WRITE: 1.0}),
        Mix(
            "read-heavy",
            "60 % Search, 30 % Get, 10 % durable writes",
            {Verb.SEARCH: 0.6, Verb.GET: 0.3, Verb.WRITE: 0.1},
        ),
        Mix(
            "write-heavy",
            "20 % Search, 10 % Get, 70 % durable writes",
            {Verb.SEARCH: 0.2, Verb.GET: 0.1, Verb.WRITE: 0.7},
        ),
        Mix(
            "hot-tenant",
            "the read-heavy mix, half of it by one tenant among a thousand",
            {Verb.SEARCH: 0.6, Verb.GET: 0.3, Verb.WRITE: 0.1},
            tenants=1000,
            hot_share=0.5,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Due:
    """One call.

    Attributes:
        at: Seconds after the round began.
        verb: What it does.
        tenant: To whom, from 0.
        number: Which of the prepared requests it is, by a remainder.
    """

    at: float
    verb: Verb
    tenant: int
    number: int


def poisson(mix: Mix, rate: float, seconds: float, seed: int) -> Iterator[Due]:
    """Yield calls whose gaps are exponential with mean ``1 / rate`` seconds.

    That is how calls of many independent callers arrive. A sum of such streams is one too, so
    ``n`` processes at ``rate / n`` each, with seeds of their own, make a load of ``rate``.

    Raises:
        ValueError: ``rate`` or ``seconds`` is not above 0.
    """
    if not (rate > 0 and seconds > 0):
        raise ValueError("a rate and a duration are above 0")
    draw = random.Random(seed)  # noqa: S311  (a load, not a secret)
    verbs = list(mix.shares)
    bounds = list(accumulate(mix.shares.values()))
    at = draw.expovariate(rate)
    while at < seconds:
        verb = verbs[min(bisect(bounds, draw.random() * bounds[-1]), len(verbs) - 1)]
        tenant = 0
        if mix.tenants > 1 and draw.random() >= mix.hot_share:
            tenant = draw.randrange(1, mix.tenants)
        yield Due(at, verb, tenant, draw.getrandbits(31))
        at += draw.expovariate(rate)
