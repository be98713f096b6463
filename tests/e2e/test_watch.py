"""Watching a real server: replicas that end equal to the store, kills, other tenants, signals."""

import asyncio
import json
import signal
import subprocess
import sys
import threading

import pytest
from pillion_client import AsyncClient, Client, OutOfRange, Partition, Source, unconditional
from pillion_testing.servers import SECONDS, ServerProcess, environment

STATED = Source("user_statement")
LAST = "the last word"


@pytest.fixture
def server(tmp_path):
    made = ServerProcess(tmp_path / "d", "--watchers-max", "16")
    yield made
    if made.is_running:
        made.stop()


def client_of(server):
    # Clients of one process share connections, and one that failed lately is tried again later.
    return Client.connect(f"unix:{server.ready['socket']}", wait_seconds=SECONDS)


def stripped(memory):
    """What a replica keeps: without what is told by other records' changes."""
    return (memory.id, memory.version, memory.text, memory.valid_to, memory.superseded_by)


def follow(client, replica, after, **more):
    """Apply events to a replica until the last word; return the revisions of the events."""
    revisions = []
    for event in client.watch(after, **more):
        revisions.append(event.revision)
        for change in event.changes:
            replica[change.id] = stripped(change.record)
            if change.record.text == LAST:
                return revisions
    raise AssertionError("the watch ended")


def test_ten_watchers_follow_writers_and_end_with_what_is_there(server):
    replicas = [{} for _ in range(10)]
    failures = []

    def watch(replica):
        try:
            with client_of(server) as client:
                revisions = follow(client, replica, 0)
            assert revisions == sorted(revisions)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    def write(number):
        with client_of(server) as client:
            for turn in range(15):
                client.put_fact(
                    f"user:{number}", "city", f"city {turn}",
                    source=STATED, precondition=unconditional,
                )  # fmt: skip

    watchers = [threading.Thread(target=watch, args=(one,)) for one in replicas]
    writers = [threading.Thread(target=write, args=(one,)) for one in range(3)]
    for one in watchers + writers:
        one.start()
    for one in writers:
        one.join()
    with client_of(server) as client:
        client.add_memory("user:last", LAST, kind="episodic", source=STATED)
        for one in watchers:
            one.join(SECONDS)
        there = {
            memory.id: stripped(memory)
            for memory in client.list(all_contexts=True, validity="any", include_retracted=True)
        }
    assert failures == []
    assert len(there) > 3
    assert all(replica == there for replica in replicas)


def test_a_watch_goes_on_across_kill_9(server, tmp_path):
    replica, revisions, failures = {}, [], []
    begun = threading.Event()

    def watch():
        try:
            with client_of(server) as client:
                for event in client.watch(0):
                    begun.set()
                    if event.changes:
                        revisions.append(event.revision)
                    for change in event.changes:
                        replica[change.id] = change.record.text
                        if change.record.text == LAST:
                            return
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert begun.wait(SECONDS)
    running = server
    for round_ in range(3):
        with client_of(running) as client:
            for number in range(5):
                client.add_memory("user:mira", f"{round_}.{number}", kind="episodic", source=STATED)
        running.kill()
        running = ServerProcess(tmp_path / "d")
    try:
        with client_of(running) as client:
            client.add_memory("user:mira", LAST, kind="episodic", source=STATED)
            watcher.join(SECONDS)
            assert failures == []
            there = {memory.id: memory.text for memory in client.list()}
    finally:
        running.stop()
    assert replica == there
    assert revisions == sorted(set(revisions))  # nothing twice


def test_sigterm_ends_an_open_watch_at_once_and_nothing_is_cut_off(server):
    with client_of(server) as client:
        stream = client.watch(0, give_up_seconds=0)
        next(stream)
        assert server.stop() == 0
        with pytest.raises(Exception, match="no server"):
            list(stream)
    assert "cut off" not in server.log


def test_another_tenants_commits_never_show(server):
    ours, theirs = Partition("default", "ours"), Partition("default", "theirs")
    with client_of(server) as client:
        stream = client.watch(0, partition=ours, heartbeat_seconds=1)
        assert next(stream).revision == 0
        for number in range(3):
            client.add_memory(
                "user:mira", str(number), kind="episodic", source=STATED, partition=theirs
            )
        assert next(stream).revision == 0  # a heartbeat
        client.add_memory("user:mira", "ours", kind="episodic", source=STATED, partition=ours)
        while not (event := next(stream)).changes:
            assert event.revision == 0
        assert (event.revision, event.changes[0].record.text) == (1, "ours")
        stream.close()


def test_from_now_on_a_filter_and_a_deadline(server):
    with client_of(server) as client:
        client.add_memory("user:mira", "before", kind="episodic", source=STATED)
        stream = client.watch(subjects=["user:mira"], deadline_seconds=SECONDS)
        assert next(stream).revision >= 1  # vectors are committed too
        client.add_memory("user:tom", "no", kind="episodic", source=STATED)
        client.add_memory("user:mira", "after", kind="episodic", source=STATED)
        event = next(stream)
        assert [(one.kind, one.record.text) for one in event.changes] == [("created", "after")]
        stream.close()
        now = client.revision()
        assert all(not event.changes for event in client.watch(now, deadline_seconds=0.5))
        with pytest.raises(OutOfRange):
            next(client.watch(now + 100))


def test_asyncio_follows_and_lets_go(server):
    async def main():
        async with AsyncClient(f"unix:{server.ready['socket']}") as client:
            stream = client.watch(0)
            assert (await anext(stream)).revision == 0
            await client.add_memory("user:mira", "one", kind="episodic", source=STATED)
            event = await anext(stream)
            await stream.aclose()
            return event

    event = asyncio.run(main())
    assert event.changes[0].record.text == "one"


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_prints_lines_until_it_is_interrupted(server, as_json):
    command = subprocess.Popen(
        [
            *(sys.executable, "-m", "pillion.cli", "watch", "--after", "0"),
            *("--target", f"unix:{server.ready['socket']}"),
            *(("--json",) if as_json else ()),
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with client_of(server) as client:
        client.add_memory("user:mira", "some words", kind="episodic", source=STATED)
    watchdog = threading.Timer(SECONDS, command.kill)
    watchdog.start()
    while "some words" not in (line := command.stdout.readline()):
        assert line
    if as_json:
        (change,) = json.loads(line)["changes"]
        assert (change["kind"], change["record"]["text"]) == ("created", "some words")
    else:
        assert line.startswith("1\tcreated\t")
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=SECONDS)
    watchdog.cancel()
    assert (command.returncode, errors.strip()) == (130, "interrupted")
