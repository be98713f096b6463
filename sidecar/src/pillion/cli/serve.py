"""``pillion serve``: run the server until it is told to stop.

Exit codes: 0 after a drain, 1 after a second signal or when closing hangs, 2 when a setting is
wrong, 3 when the directory or the socket cannot be had.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from pillion import __version__
from pillion.config import (
    ENV_PREFIX,
    Settings,
    SettingsError,
    load_settings,
    misspelt_variables,
)
from pillion.logs import LogFormat, configure_logs

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from pillion.bootstrap import Running

EXIT_SETTINGS: Final = 2
EXIT_PLACE: Final = 3
_EXIT_FORCED: Final = 1
# How long closing may take once the drain is over: answers, the last commit, the store.
_CLOSING_SECONDS: Final = 10.0
# How long idle threads may take to notice that their pool was closed.
_LAST_THREADS_SECONDS: Final = 1.0
# Set in a file or by a variable: a flag for a table of options would need a syntax of its own.
_WITHOUT_FLAG: Final = frozenset(
    {"store_options", "embedder_options", "master_key_options", "profiles", "token_counters"}
)

_log = logging.getLogger("pillion.serve")


def _setting_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command one flag for each setting, with the setting's own description."""
    for name, field in reversed(Settings.model_fields.items()):
        if name in _WITHOUT_FLAG:
            continue
        default = "" if field.default is None else f"  [default: {field.default}]"
        text = f"{field.description}{default}"
        flag = f"--{name.replace('_', '-')}"
        if field.annotation is bool:
            option = click.option(flag, name, is_flag=True, default=None, help=text)
        else:
            option = click.option(flag, name, metavar="VALUE", help=text)
        command = option(command)
    return command


@click.command(
    epilog=f"Every setting is also a variable ({ENV_PREFIX}DIRECTORY=...) and a key of the "
    f"--config file. Tables have no flag: {ENV_PREFIX}STORE_OPTIONS__SIZE_BYTES_MAX=..., "
    "or [embedder_options] in the file."
)
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    envvar="PILLION_CONFIG",
    help="A TOML file with settings.",
)
@_setting_flags
def serve(file: Path | None, **flags: str | bool | None) -> None:
    """Run the server. Without any setting it keeps memories in ./.pillion."""
    try:
        settings = load_settings(
            {name: value for name, value in flags.items() if value is not None}, file
        )
    except SettingsError as error:
        _give_up(str(error), EXIT_SETTINGS)
    configure_logs(settings.log_level, settings.log_format)
    for sentence in misspelt_variables(os.environ):
        _log.warning(sentence)
    signals = StopSignals()
    running = _start(settings)
    try:
        _say_ready(running)
        signals.wait()
        _log.info("draining")
    finally:
        watchdog = _watchdog(settings.drain_seconds + _CLOSING_SECONDS)
        running.stop()
        watchdog.cancel()
    _log.info("stopped")
    stuck = _threads_at_work()
    if stuck:
        # A call that does not look at its deadline, in a plug-in for example. The interpreter
        # would wait for its thread, perhaps for ever; everything acknowledged is on disk already.
        _log.warning("calls that did not end are abandoned", extra={"fields": {"threads": stuck}})
        _leave(0)


def _watchdog(seconds: float) -> threading.Timer:
    """End the process after a while, unless cancelled: closing must not hang on a stuck call."""

    def bite() -> None:
        _log.error("closing took too long")
        _leave(_EXIT_FORCED)

    timer = threading.Timer(seconds, bite)
    timer.daemon = True
    timer.start()
    return timer


def _threads_at_work() -> list[str]:
    """Return the names of the threads that do not end, though all were told to.

    Whether a thread is a daemon says little: the interpreter also waits for daemons of a pool.
    """
    ends_at = time.monotonic() + _LAST_THREADS_SECONDS
    stuck = []
    for one in threading.enumerate():
        ours = one.name.startswith("pillion-") or not one.daemon
        if ours and one is not threading.current_thread():
            one.join(max(0.0, ends_at - time.monotonic()))
            if one.is_alive():
                stuck.append(one.name)
    return stuck


def _leave(code: int) -> NoReturn:
    """End the process without waiting for anything but its own output."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def _start(settings: Settings) -> Running:
    # Loading gRPC and the embedder takes a while, and `serve --help` needs neither.
    from pillion_storage.api import StoreError

    from pillion.bootstrap import start
    from pillion.domain.errors import PillionError
    from pillion.transport.listener import ListenError

    try:
        return start(settings)
    except SettingsError as error:
        _give_up(str(error), EXIT_SETTINGS)
    except PillionError as error:
        _give_up(f"{error.reason}: {error.message}", EXIT_SETTINGS)
    except (StoreError, ListenError) as error:
        _give_up(str(error), EXIT_PLACE)


class StopSignals:
    """Waits for SIGTERM or SIGINT; a second one ends the process at once.

    Waiting reads a pipe that the interpreter's own handler writes to. A lock or an event would
    not do: a signal that arrives between the last bytecode and the blocking call goes unnoticed,
    and the server would never stop.
    """

    def __init__(self) -> None:
        self._told = False
        self._pipe, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._told:
            # Everything acknowledged is on disk already.
            os._exit(_EXIT_FORCED)
        self._told = True

    def wait(self) -> None:
        """Return once told to stop, which may have been before the call."""
        while not self._told:
            os.read(self._pipe, 1)


def _say_ready(running: Running) -> None:
    settings = running.settings
    port = running.server.tcp_port
    facts: dict[str, object] = {
        "socket": str(settings.socket_path),
        "store": settings.store,
        "directory": str(settings.directory),
        "embedder": running.embedder_name,
    }
    if port is not None and settings.tcp is not None:
        facts["tcp"] = f"{settings.tcp.rpartition(':')[0] or '127.0.0.1'}:{port}"
    # It serves what it can when the store fails its first probe; the log says what is wrong.
    event = "ready" if running.server.is_ready else "listening, but its store is not ready"
    if settings.log_format is LogFormat.JSON:
        line = json.dumps({"event": event, "version": __version__, "pid": os.getpid(), **facts})
    else:
        pairs = "  ".join(f"{name} {value}" for name, value in facts.items())
        line = f"pillion {__version__} is {event}  {pairs}"
    print(line, flush=True)


def _give_up(message: str, code: int) -> NoReturn:
    print(f"pillion: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)


if __name__ == "__main__":
    serve()
