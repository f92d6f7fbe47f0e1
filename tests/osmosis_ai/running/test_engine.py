"""The window of jobs in flight: its size, its order, and how it ends. No test waits for a clock."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from osmosis_ai.running import loop_thread
from osmosis_ai.running.engine import Engine, EngineClosed

TIMEOUT_S = 60.0


class Jobs:
    """Jobs that end when the test says so, and what happened to them."""

    def __init__(self) -> None:
        self.started: list[Hashable] = []
        self.ended: list[Hashable] = []
        self.cancelled: list[Hashable] = []
        self.in_flight = self.most = 0
        self.actions: dict[Hashable, Callable[[], Any]] = {}
        self._gates: dict[Hashable, asyncio.Event] = {}
        self._changed = threading.Condition()

    async def __call__(self, key: Hashable) -> str:
        gate = self._gates[key] = asyncio.Event()
        self._note(self.started, key, +1)
        try:
            if key in self.actions:
                self.actions[key]()
            else:
                await gate.wait()
        except asyncio.CancelledError:
            self._note(self.cancelled, key)
            raise
        finally:
            self._note(self.ended, key, -1)
        return f"result {key}"

    def _note(self, happened: list[Hashable], key: Hashable, change: int = 0) -> None:
        with self._changed:
            happened.append(key)
            self.in_flight += change
            self.most = max(self.most, self.in_flight)
            self._changed.notify_all()

    def wait_for(self, happened: list[Hashable], number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(happened) >= number, TIMEOUT_S)

    def finish(self, engine: Engine[Hashable, str], *keys: Hashable) -> None:
        for key in keys:
            engine.soon(self._gates[key].set)


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
def start(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Engine[Hashable, str]]]:
    monkeypatch.setattr(loop_thread, "CANCEL_TIMEOUT_S", 0.05)
    engines: list[Engine[Hashable, str]] = []

    def start(window: int = 2, run_ahead: int = 100, **more: Any) -> Engine[Hashable, str]:
        engines.append(Engine(jobs, window=window, run_ahead=run_ahead, **more))
        return engines[-1]

    yield start
    for engine in engines:
        engine.close()


def turn(engine: Engine[Hashable, str], times: int = 5) -> None:
    """Return once the loop has done all that was scheduled."""
    for _ in range(times):
        turned = threading.Event()
        engine.soon(turned.set)
        assert turned.wait(TIMEOUT_S)


Start = Callable[..., Engine[Hashable, str]]


def test_jobs_start_in_the_order_in_which_they_were_offered_within_the_window(
    jobs: Jobs, start: Start
):
    engine = start(window=3)
    engine.offer("abcdef")
    jobs.wait_for(jobs.started, 3)
    turn(engine)
    assert jobs.started == ["a", "b", "c"]
    jobs.finish(engine, "b")
    jobs.wait_for(jobs.started, 4)
    turn(engine)
    assert jobs.started == ["a", "b", "c", "d"]
    assert jobs.most == 3


def test_results_come_in_the_order_in_which_they_are_asked_for(jobs: Jobs, start: Start):
    engine = start(window=3)
    engine.offer("abc")
    jobs.wait_for(jobs.started, 3)
    jobs.finish(engine, "c", "b", "a")
    assert [engine.wait(key) for key in "abc"] == ["result a", "result b", "result c"]


def test_offers_are_consumed_one_after_the_other_as_jobs_start(jobs: Jobs, start: Start):
    engine = start(window=2)
    engine.offer(itertools.count())
    engine.offer("never")
    jobs.wait_for(jobs.started, 2)
    turn(engine)
    assert jobs.started == [0, 1]


def test_a_larger_window_takes_effect_at_once_a_smaller_one_as_jobs_end(jobs: Jobs, start: Start):
    engine = start(window=1)
    engine.offer("abcdef")
    jobs.wait_for(jobs.started, 1)
    engine.resize(3)
    jobs.wait_for(jobs.started, 3)
    engine.resize(1)
    jobs.finish(engine, "a", "b")
    jobs.wait_for(jobs.ended, 2)
    turn(engine)
    assert jobs.started == ["a", "b", "c"]
    jobs.finish(engine, "c")
    jobs.wait_for(jobs.started, 4)


def test_results_that_were_not_fetched_are_bounded(jobs: Jobs, start: Start):
    jobs.actions.update(dict.fromkeys(range(10), lambda: None))
    engine = start(window=1, run_ahead=3)
    engine.offer(range(10))
    jobs.wait_for(jobs.ended, 3)
    turn(engine)
    assert jobs.started == [0, 1, 2]
    assert [engine.wait(key) for key in range(10)] == [f"result {key}" for key in range(10)]


def test_a_job_that_is_waited_for_starts_before_its_turn_and_only_once(jobs: Jobs, start: Start):
    engine = start(window=1)
    engine.offer("abc")
    jobs.wait_for(jobs.started, 1)
    jobs.actions["c"] = lambda: None
    assert engine.wait("c") == "result c"
    jobs.finish(engine, "a")
    jobs.wait_for(jobs.started, 3)
    jobs.finish(engine, "b")
    assert (engine.wait("a"), engine.wait("b")) == ("result a", "result b")
    assert jobs.started == ["a", "c", "b"]


@pytest.mark.parametrize("error", [KeyError("x"), asyncio.InvalidStateError()])
def test_what_a_job_raises_is_raised_where_it_is_waited_for(
    jobs: Jobs, start: Start, error: Exception
):
    def raises() -> None:
        raise error

    jobs.actions.update({"a": raises, "b": lambda: None})
    engine = start()
    engine.offer("ab")
    with pytest.raises(type(error)) as caught:
        engine.wait("a")
    assert caught.value is error
    assert engine.wait("b") == "result b"


def test_a_job_that_blocks_the_loop_is_not_started_twice(jobs: Jobs, start: Start):
    blocked, release = threading.Event(), threading.Event()

    def blocks() -> None:
        blocked.set()
        assert release.wait(TIMEOUT_S)

    jobs.actions.update({"a": blocks, "b": lambda: None})
    engine = start(window=2)
    engine.offer("ab")
    assert blocked.wait(TIMEOUT_S)
    threading.Thread(target=release.set).start()
    assert (engine.wait("a"), engine.wait("b")) == ("result a", "result b")
    assert jobs.started == ["a", "b"]


def test_after_a_halt_jobs_in_flight_go_on_and_no_other_starts(jobs: Jobs, start: Start):
    engine = start(window=1)
    engine.offer("ab")
    jobs.wait_for(jobs.started, 1)
    engine.halt("enough")
    jobs.finish(engine, "a")
    assert engine.wait("a") == "result a"
    with pytest.raises(EngineClosed):
        engine.wait("b")
    assert jobs.started == ["a"]


def test_a_cancelled_engine_cancels_what_is_in_flight(jobs: Jobs, start: Start):
    engine = start(window=2)
    engine.offer("abc")
    jobs.wait_for(jobs.started, 2)
    engine.cancel()
    for key in "abc":
        with pytest.raises(EngineClosed):
            engine.wait(key)
    assert sorted(map(str, jobs.cancelled)) == ["a", "b"]


def test_a_job_that_ignores_its_cancellation_is_given_up(start: Start):
    started, over = threading.Event(), threading.Event()

    async def stubborn(key: Hashable) -> str:
        started.set()
        while not over.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "late"

    engine: Engine[Hashable, str] = Engine(stubborn, window=1, run_ahead=10)
    engine.offer("a")
    assert started.wait(TIMEOUT_S)
    engine.cancel()
    with pytest.raises(EngineClosed):
        engine.wait("a")
    over.set()
    assert engine.close()


def test_a_job_that_is_left_has_the_result_that_it_was_left_with(jobs: Jobs, start: Start):
    engine = start(window=1)
    engine.offer("ab")
    jobs.wait_for(jobs.started, 1)
    engine.soon(engine.leave, "a", "left")
    assert engine.wait("a") == "left"
    jobs.wait_for(jobs.started, 2)
    jobs.finish(engine, "a", "b")
    assert engine.wait("b") == "result b"


@pytest.mark.parametrize("window", [1, 2])
def test_what_a_job_sets_in_its_context_no_other_sees(window: int):
    seen: ContextVar[int] = ContextVar("seen", default=0)

    async def counts(key: Hashable) -> int:
        seen.set(seen.get() + 1)
        await asyncio.sleep(0)
        return seen.get()

    engine: Engine[Hashable, int] = Engine(counts, window=window, run_ahead=100)
    try:
        engine.offer(range(6))
        assert [engine.wait(key) for key in range(6)] == [1] * 6
        assert engine.wait("out of turn") == 1
    finally:
        engine.close()


def test_a_job_that_stops_the_loop_does_not_end_it():
    async def stops(key: Hashable) -> Hashable:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return key

    engine: Engine[Hashable, Hashable] = Engine(stops, window=2, run_ahead=100)
    try:
        engine.offer("abc")
        assert [engine.wait(key) for key in "abc"] == ["a", "b", "c"]
    finally:
        assert engine.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_task_that_a_job_has_started_cannot_end_the_loop(error: type[BaseException]):
    async def leave() -> None:
        raise error

    async def starts(key: Hashable) -> str:
        started = asyncio.ensure_future(leave())
        await asyncio.wait([started])
        return type(started.exception()).__name__

    engine: Engine[Hashable, str] = Engine(starts, window=2, run_ahead=100)
    try:
        engine.offer("abc")
        assert [engine.wait(key) for key in "abc"] == [error.__name__] * 3
    finally:
        assert engine.close()


def test_closing_cancels_what_is_in_flight_then_closes_what_was_opened(jobs: Jobs, start: Start):
    closed: list[list[Hashable]] = []

    async def close() -> None:
        closed.append(list(jobs.cancelled))

    engine = start(window=1, on_close=close)
    engine.offer("ab")
    jobs.wait_for(jobs.started, 1)
    assert engine.close()
    assert engine.close(), "closing again changes nothing"
    assert closed == [["a"]]
    assert engine.loop.is_closed()
    engine.offer("c")
    assert jobs.started == ["a"]


def test_an_engine_whose_loop_is_lost_gives_its_last_results(jobs: Jobs, start: Start):
    blocked, release = threading.Event(), threading.Event()

    def blocks() -> None:
        blocked.set()
        release.wait(TIMEOUT_S)

    jobs.actions["a"] = blocks
    engine = start(window=1)
    engine.offer("ab")
    assert blocked.wait(TIMEOUT_S)
    engine.abandon({"a": "last"})
    assert engine.is_abandoned
    assert engine.wait("a") == "last"
    with pytest.raises(EngineClosed):
        engine.wait("b")
    assert engine.close()
    release.set()


@pytest.mark.fault("Ctrl-C")
def test_an_interrupt_that_does_not_wake_the_waiting_thread_ends_the_wait(jobs: Jobs, start: Start):
    engine = start()
    engine.offer("a")

    def interrupt() -> None:  # its C handler runs in this thread, which leaves the main one asleep
        jobs.wait_for(jobs.started, 1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        engine.wait("a")
    thread.join()
