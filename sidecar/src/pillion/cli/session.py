"""The options that every command takes, before or after its name, and the client they make."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from pillion_client import Client, RetryPolicy

from pillion.cli.exits import CREDENTIAL_HINT
from pillion.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")

_TOKEN_BYTES_MAX: Final = 16 * 1024
# A person waits: three attempts take under half a second when no server is there.
_RETRY: Final = RetryPolicy(attempts_max=3)


@dataclass(slots=True)
class Session:
    """What the shared options say, filled in while click reads them."""

    target: str | None = None
    token_file: Path | None = None
    namespace: str | None = None
    tenant: str | None = None
    json: bool = False

    @property
    def output(self) -> Output:
        """Where to print."""
        return Output(as_json=self.json)

    def client(self, *, target: str | None = None, tenant: str | None = None) -> Client:
        """Return a client of the chosen server and partition.

        Raises:
            UsageError: The target or the token is malformed.
        """
        chosen = tenant or self.tenant
        partition = None
        if chosen is not None or self.namespace is not None:
            partition = (self.namespace or "default", chosen or "default")
        try:
            return Client(
                target or self.target,
                token=self._token(),
                partition=partition,
                default_deadline_seconds=30.0,
                retry=_RETRY,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def _token(self) -> str | None:
        if self.token_file is None:
            return None
        try:
            with self.token_file.open(encoding="utf-8") as file:
                token = file.read(_TOKEN_BYTES_MAX).strip()
        except (OSError, UnicodeDecodeError) as error:
            message = f"the token file {self.token_file} cannot be read: {error}"
            raise click.UsageError(message) from error
        if not token or len(token.split()) > 1:
            message = f"{self.token_file} holds no single token: give {CREDENTIAL_HINT}"
            raise click.UsageError(message)
        return token


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep what was said; what was not said here leaves what was said before the command.

    What is empty was hardly meant, and must not stand for the default partition.
    """
    if value == "":
        message = "it is empty: leave the option out for the default"
        raise click.BadParameter(message, ctx=context, param=parameter)
    if value is not None and value is not False:
        setattr(context.ensure_object(Session), str(parameter.name), value)


_SHARED: Final = (
    (("--target",), {"help": "unix:///path, unix:path or host:port.  [env: PILLION_TARGET]"}),
    (
        ("--token-file",),
        {
            "type": click.Path(path_type=Path, dir_okay=False),
            "help": f"A file with {CREDENTIAL_HINT}.",
            "envvar": "PILLION_CLIENT_TOKEN_FILE",
        },
    ),
    (
        ("--namespace",),
        {"help": "The namespace of the partition.", "envvar": "PILLION_NAMESPACE"},
    ),
    (("--tenant",), {"help": "The tenant of the partition.", "envvar": "PILLION_TENANT"}),
    (("--json",), {"is_flag": True, "default": None, "help": "Print JSON on stdout."}),
)


def shared_options(
    *, of_group: bool = False, only: Collection[str] = ()
) -> Callable[[CommandT], CommandT]:
    """Add the shared options, or ``only`` some, to a command.

    The environment is read for the group only.
    """

    def decorate(command: CommandT) -> CommandT:
        for names, settings in reversed(_SHARED):
            if only and not set(names) & set(only):
                continue
            chosen = {"callback": _remember, "expose_value": False, **settings}
            if not of_group:
                chosen.pop("envvar", None)
            command = click.option(*names, **chosen)(command)  # type: ignore[arg-type]
        return command

    return decorate


pass_session = click.make_pass_decorator(Session)
