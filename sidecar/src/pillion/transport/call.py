"""One call on its way through the edge: who makes it, where, and how long it may take.

Servicers get a `Call` where generated code says ``context``, so none of them can reach into gRPC,
and none can name a partition that was not authorised: `partition` is what `enter` let through.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import Message

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import NAME_BYTES_MAX
from pillion.domain.scope import DEFAULT_NAME, Partition
from pillion.transport.deadline import CallDeadline

if TYPE_CHECKING:
    import grpc
    from pillion_proto.memory.v1 import types_pb2

    from pillion.transport.capabilities import Method
    from pillion.transport.identity import Identity

_DEFAULT_PARTITION: Final = Partition(DEFAULT_NAME, DEFAULT_NAME)


class Call:
    """What a servicer knows of a call beside the request."""

    __slots__ = ("_context", "_default_seconds", "_partition", "deadline", "identity")

    def __init__(
        self, identity: Identity, context: grpc.ServicerContext, default_seconds: float
    ) -> None:
        self.identity = identity
        self.deadline = CallDeadline(context, default_seconds)
        self._context = context
        self._default_seconds = default_seconds
        self._partition: Partition | None = None

    @property
    def partition(self) -> Partition:
        """The partition that the call was let into."""
        if self._partition is None:
            raise LookupError("the call entered no partition")
        return self._partition

    @property
    def partition_or_none(self) -> Partition | None:
        """The partition that the call was let into; None: the whole server, or none yet."""
        return self._partition

    def enter(self, wire: types_pb2.Partition | None) -> None:
        """Let the call into a partition, None being the credential's only one.

        Nothing is looked up: a partition out of reach is denied whether or not it exists.

        Raises:
            PillionError: PERMISSION_DENIED; INVALID_FIELD for a name that cannot be one, or
                when none is named and the credential reaches several.
        """
        if wire is None:
            partition = self.identity.only_partition or _DEFAULT_PARTITION
            if not self.identity.reaches(partition):
                raise PillionError.of_field("partition", "the credential reaches several; name one")
        else:
            partition = _named(wire.namespace or DEFAULT_NAME, wire.tenant or DEFAULT_NAME)
        if not self.identity.reaches(partition):
            raise PillionError(
                Reason.PERMISSION_DENIED, "the credential does not reach this partition"
            )
        self._partition = partition

    def step_deadline(self) -> CallDeadline:
        """Return the deadline of the next step of a stream, which as a whole may have none."""
        return CallDeadline(self._context, self._default_seconds)

    def own_deadline(self) -> CallDeadline:
        """Return the caller's own deadline, however long; a caller that brought none has none."""
        return CallDeadline(self._context, math.inf, math.inf)

    def cut_off(self) -> None:
        """End the call from another thread, its answer half sent or not."""
        self._context.cancel()


def authorise(identity: Identity, method: Method) -> None:
    """Refuse a caller without the role that a method asks for.

    Raises:
        PillionError: PERMISSION_DENIED.
    """
    if method.role is not None and method.role not in identity.roles:
        raise PillionError(
            Reason.PERMISSION_DENIED, f"the credential lacks the role {method.role.value}"
        )


def enter_of_request(call: Call, method: Method, request: Any) -> None:  # noqa: ANN401
    """Let a unary call into the partition that its request names, if requests of it name one."""
    if not hasattr(request, "partition"):
        return
    # Of a message that was taken apart already, an absent partition is None.
    named: types_pb2.Partition | None = request.partition
    if isinstance(request, Message) and not request.HasField("partition"):
        named = None
    if named is None and method.whole_server:
        if not call.identity.reaches_everything:
            raise PillionError(
                Reason.PERMISSION_DENIED, "the credential does not reach the whole server"
            )
        return
    call.enter(named)


@functools.lru_cache(maxsize=4096)
def _named(namespace: str, tenant: str) -> Partition:
    """Return the partition of these names: always the same object, which is quick to look up by.

    Raises:
        PillionError: INVALID_FIELD for a name that cannot be one.
    """
    _check_name(namespace, "partition.namespace")
    _check_name(tenant, "partition.tenant")
    return Partition(namespace, tenant)


def _check_name(name: str, field: str) -> None:
    if len(name.encode("utf-8", "replace")) > NAME_BYTES_MAX:
        raise PillionError.of_field(field, f"at most {NAME_BYTES_MAX} bytes of UTF-8 fit")
