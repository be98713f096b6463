"""AdminService: statistics and legal holds; the rest comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import admin_service_pb2 as wire

from pillion.transport.convert import answers
from pillion.transport.convert.forgetting import hold_from_wire
from pillion.transport.unserved import refuse_unserved

if TYPE_CHECKING:
    from pillion.service import UseCases
    from pillion.transport.call import Call


@refuse_unserved
class AdminServicer:
    """Serves operators."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases

    def GetStats(self, _request: wire.GetStatsRequest, call: Call) -> wire.GetStatsResponse:  # noqa: N802
        """Say how much is stored, how fast, and what lags."""
        statistics = self._use_cases.statistics.statistics(call.partition_or_none)
        return answers.statistics_to_wire(statistics)

    def SetLegalHold(  # noqa: N802
        self, request: wire.SetLegalHoldRequest, call: Call
    ) -> wire.SetLegalHoldResponse:
        """Set or lift a legal hold."""
        held = self._use_cases.holds.set(call.partition, hold_from_wire(request), call.deadline)
        return wire.SetLegalHoldResponse(held=held)
