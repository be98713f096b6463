"""kill -9 in the middle of a Reindex into another vector space: the next start goes on with it.

Run as a program, this file does a Reindex by hand and kills itself before or after its nth commit.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pillion.domain.mutations import EmbeddingMode
from pillion.domain.operations import OperationState
from pillion_testing.fakes import FakeEmbedder
from pillion_testing.service import ACME, CountingIds, add, lmdb_service

TEXTS = [f"text {number}" for number in range(70)]
FORMER, NEW = FakeEmbedder(), FakeEmbedder("new", dimension=4)


def by_hand(directory, embedder, ids=None):
    """A sealed service whose background work was stopped."""
    return lmdb_service(directory, sealed=True, embedder=embedder, ids=ids).by_hand()


def run_to(directory, when, times):
    service = by_hand(directory, NEW)
    real = service.store.commit
    left = [times]

    def killed(partition, batch):
        left[0] -= 1
        if when == "after" or left[0]:
            outcome = real(partition, batch)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    service.store.commit = killed
    operation = service.use_cases.reindexer.reindex(ACME, service.patience, re_embed=True)
    while service.use_cases.operator.advance(ACME, operation.id):
        pass


# The commits of one: it begins; all is queued and the space is another; twice a batch of vectors
# and how far that is, and once more; what is in memory; the end.
@pytest.mark.parametrize("times", range(1, 10))
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_each_commit(tmp_path, when, times):
    store = tmp_path / "store"
    ids = CountingIds()
    service = by_hand(store, FORMER, ids)
    written = [service.one(add(text), mode=EmbeddingMode.INLINE).id for text in TEXTS]
    service.close()
    killed = subprocess.run([sys.executable, __file__, str(store), when, str(times)], check=False)
    assert killed.returncode == -signal.SIGKILL
    service = by_hand(store, NEW, ids)
    cases = service.use_cases
    found, _ = cases.operations.page(ACME, page_size=0, page_token="")
    assert len(found) == (0 if (when, times) == ("before", 1) else 1)
    # Some of it may be done already: a start goes on with it by itself.
    running = [one for one in found if one.state is OperationState.RUNNING]
    assert written[9] in service.found("text 9")
    for one in running:
        while cases.operator.advance(ACME, one.id):
            pass
    vectors = [service.vector(one) for one in written]
    embedder = NEW if found else FORMER
    assert vectors == [embedder.vector(text).tobytes() for text in TEXTS]
    assert all(
        one.state is OperationState.SUCCEEDED and one.done == len(TEXTS)
        for one in cases.operations.page(ACME, page_size=0, page_token="")[0]
    )
    service.close()


if __name__ == "__main__":
    run_to(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    sys.exit("was not killed")
