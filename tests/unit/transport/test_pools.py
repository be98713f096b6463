"""A pool knows what it has taken on, and gives places back however a call ends."""

import threading

import pytest
from pillion.transport.admission import BoundedPool, Pools
from pillion.transport.capabilities import Work

SECONDS = 20


@pytest.fixture
def pool():
    made = BoundedPool("test", threads=1, waiting_max=1)
    yield made
    made.shutdown(wait=True, cancel_futures=True)


def test_places_come_back_when_calls_end_fail_or_are_cancelled(pool):
    release = threading.Event()
    working = pool.submit(release.wait, SECONDS)
    assert not pool.is_full
    waiting = pool.submit(release.wait, SECONDS)
    assert pool.is_full
    waiting.cancel()
    assert not pool.is_full
    failing = pool.submit(lambda: 1 / 0)
    assert pool.is_full
    release.set()
    working.result(SECONDS)
    with pytest.raises(ZeroDivisionError):
        failing.result(SECONDS)
    pool.submit(int).result(SECONDS)
    pool.shutdown(wait=True)
    assert not pool.is_full


def test_a_pool_that_is_shut_down_counts_nothing(pool):
    pool.shutdown()
    for _ in range(5):
        with pytest.raises(RuntimeError):
            pool.submit(int)
    assert not pool.is_full


def test_no_stream_waits_for_a_thread():
    pools = Pools(reads=1, writes=1, streams=3, watchers=5)
    assert pools[Work.STREAM].taken_max == 3
    assert pools[Work.WATCH].taken_max == 5
    assert pools.taken_max == sum(pools[work].taken_max for work in Work)
    pools.close()
