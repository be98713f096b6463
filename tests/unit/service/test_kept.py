"""What a full cache lets go of."""

from concurrent.futures import ThreadPoolExecutor

from pillion.service.kept import make_room


def test_the_oldest_leave_and_most_stay():
    kept = {number: str(number) for number in range(80)}
    make_room(kept, 80)
    assert list(kept) == list(range(11, 80))
    make_room(kept, 80)
    assert len(kept) == 69


def test_a_cache_that_keeps_nothing_stays_empty():
    kept: dict[int, int] = {}
    make_room(kept, 0)
    assert kept == {}


def test_threads_that_fill_one_cache_never_disturb_each_other():
    kept: dict[int, int] = {}
    threads = 4

    def fill(begin: int) -> None:
        for number in range(begin, begin + 3000):
            make_room(kept, 64)
            kept[number] = number

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, 10_000 * threads, 10_000)))
    assert len(kept) <= 64 + threads
