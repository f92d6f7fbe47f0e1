"""The window of jobs in flight, with jobs that end when a test says so."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest

from pytest_osmosis.rollouts.engine import Engine, EngineClosed

PATIENCE_S = 30.0


class Jobs:
    """Jobs that wait to be released, and what has started, in order."""

    def __init__(self) -> None:
        self.started: list[Hashable] = []
        self.cancelled: list[Hashable] = []
        self.most = 0
        self.in_flight = 0
        self._open: set[Hashable] = set()
        self._all_open = False
        self._gates: dict[Hashable, asyncio.Event] = {}
        self._news = threading.Condition()
        self.engine: Engine[Any] | None = None

    async def execute(self, key: Hashable) -> str:
        gate = self._gates[key] = asyncio.Event()
        self.in_flight += 1
        with self._news:
            self.started.append(key)
            self.most = max(self.most, self.in_flight)
            self._news.notify_all()
        try:
            if not self._all_open and key not in self._open:
                await gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(key)
            raise
        finally:
            self.in_flight -= 1
        if key == "broken":
            raise LookupError("no such drawer")
        return f"result of {key}"

    def release(self, *keys: Hashable) -> None:
        """End these jobs, now or as soon as they start; without keys, all of them."""
        assert self.engine is not None

        def open_gates() -> None:
            self._all_open |= not keys
            self._open.update(keys)
            for key, gate in self._gates.items():
                if self._all_open or key in self._open:
                    gate.set()

        self.engine.soon(open_gates)

    def wait_for(self, done: Callable[[], bool]) -> None:
        """Wait until what has started makes this true."""
        with self._news:
            assert self._news.wait_for(done, PATIENCE_S), self.started


Make = Callable[..., "tuple[Engine[Any], Jobs]"]


@pytest.fixture
def make() -> Iterator[Make]:
    engines: list[Engine[Any]] = []

    def made(window: int, run_ahead: int = 100, **more: Any) -> tuple[Engine[Any], Jobs]:
        jobs = Jobs()
        jobs.engine = Engine(jobs.execute, window=window, run_ahead=run_ahead, **more)
        engines.append(jobs.engine)
        return jobs.engine, jobs

    yield made
    for engine in engines:
        assert engine.close()


def settled(engine: Engine[Any]) -> None:
    """Wait until the loop has done what it had to do so far, and what that led to."""
    for _ in range(10):
        turned = threading.Event()
        engine.soon(turned.set)
        assert turned.wait(PATIENCE_S)


def test_jobs_start_in_order_and_never_more_than_the_window(make: Make) -> None:
    engine, jobs = make(3)
    engine.offer(range(10))
    jobs.wait_for(lambda: len(jobs.started) == 3)
    settled(engine)
    assert jobs.started == [0, 1, 2]
    jobs.release(1)
    jobs.wait_for(lambda: len(jobs.started) == 4)
    settled(engine)
    assert jobs.started == [0, 1, 2, 3]
    jobs.release()
    assert [engine.wait(key) for key in range(10)] == [f"result of {key}" for key in range(10)]
    assert jobs.started == list(range(10))
    assert jobs.most == 3


def test_results_that_nobody_has_fetched_are_bounded(make: Make) -> None:
    engine, jobs = make(2, run_ahead=4)
    jobs.release()
    engine.offer(range(20))
    jobs.wait_for(lambda: len(jobs.started) >= 4)
    settled(engine)
    assert len(jobs.started) <= 4 + 2
    assert [engine.wait(key) for key in range(20)] == [f"result of {key}" for key in range(20)]


def test_a_job_that_is_waited_for_out_of_turn_starts_at_once_and_only_once(make: Make) -> None:
    engine, jobs = make(1)
    jobs.release("last")
    engine.offer(["first", "second", "last"])
    assert engine.wait("last") == "result of last"
    jobs.release()
    assert [engine.wait(key) for key in ("first", "second")] == [
        "result of first",
        "result of second",
    ]
    assert sorted(map(str, jobs.started)) == ["first", "last", "second"]


def test_what_a_job_raises_is_raised_where_it_is_waited_for(make: Make) -> None:
    engine, jobs = make(2)
    jobs.release()
    engine.offer(["broken", "good"])
    with pytest.raises(LookupError, match="no such drawer"):
        engine.wait("broken")
    assert engine.wait("good") == "result of good"


def test_another_window_counts_at_once(make: Make) -> None:
    engine, jobs = make(1)
    engine.offer(range(10))
    jobs.wait_for(lambda: len(jobs.started) == 1)
    engine.resize(4)
    jobs.wait_for(lambda: len(jobs.started) == 4)
    engine.resize(2)
    jobs.release(0, 1)
    settled(engine)
    assert len(jobs.started) == 4
    jobs.release(2)
    jobs.wait_for(lambda: len(jobs.started) == 5)


def test_keys_are_consumed_as_jobs_start(make: Make) -> None:
    engine, jobs = make(2)
    taken: list[int] = []

    def keys() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    engine.offer(keys())
    jobs.wait_for(lambda: len(jobs.started) == 2)
    settled(engine)
    assert len(taken) <= 3


def test_after_a_halt_nothing_starts_and_what_is_in_flight_goes_on(make: Make) -> None:
    engine, jobs = make(2)
    engine.offer(range(5))
    jobs.wait_for(lambda: len(jobs.started) == 2)
    engine.halt()
    jobs.release()
    assert [engine.wait(key) for key in (0, 1)] == ["result of 0", "result of 1"]
    with pytest.raises(EngineClosed):
        engine.wait(2)
    assert jobs.started == [0, 1]


def test_cancelling_ends_what_is_in_flight(make: Make) -> None:
    engine, jobs = make(2)
    engine.offer(range(5))
    jobs.wait_for(lambda: len(jobs.started) == 2)
    engine.cancel()
    for key in (0, 1, 2):
        with pytest.raises(EngineClosed):
            engine.wait(key)
    assert sorted(map(str, jobs.cancelled)) == ["0", "1"]
    assert jobs.started == [0, 1]


def test_results_that_are_left_are_handed_over_once(make: Make) -> None:
    engine, jobs = make(3)
    jobs.release()
    engine.offer(["a", "broken", "b"])
    assert engine.wait("b") == "result of b"
    with pytest.raises(LookupError):
        engine.wait("broken")
    settled(engine)
    assert engine.unfetched() == ["result of a"]
    assert engine.unfetched() == []


def test_a_loop_that_is_abandoned_leaves_the_last_results(make: Make) -> None:
    engine, jobs = make(2)
    engine.offer(["a", "b", "c"])
    jobs.wait_for(lambda: len(jobs.started) == 2)
    engine.abandon({"a": "made up"})
    assert engine.wait("a") == "made up"
    with pytest.raises(EngineClosed):
        engine.wait("c")
    assert engine.is_abandoned
    jobs.release()
    settled(engine)
    engine.soon(engine.loop.stop)
    while engine.loop.is_running():
        time.sleep(0.001)
    engine.loop.close()


def test_closing_cancels_releases_what_was_opened_and_may_be_repeated() -> None:
    released: list[bool] = []

    async def release() -> None:
        released.append(True)

    jobs = Jobs()
    jobs.engine = engine = Engine(jobs.execute, window=2, run_ahead=2, on_close=release)
    engine.offer(range(3))
    jobs.wait_for(lambda: len(jobs.started) == 2)
    assert engine.close()
    assert engine.close()
    assert sorted(map(str, jobs.cancelled)) == ["0", "1"]
    assert released == [True]
    engine.offer([7])  # in vain
    assert engine.loop.is_closed()
