"""Where a server listens, and how a channel to it is set up."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pillion_client.limits import MESSAGE_BYTES_MAX, SOCKET_PATH_BYTES_MAX

TARGET_VARIABLE: Final = "PILLION_TARGET"
TARGET_DEFAULT: Final = "unix:.pillion/pillion.sock"
_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS to a server: PEM bytes. Without roots: those of the system.

    Attributes:
        root_certificates: The authorities to trust.
        private_key: Of the client, for mutual TLS; comes with ``certificate_chain``.
        certificate_chain: Of the client, for mutual TLS.
        server_name: The name that the server's certificate must have; None: that of the target.
    """

    root_certificates: bytes | None = None
    private_key: bytes | None = None
    certificate_chain: bytes | None = None
    server_name: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A server's address, checked.

    Attributes:
        address: For gRPC: ``unix:/absolute/path`` or ``host:port``.
        is_local: Nothing that is sent there leaves the machine.
    """

    address: str
    is_local: bool

    @property
    def is_socket(self) -> bool:
        """True for a Unix socket."""
        return self.address.startswith("unix:")

    def __str__(self) -> str:
        return self.address


def parse_target(text: str | None = None) -> Target:
    """Read ``unix:///path``, ``unix:path`` or ``host:port``.

    None: the environment's PILLION_TARGET, else the socket of a server that was started in the
    current directory. A relative path is resolved against the current directory.

    Raises:
        ValueError: It is none of these, or the socket's path is longer than the system allows.
    """
    text = text or os.environ.get(TARGET_VARIABLE) or TARGET_DEFAULT
    if text.startswith("unix:"):
        return _socket(text)
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX):
        message = f'{text!r} is not a target: write "unix:///path/to/socket" or "host:port"'
        raise ValueError(message)
    return Target(text, is_local=_is_loopback(host))


def _socket(text: str) -> Target:
    path = text.removeprefix("unix://") if text.startswith("unix://") else text[len("unix:") :]
    if not path or (text.startswith("unix://") and not path.startswith("/")):
        message = f'{text!r} names no socket: write "unix:///absolute/path" or "unix:relative/path"'
        raise ValueError(message)
    absolute = Path(path).absolute()
    size = len(os.fsencode(absolute))
    if size > SOCKET_PATH_BYTES_MAX:
        message = (
            f"the socket's path takes {size} bytes and the system allows {SOCKET_PATH_BYTES_MAX}: "
            f"put the socket into a directory with a shorter path than {absolute.parent}"
        )
        raise ValueError(message)
    return Target(f"unix:{absolute}", is_local=True)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def channel_options(target: Target, tls: Tls | None) -> list[tuple[str, str | int]]:
    """Return gRPC's options for a channel to the target."""
    options: list[tuple[str, str | int]] = [
        ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        # Retries are ours (see _retry): gRPC's own would multiply with them.
        ("grpc.enable_retries", 0),
        # A sidecar restarts in well under a second: look for it again soon.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    if target.is_socket:
        # Else the socket's path travels as the authority, which stricter servers refuse.
        options.append(("grpc.default_authority", "localhost"))
    if tls is not None and tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    return options


def call_metadata(
    target: Target, tls: Tls | None, token: str | None
) -> tuple[tuple[str, str], ...]:
    """Return the metadata of every call.

    Raises:
        ValueError: The token could not be sent as a header, or would cross a network in clear.
    """
    if token is None:
        return ()
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        message = "the token must be printable ASCII without spaces around it"
        raise ValueError(message)
    if tls is None and not target.is_local:
        message = f"the token would travel to {target} in clear: pass tls=Tls(...)"
        raise ValueError(message)
    return (("authorization", f"Bearer {token}"),)
