"""The client: reading, writing, the registry, forgetting, importing and a look at the server."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Self, Unpack

import grpc
from grpc_health.v1 import health_pb2
from pillion_proto.memory.v1 import admin_service_pb2 as admin
from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _failures, _from_wire, _methods, _requests, limits
from pillion_client import _to_wire as wire
from pillion_client._async.recalling import AsyncRecalling
from pillion_client._async.registry import AsyncRegistry
from pillion_client._async.tracing import AsyncTracing
from pillion_client._async.watching import AsyncWatching
from pillion_client._async.writing import AsyncWriting
from pillion_client._importing import ImportWindow
from pillion_client._runtime import asynchronous as runtime
from pillion_client.enums import EmbeddingMode, ForgetMode, MemoryKind
from pillion_client.errors import Internal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
    from datetime import datetime

    from pillion_client.models import FactKey, Partition, SubjectLike
    from pillion_client.mutations import ImportItem
    from pillion_client.options import CallOptions
    from pillion_client.results import (
        ConsolidateResult,
        ErasureReceipt,
        ForgetResult,
        ImportAck,
        Operation,
        ServerInfo,
        ServerStats,
    )
    from pillion_client.selection import Filter, TimeWindow, Topic


class AsyncClient(AsyncRecalling, AsyncRegistry, AsyncTracing, AsyncWatching, AsyncWriting):
    """A client for asyncio. One per event loop, shared by all its tasks."""

    @classmethod
    async def connect(
        cls,
        target: str | None = None,
        *,
        wait_seconds: float = 5.0,
        **arguments: Any,  # noqa: ANN401  (those of the class)
    ) -> Self:
        """Return a client that a server has answered; the arguments are those of the class.

        Raises:
            NoServer: None answered within ``wait_seconds``.
        """
        client = cls(target, **arguments)
        try:
            await client.wait_until_ready(wait_seconds)
        except BaseException:
            await client.close()
            raise
        return client

    async def info(self, **options: Unpack[CallOptions]) -> ServerInfo:
        """Return what the server is, what it can do and which limits hold."""
        request = service.GetServerInfoRequest()
        return _from_wire.server_info(await self._call(_methods.GET_SERVER_INFO, request, options))

    async def health(self, service_name: str = "", **options: Unpack[CallOptions]) -> bool:
        """Return whether the server takes calls: its store answers and it is not draining."""
        request = health_pb2.HealthCheckRequest(service=service_name)
        response = await self._call(_methods.CHECK_HEALTH, request, options)
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)

    async def stats(
        self, *, every_partition: bool = False, **options: Unpack[CallOptions]
    ) -> ServerStats:
        """Return how much is stored and what lags, for the partition or for all of them."""
        where = None if every_partition else self._where(options)
        request = admin.GetStatsRequest(partition=wire.partition(where))
        response = await self._admin_transport.call(
            _methods.GET_STATS, request, options.get("deadline_seconds")
        )
        return _from_wire.server_stats(response)

    async def erasure_receipt(
        self, receipt_id: str, **options: Unpack[CallOptions]
    ) -> ErasureReceipt:
        """Return one receipt of an erasure in the partition.

        Raises:
            NotFound: There is none, or the erasure is not proved yet.
        """
        where = wire.partition(self._where(options))
        request = admin.GetErasureReceiptRequest(id=receipt_id, partition=where)
        response = await self._admin_transport.call(
            _methods.GET_ERASURE_RECEIPT, request, options.get("deadline_seconds")
        )
        return _from_wire.receipt(response.receipt)

    async def erasure_receipts(
        self,
        *,
        every_partition: bool = False,
        page_size: int = 0,
        page_token: str = "",
        **options: Unpack[CallOptions],
    ) -> tuple[tuple[ErasureReceipt, ...], str]:
        """Return receipts of erasures, the latest first, and the next page's token, if any."""
        where = None if every_partition else self._where(options)
        request = admin.ListErasureReceiptsRequest(
            partition=wire.partition(where), page_size=page_size, page_token=page_token
        )
        response = await self._admin_transport.call(
            _methods.LIST_ERASURE_RECEIPTS, request, options.get("deadline_seconds")
        )
        found = tuple(_from_wire.receipt(one) for one in response.receipts)
        return found, response.next_page_token

    async def reindex(self, *, re_embed: bool = False, **options: Unpack[CallOptions]) -> Operation:
        """Begin to build a partition's indexes anew; ``re_embed``: every vector too.

        Raises:
            AlreadyRunning: Another Reindex is at work in the partition.
            FailedPrecondition: EMBEDDER_MISMATCH: clients send the partition's vectors, or the
                server makes none.
        """
        request = admin.ReindexRequest(
            partition=wire.partition(self._where(options)), re_embed=re_embed
        )
        response = await self._admin_transport.call(
            _methods.REINDEX, request, options.get("deadline_seconds")
        )
        return _from_wire.operation(response.operation)

    async def forget(
        self,
        *,
        ids: Sequence[str] | None = None,
        subject: SubjectLike | None = None,
        contexts: Sequence[str] = (),
        fact: FactKey | None = None,
        filter: Filter | None = None,  # noqa: A002  (the contract's name)
        episode_id: str | None = None,
        recorded: TimeWindow | None = None,
        topic: Topic | None = None,
        retention_class: str | None = None,
        expired: bool = False,
        decayed_below: dict[MemoryKind | str, float] | None = None,
        mode: ForgetMode | str = ForgetMode.EXPIRE,
        dry_run: bool | None = None,
        force: bool = False,
        preview_revision: int = 0,
        background: bool = False,
        reason_code: str = "",
        request_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ForgetResult:
        """Take memories out of recall, retract or erase them: by exactly one selector.

        Args:
            ids: Memories and episodes by id.
            subject: Everything about a subject, in every context or in ``contexts``.
            contexts: Narrows ``subject``.
            fact: Everything of one fact key.
            filter: Everything that it admits.
            episode_id: Everything that came from an episode.
            recorded: Everything recorded within a window, for example the last hour.
            topic: Everything about a topic.
            retention_class: Everything of a class that is past its time.
            expired: Everything past its expires_at.
            decayed_below: By kind, everything whose vitality is under a threshold.
            mode: "expire" (out of recall, in history), "retract" or "erase".
            dry_run: None: a dry run for everything but ids, as the contract has it.
            force: The selector may match everything.
            preview_revision: ``revision`` of the dry run that this was decided by: the report then
                says how much of it that did not show.
            background: Answer at once with an operation.
            reason_code: Why, for the audit log: a code, never content.
            request_id: 1 to 64 bytes; None: a new UUID.
            **options: Where and how long to wait.
        """
        request = service.ForgetRequest(
            partition=wire.partition(self._where(options)),
            request_id=request_id or str(uuid.uuid4()),
            selector=_requests.forget_selector(
                ids=ids,
                subject=subject,
                contexts=contexts,
                fact=fact,
                filter=filter,
                episode_id=episode_id,
                recorded=recorded,
                topic=topic,
                retention_class=retention_class,
                expired=expired,
                decayed_below=decayed_below,
            ),
            mode=wire.enum_number(ForgetMode, mode),
            run=_requests.forget_run(dry_run),
            force=force,
            preview_revision=preview_revision,
            background=background,
            reason_code=reason_code,
        )
        return _from_wire.forget_result(await self._call(_methods.FORGET, request, options))

    async def set_legal_hold(
        self,
        held: bool,
        *,
        record_id: str | None = None,
        subject: SubjectLike | None = None,
        reason_code: str,
        **options: Unpack[CallOptions],
    ) -> int:
        """Hold a memory or an episode, or everything about a subject; or lift that again.

        What is held is neither forgotten nor erased. Needs the role ADMIN.

        Args:
            held: False: lift it.
            record_id: A memory or an episode; or
            subject: everything about one, now and later.
            reason_code: Why: a code, never content.
            **options: Where and how long to wait.

        Returns:
            How many records are under this hold now.

        Raises:
            NotFound: There is no such record.
        """
        if (record_id is None) == (subject is None):
            message = "name a record or a subject"
            raise ValueError(message)
        request = admin.SetLegalHoldRequest(
            partition=wire.partition(self._where(options)),
            id=record_id,
            subject=wire.subject(subject) if subject is not None else None,
            held=held,
            reason_code=reason_code,
        )
        response = await self._admin_transport.call(
            _methods.SET_LEGAL_HOLD, request, options.get("deadline_seconds")
        )
        return response.held

    async def consolidate(
        self,
        subject: SubjectLike | None = None,
        *,
        context: str = "",
        before: datetime | None = None,
        summarizer: str = "",
        cluster_size_min: int = 0,
        dry_run: bool = False,
        background: bool = False,
        request_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ConsolidateResult:
        """State the lasting facts of a subject's old episodic memories.

        Args:
            subject: About whom; None: every subject, in the background.
            context: In which context; "": the main one.
            before: Only memories whose valid_from is before this; None: 7 days ago.
            summarizer: By plug-in name; "": "extractive".
            cluster_size_min: The fewest memories that make a cluster, 2 to 100; 0: 3.
            dry_run: Report what would happen and change nothing.
            background: Answer at once with an operation.
            request_id: 1 to 64 bytes; None: a new UUID.
            **options: Where and how long to wait.
        """
        request = service.ConsolidateRequest(
            partition=wire.partition(self._where(options)),
            request_id=request_id or str(uuid.uuid4()),
            subject=None if subject is None else wire.subject(subject),
            context=context,
            before=wire.optional_instant(before),
            summarizer=summarizer,
            cluster_size_min=cluster_size_min,
            dry_run=dry_run,
            background=background,
        )
        response = await self._call(_methods.CONSOLIDATE, request, options)
        return _from_wire.consolidate_result(response)

    async def import_(
        self,
        items: AsyncIterable[ImportItem] | Iterable[ImportItem],
        *,
        embedding: EmbeddingMode | str = EmbeddingMode.UNSPECIFIED,
        batch_items_max: int = limits.IMPORT_BATCH_ITEMS_MAX,
        unacknowledged_max: int = limits.IMPORT_UNACKNOWLEDGED_MAX,
        partition: Partition | None = None,
        deadline_seconds: float | None = None,
    ) -> AsyncGenerator[ImportAck, None]:
        """Send items in bulk; yield an acknowledgement for each batch once it is on disk.

        At most ``unacknowledged_max`` batches are on their way, so a slow server slows the
        items down. Give items ids: then running the same import again finds them there.
        Stop by closing the iterator; what was acknowledged stays.

        Args:
            items: What to import, taken one by one as the server keeps up.
            embedding: When vectors must be there.
            batch_items_max: Items of one batch, 1 to 100; the server may ask for fewer.
            unacknowledged_max: Batches on their way.
            partition: Where; None: the client's own.
            deadline_seconds: For the whole import; None: none.

        Raises:
            ValueError: An item cannot be sent.
            PillionError: The stream failed. What was not acknowledged may or may not be there.
        """
        window = ImportWindow(items_max=batch_items_max, unacknowledged_max=unacknowledged_max)
        start = service.ImportStart(
            partition=wire.partition(partition or self._partition),
            embedding_mode=wire.enum_number(EmbeddingMode, embedding),
        )
        stream = self._transport.open_import(deadline_seconds)
        try:
            await stream.write(service.ImportRequest(start=start).SerializeToString())
            async for item in runtime.iterate(items):
                window.add(_requests.mutation(item))
                async for ack in self._exchange(stream, window):
                    yield ack
            window.end()
            async for ack in self._exchange(stream, window):
                yield ack
            await stream.finish_writing()
            while not window.is_idle:
                async for ack in self._receive(stream, window):
                    yield ack
            async for ack in self._receive(stream, window):  # the stream's end, good or bad
                yield ack
        finally:
            await stream.cancel()

    async def _exchange(
        self, stream: runtime.Duplex, window: ImportWindow
    ) -> AsyncIterator[ImportAck]:
        """Send the batches that are complete, reading whenever the window is full."""
        while window.has_batch:
            if not window.is_full:
                await stream.write(window.take().SerializeToString())
                continue
            async for ack in self._receive(stream, window):
                yield ack

    async def _receive(
        self, stream: runtime.Duplex, window: ImportWindow
    ) -> AsyncIterator[ImportAck]:
        """Take one message of the server: yield an acknowledgement, or wait as it asks."""
        try:
            message = await stream.read(service.ImportResponse)
        except grpc.RpcError as error:
            raise _failures.from_rpc_error(error, self.target) from error
        if message is None:
            if not window.is_idle:
                text = "the server ended the import without acknowledging every batch"
                raise Internal(text)
        elif message.HasField("ack"):
            yield window.acknowledge(message.ack)
        elif message.HasField("backoff"):
            if message.backoff.batch_size:
                window.shrink(message.backoff.batch_size)
            await runtime.sleep(_from_wire.span(message.backoff.wait).total_seconds())
