"""MemoryService: each served method converts, asks its use case, and converts back.

The generated base class is left out on purpose: `refuse_unserved` sees to it that every method of
the contract is here, served or refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.domain import limits
from pillion.domain.errors import PillionError
from pillion.transport.capabilities import PACKAGE, served_capabilities
from pillion.transport.convert import answers, commands, queries
from pillion.transport.convert.encoded import EncodedMemories, encode_get, encode_search
from pillion.transport.convert.forgetting import forget_from_wire, forget_to_wire
from pillion.transport.convert.graph import neighbors_from_wire, neighbors_to_wire
from pillion.transport.convert.instants import duration_to_wire, instant_to_wire
from pillion.transport.convert.operations import operation_to_wire
from pillion.transport.convert.recall import recall_from_wire, recall_to_wire
from pillion.transport.unserved import refuse_unserved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion.domain.mutations import EmbeddingMode
    from pillion.ports import Clock
    from pillion.service import UseCases
    from pillion.transport.call import Call
    from pillion.transport.convert.asked import AskedGet


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself beside its capabilities.

    ``request_ids_max`` is how many request ids of one partition the store remembers. The windows
    say for how long, and how long history is readable, in microseconds; None: for ever.
    """

    version: str
    store_kind: str
    default_deadline_ms: int
    request_ids_max: int
    request_id_window_us: int | None = None
    history_window_us: int | None = None


@refuse_unserved
class MemoryServicer:
    """Serves agents."""

    def __init__(self, use_cases: UseCases, facts: ServerFacts, clock: Clock) -> None:
        self._use_cases = use_cases
        self._facts = facts
        self._clock = clock
        self._started_at = clock.now_us()
        self._encoded = EncodedMemories()
        use_cases.memory_wiper.on_wipe(self._encoded.let_go)

    def GetServerInfo(  # noqa: N802
        self,
        _request: wire.GetServerInfoRequest,
        _call: Call,
    ) -> wire.GetServerInfoResponse:
        """Say what the server is."""
        identity = self._use_cases.statistics.embedder_identity()
        return wire.GetServerInfoResponse(
            server_version=self._facts.version,
            contract=PACKAGE,
            capabilities=served_capabilities(),
            limits=_limits(self._facts),
            embedder=answers.embedder_to_wire(identity) if identity else None,
            server_time=instant_to_wire(self._clock.now_us()),
            started_at=instant_to_wire(self._started_at),
            store=self._facts.store_kind,
        )

    def Write(self, request: wire.WriteRequest, call: Call) -> wire.WriteResponse:  # noqa: N802
        """Apply mutations: all or none."""
        command = commands.write_from_wire(request)
        answer = self._use_cases.writer.write(call.partition, command, call.deadline)
        return answers.write_to_wire(answer)

    def Search(  # noqa: N802
        self, request: wire.SearchRequest, call: Call
    ) -> wire.SearchResponse | bytes:
        """Return the best memories."""
        query = queries.search_from_wire(request, self._use_cases.profiles)
        partition, with_parts = call.partition, request.include_parts
        answer = self._use_cases.searcher.search(partition, query, call.deadline)
        if query.include_vectors or query.expansion is not None or answer.trace is not None:
            return answers.search_to_wire(answer, partition, include_parts=with_parts)
        return encode_search(answer, partition, self._encoded, include_parts=with_parts)

    def Get(self, request: AskedGet, call: Call) -> wire.GetResponse | bytes:  # noqa: N802
        """Return one record."""
        partition = call.partition
        target, read = request.converted()
        found, revision = self._use_cases.reader.get(
            partition,
            target,
            read,
            include_vector=request.include_vector,
            deadline=call.deadline,
        )
        if found.memory is None or found.vector:
            return answers.get_to_wire(found, revision, partition)
        return encode_get(found.memory, revision, partition, self._encoded)

    def BatchGet(self, request: wire.BatchGetRequest, call: Call) -> wire.BatchGetResponse:  # noqa: N802
        """Return several records, read at one revision."""
        commands.check_length(request.targets, "targets", 1, limits.BATCH_GET_MAX)
        targets = [
            queries.target_from_wire(target, f"targets[{at}]")
            for at, target in enumerate(request.targets)
        ]
        found, revision = self._use_cases.reader.batch_get(
            call.partition,
            targets,
            queries.read_from_wire(request),
            include_vectors=request.include_vectors,
            deadline=call.deadline,
        )
        return answers.batch_get_to_wire(found, revision, call.partition)

    def List(self, request: wire.ListRequest, call: Call) -> wire.ListResponse:  # noqa: N802
        """Return a page of memories or episodes."""
        page = self._use_cases.reader.list(
            call.partition,
            queries.filter_from_wire(request),
            queries.read_from_wire(request),
            page_size=queries.page_size_from_wire(request.page_size),
            page_token=request.page_token,
            episodes=request.episodes,
            deadline=call.deadline,
        )
        return answers.page_to_wire(page, call.partition)

    def History(self, request: wire.HistoryRequest, call: Call) -> wire.HistoryResponse:  # noqa: N802
        """Return a timeline on both clocks."""
        target = queries.history_target_from_wire(request)
        entries, next_token, revision = self._use_cases.reader.history(
            call.partition,
            fact=target.fact,
            memory_id=target.memory_id,
            read=queries.history_read_from_wire(request),
            page_size=queries.page_size_from_wire(request.page_size),
            page_token=request.page_token,
            deadline=call.deadline,
        )
        return answers.history_to_wire(entries, next_token, revision, call.partition)

    def Recall(self, request: wire.RecallRequest, call: Call) -> wire.RecallResponse:  # noqa: N802
        """Return what a model should see in one turn."""
        query = recall_from_wire(request, self._use_cases.profiles)
        return recall_to_wire(self._use_cases.recaller.recall(call.partition, query, call.deadline))

    def Neighbors(  # noqa: N802
        self, request: wire.NeighborsRequest, call: Call
    ) -> wire.NeighborsResponse:
        """Return whom a walk along the graph reaches."""
        query = neighbors_from_wire(request)
        answer = self._use_cases.walker.neighbors(call.partition, query, call.deadline)
        return neighbors_to_wire(answer)

    def Forget(self, request: wire.ForgetRequest, call: Call) -> wire.ForgetResponse:  # noqa: N802
        """Take memories out of recall, retract or erase them."""
        command = forget_from_wire(request)
        if request.background and not command.dry_run:
            begun = self._use_cases.background_forgetter.begin(
                call.partition, command, call.deadline
            )
            return wire.ForgetResponse(operation=operation_to_wire(begun))
        report = self._use_cases.forgetter.forget(call.partition, command, call.deadline)
        return forget_to_wire(report)

    def Consolidate(  # noqa: N802
        self, request: wire.ConsolidateRequest, call: Call
    ) -> wire.ConsolidateResponse:
        """State the lasting facts of one subject's old episodic memories."""
        command = commands.consolidate_from_wire(request)
        report = self._use_cases.consolidator.consolidate(call.partition, command, call.deadline)
        return answers.consolidate_to_wire(report, call.partition)

    def Watch(  # noqa: N802
        self, request: wire.WatchRequest, call: Call
    ) -> Iterator[wire.WatchResponse]:
        """Stream a partition's changes for as long as the caller listens.

        gRPC asks for the next message once it has sent the last, which is the back-pressure.
        """
        query = queries.watch_from_wire(request)
        events = self._use_cases.watcher.watch(
            call.partition, query, call.own_deadline(), call.cut_off
        )
        for event in events:
            yield answers.watch_to_wire(event, call.partition)

    def GetOperation(  # noqa: N802
        self, request: wire.GetOperationRequest, call: Call
    ) -> wire.GetOperationResponse:
        """Return long work."""
        found = self._use_cases.operations.get(call.partition, request.name)
        return wire.GetOperationResponse(operation=operation_to_wire(found))

    def ListOperations(  # noqa: N802
        self, request: wire.ListOperationsRequest, call: Call
    ) -> wire.ListOperationsResponse:
        """Return a page of long work, the latest first."""
        found, next_token = self._use_cases.operations.page(
            call.partition, page_size=request.page_size, page_token=request.page_token
        )
        return wire.ListOperationsResponse(
            operations=[operation_to_wire(one) for one in found], next_page_token=next_token
        )

    def WaitOperation(  # noqa: N802
        self, request: wire.WaitOperationRequest, call: Call
    ) -> wire.WaitOperationResponse:
        """Wait until long work has ended or the deadline is near."""
        found = self._use_cases.operations.wait(call.partition, request.name, call.deadline)
        return wire.WaitOperationResponse(operation=operation_to_wire(found))

    def CancelOperation(  # noqa: N802
        self, request: wire.CancelOperationRequest, call: Call
    ) -> wire.CancelOperationResponse:
        """Stop long work; what it has committed stays."""
        found = self._use_cases.operations.cancel(call.partition, request.name, call.deadline)
        return wire.CancelOperationResponse(operation=operation_to_wire(found))

    def Import(  # noqa: N802
        self, requests: Iterator[wire.ImportRequest], call: Call
    ) -> Iterator[wire.ImportResponse]:
        """Take batches until the caller has no more. A bad item never ends the stream.

        The next batch is read only after the last one's answer was handed to gRPC, which is the
        back-pressure; a wait that the use case asks for is passed on as an `ImportBackoff`.
        """
        mode = _start_import(requests, call)
        if mode is None:
            return
        last_sequence = 0
        for request in requests:
            if request.WhichOneof("kind") != "batch":
                raise PillionError.of_field("kind", "after the start only batches may follow")
            batch = request.batch
            if batch.sequence <= last_sequence:
                raise PillionError.of_field("batch.sequence", "it must be positive and increase")
            last_sequence = batch.sequence
            ack = self._use_cases.importer.import_batch(
                call.partition, commands.import_items_from_wire(batch), mode, call.step_deadline()
            )
            yield answers.import_ack_to_wire(batch.sequence, ack)
            if ack.wait_ms > 0:
                yield answers.backoff_to_wire(ack.wait_ms)


def _start_import(requests: Iterator[wire.ImportRequest], call: Call) -> EmbeddingMode | None:
    """Read the start of an import and enter its partition; None when the stream is empty."""
    first = next(requests, None)
    if first is None:
        return None
    if first.WhichOneof("kind") != "start":
        raise PillionError.of_field("kind", "an import begins with its start")
    start = first.start
    call.enter(start.partition if start.HasField("partition") else None)
    return commands.embedding_mode_from_wire(start.embedding_mode, "start.embedding_mode")


def _limits(facts: ServerFacts) -> wire.ServerLimits:
    """Return the limits. A window stays absent where nothing is forgotten by age."""
    made = wire.ServerLimits(
        message_bytes_max=limits.MESSAGE_BYTES_MAX,
        mutations_max=limits.MUTATIONS_MAX,
        text_bytes_max=limits.TEXT_BYTES_MAX,
        results_max=limits.RESULTS_MAX,
        page_size_max=limits.PAGE_SIZE_MAX,
        batch_get_max=limits.BATCH_GET_MAX,
        default_deadline=duration_to_wire(facts.default_deadline_ms * 1000),
        request_id_count=facts.request_ids_max,
        write_bytes_max=limits.WRITE_BYTES_MAX,
    )
    if facts.request_id_window_us is not None:
        made.request_id_window.CopyFrom(duration_to_wire(facts.request_id_window_us))
    if facts.history_window_us is not None:
        made.history_window.CopyFrom(duration_to_wire(facts.history_window_us))
    return made
