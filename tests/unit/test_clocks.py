"""The server's clock never goes back, and neither does what is current."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.bootstrap import start
from pillion.clocks import SteadyClock
from pillion.config import Settings
from pillion_client import Client, PutFact, Source, unconditional
from pillion_testing.fakes import DAY, SECOND, START
from pillion_testing.service import ram_service

HOUR_NS = 3_600 * 10**9


class Machine:
    """A wall clock that is set at will, and a monotonic one."""

    def __init__(self, wall_us=START):
        self.wall_ns = wall_us * 1000
        self.steady_ns = 7

    def go_on(self, nanoseconds):
        self.wall_ns += nanoseconds
        self.steady_ns += nanoseconds

    def clock(self):
        return SteadyClock(lambda: self.wall_ns, lambda: self.steady_ns)


@given(
    st.lists(
        st.tuples(
            st.integers(0, HOUR_NS),  # how long until the next look
            st.just(0) | st.integers(-24 * HOUR_NS, 24 * HOUR_NS),  # how the clock is set then
        ),
        max_size=20,
    )
)
def test_time_never_goes_back_and_never_stands_still(steps):
    machine = Machine()
    clock = machine.clock()
    before, looked_at = clock.now_us(), machine.steady_ns
    for passes, is_set in steps:
        machine.go_on(passes)
        machine.wall_ns += is_set
        now = clock.now_us()
        assert now >= machine.wall_ns // 1000
        half = (machine.steady_ns - looked_at) // 2000
        assert now >= before + half - 1 or (is_set < 0 and now >= before)
        before, looked_at = now, machine.steady_ns


def test_asking_often_does_not_slow_a_clock_that_was_set_back():
    machine = Machine()
    clock = machine.clock()
    first = clock.now_us()
    machine.wall_ns -= HOUR_NS
    for _ in range(10_000):
        machine.steady_ns += 300  # nanoseconds: less than the clock can tell
        last = clock.now_us()
    assert last - first == pytest.approx(1500, abs=5)


def test_a_clock_goes_on_from_what_was_recorded():
    machine = Machine()
    clock = machine.clock()
    clock.not_before(START + DAY)
    assert clock.now_us() == START + DAY
    machine.go_on(SECOND * 1000)
    assert clock.now_us() == START + DAY + SECOND // 2
    clock.not_before(START)  # long past
    assert clock.now_us() == START + DAY + SECOND // 2
    machine.go_on(3 * DAY * 1000)
    assert clock.now_us() == machine.wall_ns // 1000  # caught up


def test_a_statement_after_the_clock_was_set_back_is_the_current_one():
    machine = Machine()
    with closing(ram_service(clock=machine.clock())) as service:
        service.put("before")
        machine.wall_ns -= 24 * HOUR_NS
        machine.steady_ns += 5_000
        later = service.put("after")
        assert service.current().id == later.id


def test_a_restart_with_a_clock_set_back_dates_nothing_before_what_is_there(tmp_path, monkeypatch):
    source = Source("user_statement")

    def put(value):
        running = start(Settings(directory=tmp_path, embedder="none"))
        try:
            with Client(f"unix:{running.settings.socket_path}") as client:
                fact = PutFact("user:mira", "city", value, source, unconditional)
                client.write(fact)
                current = client.get_fact("user:mira", "city")
                assert current.value == value
                return current
        finally:
            running.stop()

    first = put("Porto")
    monkeypatch.setattr(
        "pillion.bootstrap.SteadyClock", lambda: SteadyClock(lambda: time.time_ns() - 24 * HOUR_NS)
    )
    second = put("Lisbon")
    assert second.valid_from >= first.valid_from
