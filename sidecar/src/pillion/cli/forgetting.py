"""From the options of ``pillion forget`` to one selector, as the client takes it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from pillion_client import FactKey, Filter, MemoryKind, TimeWindow, Topic, Whole

from pillion.cli.parameters import INSTANT, SPAN, SUBJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from pillion_client import Subject

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")

SCORE_MIN_DEFAULT: Final = 0.5
_KINDS: Final = [kind.value for kind in MemoryKind if kind is not MemoryKind.UNSPECIFIED]


class KindThresholdType(click.ParamType[tuple[str, float]]):
    """``kind=vitality``."""

    name = "kind=vitality"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, float]:
        """Return the kind and its threshold, or fail as click does."""
        if isinstance(value, tuple):
            return value
        kind, _, vitality = str(value).partition("=")
        try:
            threshold = float(vitality)
        except ValueError:
            threshold = -1.0
        if kind not in _KINDS or not 0.0 <= threshold <= 1.0:
            self.fail(f"write one of {', '.join(_KINDS)}, and 0 to 1: episodic=0.1", param, ctx)
        return kind, threshold


_OPTIONS: Final = (
    (("--subject",), {"type": SUBJECT, "help": "Everything about a subject."}),
    (
        ("--context", "contexts"),
        {"multiple": True, "help": "With --subject, --attribute or --label: only in these."},
    ),
    (
        ("--attribute",),
        {"help": "Every fact of this attribute; with --subject: this one fact of theirs."},
    ),
    (
        ("--label", "labels"),
        {"multiple": True, "help": "Everything that carries all of these labels."},
    ),
    (
        ("--episode", "episode_id"),
        {"help": "An episode, and what it states and nothing else does."},
    ),
    (("--last",), {"type": SPAN, "help": "Everything recorded lately: 1h, 30m, 2d."}),
    (("--recorded-from",), {"type": INSTANT, "help": "Everything recorded at or after this."}),
    (("--recorded-to",), {"type": INSTANT, "help": "Everything recorded before this."}),
    (("--topic",), {"help": "Everything about a topic, in words; with --subject: of theirs."}),
    (
        ("--score-min",),
        {
            "type": click.FloatRange(0, 1),
            "default": SCORE_MIN_DEFAULT,
            "show_default": True,
            "help": "With --topic: the least relevance that counts.",
        },
    ),
    (
        ("--retention-class",),
        {"help": "Everything of a class that was kept for as long as it is to be."},
    ),
    (("--expired",), {"is_flag": True, "help": "Everything past its expiry."}),
    (
        ("--decayed", "decayed"),
        {
            "type": KindThresholdType(),
            "multiple": True,
            "help": "Memories of a kind whose vitality is under this: episodic=0.1.",
        },
    ),
)


def selector_options(command: CommandT) -> CommandT:
    """Add the options that say what to forget."""
    for names, settings in reversed(_OPTIONS):
        command = click.option(*names, cls=click.Option, **settings)(command)
    return command


def taken_selector(ids: Sequence[str], member: object, given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `selector_options` out of what was given; return one selector.

    Raises:
        UsageError: None is named, or several, or what narrows nothing that is named.
    """
    taken: dict[str, Any] = {
        str(settings.get("name", names[-1].lstrip("-").replace("-", "_"))): None
        for names, settings in _OPTIONS
    }
    for name in taken:
        taken[name] = given.pop(name)
    taken["ids"] = tuple(ids)
    window = _window(taken)
    named = [
        name
        for name in ("ids", "episode_id", "topic", "retention_class", "expired", "decayed")
        if taken[name]
    ]
    named += ["recorded"] if window is not None else []
    by_filter = bool(taken["labels"]) or (taken["attribute"] is not None and not taken["subject"])
    narrows = named == ["topic"] or by_filter
    named += ["filter"] if by_filter else []
    named += ["subject"] if taken["subject"] is not None and not narrows else []
    if len(named) != 1:
        message = (
            "say what to forget by one of: ids, --subject, --attribute, --label, --episode, --last "
            "(or --recorded-from, --recorded-to), --topic, --retention-class, --expired, --decayed"
        )
        raise click.UsageError(message)
    if taken["contexts"] and named[0] not in {"subject", "filter"}:
        message = "--context narrows a subject or labels: give --subject, --attribute or --label"
        raise click.UsageError(message)
    if taken["attribute"] is not None and named[0] not in {"subject", "filter"}:
        message = "--attribute stands alone, or with --subject or --label"
        raise click.UsageError(message)
    selector = _SELECTORS[named[0]](taken, window)
    if not isinstance(member, Whole):
        if "fact" not in selector:
            message = "--member narrows a fact: give --subject and --attribute too"
            raise click.UsageError(message)
        selector["fact"] = replace(selector["fact"], member=member)
    return selector


def _window(taken: dict[str, Any]) -> TimeWindow | None:
    last: timedelta | None = taken["last"]
    start, end = taken["recorded_from"], taken["recorded_to"]
    if last is not None:
        if start is not None or end is not None:
            message = "--last ends now: give it alone"
            raise click.UsageError(message)
        now = datetime.now(UTC)
        return TimeWindow(now - last, now)
    return TimeWindow(start, end) if start is not None or end is not None else None


def _by_subject(taken: dict[str, Any], _: TimeWindow | None) -> dict[str, Any]:
    subject: Subject = taken["subject"]
    contexts: tuple[str, ...] = taken["contexts"]
    if taken["attribute"] is None:
        return {"subject": subject, "contexts": contexts}
    if len(contexts) > 1:
        message = "one fact lives in one context: give --context once"
        raise click.UsageError(message)
    return {"fact": FactKey(subject, taken["attribute"], *contexts)}


def _by_filter(taken: dict[str, Any], _: TimeWindow | None) -> dict[str, Any]:
    contexts: tuple[str, ...] = taken["contexts"]
    return {
        "filter": Filter(
            subjects=(taken["subject"],) if taken["subject"] is not None else (),
            attributes=(taken["attribute"],) if taken["attribute"] is not None else (),
            labels_all=taken["labels"],
            contexts=contexts,
            all_contexts=not contexts,
        )
    }


def _by_topic(taken: dict[str, Any], _: TimeWindow | None) -> dict[str, Any]:
    subjects = (taken["subject"],) if taken["subject"] is not None else ()
    return {"topic": Topic(taken["topic"], taken["score_min"], subjects)}


_SELECTORS: Final[dict[str, Callable[[dict[str, Any], TimeWindow | None], dict[str, Any]]]] = {
    "ids": lambda taken, _: {"ids": taken["ids"]},
    "subject": _by_subject,
    "filter": _by_filter,
    "episode_id": lambda taken, _: {"episode_id": taken["episode_id"]},
    "recorded": lambda _, window: {"recorded": window},
    "topic": _by_topic,
    "retention_class": lambda taken, _: {"retention_class": taken["retention_class"]},
    "expired": lambda _, __: {"expired": True},
    "decayed": lambda taken, _: {"decayed_below": dict(taken["decayed"])},
}
