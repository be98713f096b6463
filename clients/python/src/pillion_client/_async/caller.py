"""What every part of the client stands on: where to call, as whom, in which partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pillion_client._async.transport import AsyncTransport
from pillion_client._retry import RetryPolicy
from pillion_client._target import Tls, parse_target
from pillion_client.models import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from google.protobuf.message import Message

    from pillion_client._methods import Method, ResponseT


class AsyncCaller:
    """A connection to one server. Use it with ``async with``, or close it.

    Args:
        target: ``unix:///path``, ``unix:path`` or ``host:port``; None: the environment's
            PILLION_TARGET, else the socket of a server started in the current directory.
        token: A bearer token. It is never sent in clear over a network.
        tls: TLS, with the authorities to trust; None: plain, for Unix sockets and loopback.
        partition: (namespace, tenant) of calls that name none; None: the only partition that
            the credential reaches.
        default_deadline_seconds: Of calls that name none. It spans all attempts of a call.
        retry: How often a safe call is sent again.
        admin_target: Where the operator's service listens, for ``stats``; None: at the target.
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        token: str | None = None,
        tls: Tls | None = None,
        partition: Partition | tuple[str, str] | None = None,
        default_deadline_seconds: float = 10.0,
        retry: RetryPolicy | None = None,
        admin_target: str | None = None,
    ) -> None:
        if default_deadline_seconds <= 0:
            message = f"a deadline is positive, not {default_deadline_seconds}"
            raise ValueError(message)
        self._partition = Partition(*partition) if isinstance(partition, tuple) else partition

        def transport(to: str | None) -> AsyncTransport:
            return AsyncTransport(
                parse_target(to),
                token=token,
                tls=tls,
                default_deadline_seconds=default_deadline_seconds,
                retry=retry or RetryPolicy(),
            )

        self._transport = transport(target)
        self._admin_transport = self._transport if admin_target is None else transport(admin_target)

    @property
    def target(self) -> str:
        """The address that the client calls."""
        return self._transport.target.address

    async def wait_until_ready(self, seconds: float = 5.0) -> None:
        """Wait until a server answers.

        Raises:
            NoServer: None did within the time.
        """
        await self._transport.wait_until_ready(seconds)

    async def close(self) -> None:
        """Close the connection. Calls that are under way end as cancelled."""
        await self._transport.close()
        if self._admin_transport is not self._transport:
            await self._admin_transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _call(
        self, method: Method[ResponseT], request: Message, options: Mapping[str, Any]
    ) -> ResponseT:
        return await self._transport.call(method, request, options.get("deadline_seconds"))

    def _seconds(self, options: Mapping[str, Any]) -> float:
        """Return how long a call with these options may take."""
        return self._transport.seconds(options.get("deadline_seconds"))

    def _where(self, options: Mapping[str, Any]) -> Partition | None:
        chosen: Partition | None = options.get("partition", self._partition)
        return chosen
