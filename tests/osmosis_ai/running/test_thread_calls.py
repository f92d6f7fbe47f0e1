"""Calls off the event loop: idle threads are used again, slow calls delay no other."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Iterator

import pytest

from osmosis_ai.running.section import DeadlineExceeded
from osmosis_ai.running.thread_calls import CallThreads


@pytest.fixture
def threads() -> Iterator[CallThreads]:
    threads = CallThreads()
    yield threads
    threads.close()


async def gather(*waited: Awaitable[object]) -> list[object]:
    return list(await asyncio.gather(*waited))


def test_results_and_errors_come_back_to_the_caller(threads: CallThreads):
    def raises() -> None:
        raise KeyError("x")

    async def both() -> tuple[int, threading.Thread]:
        with pytest.raises(KeyError):
            await threads.run(raises)
        return await threads.run(lambda: 6 * 7), await threads.run(threading.current_thread)

    number, thread = asyncio.run(both())
    assert number == 42
    assert thread is not threading.main_thread() and thread.daemon


def test_calls_after_each_other_share_one_thread(threads: CallThreads):
    async def main() -> set[object]:
        return {await threads.run(threading.get_ident) for _ in range(100)}

    assert len(asyncio.run(main())) == 1


def test_a_call_that_raises_stop_iteration_ends_in_a_runtime_error(threads: CallThreads):
    async def main() -> None:
        await threads.run(lambda: next(iter(())))

    with pytest.raises(RuntimeError, match="the call raised StopIteration"):
        asyncio.run(main())


def test_a_call_beyond_its_time_is_given_up(threads: CallThreads):
    stuck = threading.Event()

    async def main() -> str:
        with pytest.raises(DeadlineExceeded, match=r"timed out after 0\.01 s"):
            await threads.run(stuck.wait, 0.01)
        return await threads.run(lambda: "next")

    try:
        assert asyncio.run(main()) == "next"
    finally:
        stuck.set()


def test_calls_that_wait_for_each_other_are_all_under_way_at_once(threads: CallThreads):
    barrier = threading.Barrier(16)

    async def main() -> list[object]:
        return await gather(*(threads.run(lambda: barrier.wait(30)) for _ in range(16)))

    assert set(asyncio.run(main())) == set(range(16))


def test_a_call_that_never_comes_back_costs_itself_alone(threads: CallThreads):
    stuck = threading.Event()

    async def main() -> list[object]:
        threads.run(stuck.wait)
        first = await threads.run(lambda: "at once")
        return [first, *await gather(*(threads.run(lambda: "later") for _ in range(5)))]

    try:
        assert asyncio.run(main()) == ["at once", *["later"] * 5]
    finally:
        stuck.set()


def test_a_result_is_not_held_back_by_a_slow_call_behind_it(threads: CallThreads):
    stuck = threading.Event()

    async def main() -> object:
        quick = threads.run(lambda: "quick")
        threads.run(stuck.wait)
        return await quick

    try:
        assert asyncio.run(main()) == "quick"
    finally:
        stuck.set()


def test_a_call_sees_the_context_of_its_caller(threads: CallThreads):
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="outside")

    async def caller(value: str) -> str:
        variable.set(value)
        return await threads.run(variable.get)

    async def main() -> list[object]:
        return await gather(caller("a"), caller("b"), threads.run(variable.get))

    assert asyncio.run(main()) == ["a", "b", "outside"]


def test_a_waiter_that_gave_up_is_not_woken(threads: CallThreads):
    stuck = threading.Event()

    async def main() -> str:
        waiter = asyncio.ensure_future(threads.run(stuck.wait))
        await asyncio.sleep(0)
        waiter.cancel()
        stuck.set()
        return await threads.run(lambda: "next")

    assert asyncio.run(main()) == "next"


def test_closing_ends_the_threads():
    threads = CallThreads()

    async def main() -> threading.Thread:
        return await threads.run(threading.current_thread)

    thread = asyncio.run(main())
    threads.close()
    thread.join(30)
    assert not thread.is_alive()
