"""A Forget in the background over a real server, killed in the middle."""

from __future__ import annotations

from pillion_client import AddMemory, Client, OperationState, Source, TimeWindow
from pillion_testing.servers import ServerProcess

MEMORIES = 3000
SAID = Source("user_statement")


def filled(client):
    for start in range(0, MEMORIES, 100):
        client.write(
            *(AddMemory("user:mira", f"memory {n}", source=SAID) for n in range(start, start + 100))
        )


def test_it_goes_on_after_a_kill_and_ends_right(tmp_path):
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}") as client:
        filled(client)
        window = TimeWindow(client.info().started_at, None)
        shown = client.forget(recorded=window)
        assert shown.report.memories == MEMORIES
        begun = client.forget(
            recorded=window, dry_run=False, background=True, preview_revision=shown.revision
        ).operation
        seen = begun
        while seen.done_units == 0:
            seen = client.get_operation(begun.name)
        assert seen.total_units == MEMORIES
    running.kill()
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}") as client:
        done = client.get_operation(begun.name)
        assert done.done_units < MEMORIES, "it had ended before the kill: make it longer"
        while done.state is OperationState.RUNNING:
            done = client.wait_operation(begun.name, deadline_seconds=5)
        assert done.state is OperationState.SUCCEEDED
        assert (done.forget.memories, done.forget.unpreviewed) == (MEMORIES, 0)
        assert list(client.list()) == []
    running.stop()
