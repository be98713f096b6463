"""Forget and legal holds on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import types_pb2

from pillion.domain.commands import ForgetCommand, ForgetMode
from pillion.domain.errors import PillionError
from pillion.domain.forgetting import (
    ByEpisode,
    ByFact,
    ByFilter,
    ByIds,
    ByRecorded,
    ByRetentionClass,
    BySubject,
    ByTopic,
    Decayed,
    Expired,
)
from pillion.domain.memory import MemoryKind
from pillion.service.holds import HoldCommand
from pillion.transport.convert.answers import receipt_to_wire
from pillion.transport.convert.commands import body_digest
from pillion.transport.convert.queries import filter_of_message, window_from_wire
from pillion.transport.convert.scalars import (
    check_enum,
    enum_from_wire,
    fact_key_from_wire,
    required,
    required_subject,
    subject_from_wire,
    uuid_from_wire,
    uuids_from_wire,
)

if TYPE_CHECKING:
    from pillion_proto.memory.v1 import admin_service_pb2 as admin_wire

    from pillion.domain.commands import ForgetReport
    from pillion.domain.forgetting import Selector


def forget_from_wire(request: wire.ForgetRequest) -> ForgetCommand:
    """Return a Forget."""
    mode = enum_from_wire(ForgetMode, request.mode, "mode")
    check_enum(wire.ForgetRun.values(), request.run, "run")
    required(request, "selector", "selector")
    selector = _selector(request.selector)
    if request.preview_revision < 0:
        raise PillionError.of_field("preview_revision", "it must not be negative")
    unsaid = request.run == wire.FORGET_RUN_UNSPECIFIED
    dry_run = request.run == wire.FORGET_RUN_DRY_RUN
    return ForgetCommand(
        mode=mode,
        selector=selector,
        dry_run=not isinstance(selector, ByIds) if unsaid else dry_run,
        force=request.force,
        preview_revision=request.preview_revision,
        reason_code=request.reason_code,
        request_id=request.request_id,
        body_digest=body_digest(request),
    )


def _selector(selector: wire.ForgetSelector) -> Selector:  # noqa: PLR0911, PLR0912  (one a kind)
    match selector.WhichOneof("kind"):
        case "ids":
            ids = uuids_from_wire(selector.ids.ids, "selector.ids.ids")
            if not ids:
                raise PillionError.of_field("selector.ids.ids", "name at least one id")
            return ByIds(ids)
        case "subject":
            about = selector.subject
            return BySubject(
                required_subject(about, "subject", "selector.subject.subject"),
                frozenset(about.contexts) or None,
            )
        case "fact":
            return ByFact(fact_key_from_wire(selector.fact, "selector.fact"))
        case "filter":
            return ByFilter(filter_of_message(selector.filter, "selector.filter"))
        case "episode_id":
            return ByEpisode(uuid_from_wire(selector.episode_id, "selector.episode_id"))
        case "recorded":
            return ByRecorded(window_from_wire(selector, "recorded", "selector"))
        case "topic":
            topic = selector.topic
            subjects = frozenset(map(subject_from_wire, topic.subjects))
            return ByTopic(topic.text, topic.score_min, subjects)
        case "retention_class":
            return ByRetentionClass(selector.retention_class)
        case "expired":
            if not selector.expired:
                raise PillionError.of_field("selector.expired", "it is true or absent")
            return Expired()
        case "decayed":
            return Decayed(_thresholds(selector.decayed))
        case _:
            raise PillionError.of_field("selector", "name what to forget")


def _thresholds(decayed: wire.DecaySelector) -> dict[MemoryKind, float]:
    found: dict[MemoryKind, float] = {}
    for at, one in enumerate(decayed.thresholds):
        field = f"selector.decayed.thresholds[{at}]"
        kind = enum_from_wire(MemoryKind, one.kind, f"{field}.kind")
        if kind in found:
            raise PillionError.of_field(f"{field}.kind", "each kind has one threshold")
        found[kind] = one.vitality
    return found


def forget_to_wire(report: ForgetReport) -> wire.ForgetResponse:
    """Return the answer to a Forget."""
    return wire.ForgetResponse(report=report_to_wire(report), revision=report.revision)


def report_to_wire(report: ForgetReport) -> types_pb2.ForgetReport:
    """Return what a Forget did, or would do."""
    return types_pb2.ForgetReport(
        memories=report.memories,
        episodes=report.episodes,
        derived=report.derived,
        sample_ids=map(str, report.sample_ids),
        exempt_ids=map(str, report.exempt_ids),
        dry_run=report.dry_run,
        unpreviewed=report.unpreviewed,
        receipt=receipt_to_wire(report.receipt) if report.receipt is not None else None,
    )


def hold_from_wire(request: admin_wire.SetLegalHoldRequest) -> HoldCommand:
    """Return a legal hold to set or to lift."""
    target = request.WhichOneof("target")
    if target is None:
        raise PillionError.of_field("target", "name an id or a subject")
    by_id = target == "id"
    return HoldCommand(
        record_id=uuid_from_wire(request.id, "id") if by_id else None,
        subject=None if by_id else required_subject(request, "subject", "subject"),
        held=request.held,
        reason_code=request.reason_code,
    )
