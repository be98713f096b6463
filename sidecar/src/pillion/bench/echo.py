"""The floor of an RPC: the server's own gRPC stack with a handler that returns fixed bytes.

Usage: ``python -m pillion.bench.echo SOCKET RESPONSE_FILE``. Any unary method answers with what
the file holds. Stops on SIGTERM.

An honest floor: the same server class, socket type, pool size and options as the sidecar's, no
interceptor, and a handler that neither parses nor builds anything.
"""

from __future__ import annotations

import signal
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import Final

import grpc

_WORKERS: Final = 4  # as many as the sidecar's readers
_MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
_HEADER_BYTES_MAX: Final = 16 * 1024


class Echo(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers every unary call with the same bytes; nothing is parsed or built."""

    def __init__(self, response: bytes) -> None:
        self._handler = grpc.unary_unary_rpc_method_handler(lambda _request, _context: response)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the one handler."""
        del handler_call_details
        return self._handler


def main() -> None:
    """Serve until told to stop."""
    socket, response = sys.argv[1], Path(sys.argv[2]).read_bytes()
    server = grpc.server(
        futures.ThreadPoolExecutor(_WORKERS),
        options=[
            ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX),
            ("grpc.max_send_message_length", _MESSAGE_BYTES_MAX),
            ("grpc.max_metadata_size", _HEADER_BYTES_MAX),
            ("grpc.so_reuseport", 0),
        ],
    )
    server.add_generic_rpc_handlers((Echo(response),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    stopped.wait()
    server.stop(0).wait()


if __name__ == "__main__":
    main()
