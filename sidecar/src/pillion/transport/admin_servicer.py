"""AdminService: statistics, legal holds, receipts and upkeep; the rest comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import admin_service_pb2 as wire

from pillion.transport.convert import answers
from pillion.transport.convert.forgetting import hold_from_wire
from pillion.transport.convert.operations import operation_to_wire
from pillion.transport.convert.scalars import uuid_from_wire
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

    def GetErasureReceipt(  # noqa: N802
        self, request: wire.GetErasureReceiptRequest, call: Call
    ) -> wire.GetErasureReceiptResponse:
        """Return one receipt."""
        erasure_id = uuid_from_wire(request.id, "id")
        receipt = self._use_cases.receipts.get(call.partition, erasure_id)
        return wire.GetErasureReceiptResponse(receipt=answers.receipt_to_wire(receipt))

    def ListErasureReceipts(  # noqa: N802
        self, request: wire.ListErasureReceiptsRequest, call: Call
    ) -> wire.ListErasureReceiptsResponse:
        """Return receipts, the latest first."""
        receipts, token = self._use_cases.receipts.page(
            call.partition_or_none, page_size=request.page_size, page_token=request.page_token
        )
        return wire.ListErasureReceiptsResponse(
            receipts=[answers.receipt_to_wire(one) for one in receipts], next_page_token=token
        )

    def Reindex(self, request: wire.ReindexRequest, call: Call) -> wire.ReindexResponse:  # noqa: N802
        """Begin to build indexes anew, or to embed everything again."""
        operation = self._use_cases.reindexer.reindex(
            call.partition, call.deadline, re_embed=request.re_embed
        )
        return wire.ReindexResponse(operation=operation_to_wire(operation))
