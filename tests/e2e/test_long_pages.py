"""Records that together outgrow a message are listed page by page all the same."""

import pytest
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import SECONDS, ServerProcess, note

TEXT = "x" * 30_000
WRITES, IN_EACH = 6, 100


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = ServerProcess(tmp_path_factory.mktemp("server") / "d", "--embedder", "none")
    for _ in range(WRITES):
        request = wire.WriteRequest(mutations=[note(TEXT)] * IN_EACH)
        running.stub.Write(request, timeout=SECONDS)
    yield running
    running.stop()


def test_a_listing_of_more_than_a_message_ends_its_pages_early(server):
    ids, token, pages = set(), "", 0
    while token or not pages:
        request = wire.ListRequest(page_size=1000, page_token=token)
        page = server.stub.List(request, timeout=SECONDS)
        ids |= {record.memory.id for record in page.records}
        token, pages = page.next_page_token, pages + 1
    assert len(ids) == WRITES * IN_EACH
    assert pages > 1


def test_a_search_for_more_than_a_message_says_so(server):
    with pytest.raises(Exception, match="ask for less") as caught:
        server.stub.Search(wire.SearchRequest(top_k=1000), timeout=SECONDS)
    assert caught.value.code().name == "INVALID_ARGUMENT"
