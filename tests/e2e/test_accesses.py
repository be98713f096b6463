"""Uses of memories across a stop and a kill of the server."""

from pillion_client import Client, Source
from pillion_testing.servers import ServerProcess


def test_a_kill_takes_the_uses_since_the_last_flush_and_nothing_else(tmp_path, request):
    started = []

    def start():
        server = ServerProcess(tmp_path / "d", "--embedder", "none")
        started.append(server)
        return server, Client(f"unix:{server.ready['socket']}")

    request.addfinalizer(lambda: [one.kill() for one in started if one.is_running])
    server, client = start()
    with client:
        one = client.add_memory(
            "user:mira", "Mira likes tea", source=Source("user_statement")
        ).only.id
        for _ in range(3):
            assert [hit.memory.id for hit in client.search("tea").hits] == [one]
        client.search("tea", without_access=True)
        before = client.get(one)
        assert before.use_count == 0
    server.stop()

    server, client = start()
    with client:
        used = client.get(one)
        assert (used.use_count, used.version) == (3, before.version)
        assert used.last_used_at > used.created_at
        client.search("tea")
        other = client.add_memory(
            "user:mira", "Mira likes cake", source=Source("user_statement")
        ).only.id
    server.kill()

    server, client = start()
    with client:
        assert client.get(one) == used
        assert {hit.memory.id for hit in client.search("tea").hits} == {one, other}
    server.stop()
