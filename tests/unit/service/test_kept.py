"""What a full cache lets go of."""

import threading

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
    failed: list[BaseException] = []

    def fill(begin: int) -> None:
        try:
            for number in range(begin, begin + 3000):
                make_room(kept, 64)
                kept[number] = number
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=fill, args=(10_000 * one,)) for one in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failed == []
    assert len(kept) <= 64 + len(threads)
