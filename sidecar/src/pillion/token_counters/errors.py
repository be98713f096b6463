"""How a token counter says that it cannot be had."""

from __future__ import annotations


class CounterNotConfiguredError(Exception):
    """It needs options that nobody gave, so this server does without it."""


class CounterMisconfiguredError(Exception):
    """Its options are wrong, or what they name is not there. The message quotes no option."""
