"""Deadlines hold for code that ends when it is cancelled, and for code that does not."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from osmosis_ai.running import timeouts
from osmosis_ai.running.timeouts import (
    Deadline,
    DeadlineExceeded,
    LeftBehind,
    TaskDeadline,
    excuse,
    within,
)

Within = Callable[[float, Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]


async def in_own_task(seconds: float, work: Coroutine[Any, Any, Any]) -> Any:
    task = asyncio.current_task()
    assert task is not None
    return await TaskDeadline(task, seconds, leave=lambda: None).within(work)


both = pytest.mark.parametrize("limited", [within, in_own_task])


async def quick() -> str:
    return "done"


async def stubborn(over: asyncio.Event) -> str:
    while not over.is_set():
        try:
            await over.wait()
        except asyncio.CancelledError:
            continue
    return "at last"


@both
def test_work_that_is_done_in_time_gives_its_result(limited: Within) -> None:
    assert asyncio.run(limited(30.0, quick())) == "done"


@both
def test_work_that_ends_as_the_time_is_up_gives_its_result(limited: Within) -> None:
    assert asyncio.run(limited(0.0, quick())) == "done"


@both
def test_what_the_work_raises_is_raised(limited: Within) -> None:
    async def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        asyncio.run(limited(30.0, broken()))


@both
def test_work_beyond_its_time_is_cancelled(limited: Within) -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(DeadlineExceeded, match=r"timed out after 0\.01 s"):
        asyncio.run(limited(0.01, slow()))
    assert ended == ["cancelled"]


@both
def test_a_task_goes_on_after_a_deadline_as_if_it_had_not_been_cancelled(limited: Within) -> None:
    async def main() -> str:
        with pytest.raises(DeadlineExceeded):
            await limited(0.01, asyncio.sleep(600))
        await asyncio.sleep(0)
        return await limited(30.0, quick())

    assert asyncio.run(main()) == "done"


@both
def test_work_is_cancelled_with_its_caller(limited: Within) -> None:
    async def main() -> None:
        caller = asyncio.ensure_future(limited(30.0, asyncio.sleep(600)))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(main())


def test_work_that_ignores_its_cancellation_is_abandoned() -> None:
    async def main() -> DeadlineExceeded:
        over = asyncio.Event()
        with pytest.raises(DeadlineExceeded) as caught:
            await within(0.01, stubborn(over), cancel_timeout_s=0.01)
        over.set()
        return caught.value

    assert asyncio.run(main()).abandoned


def test_a_task_that_ignores_its_cancellation_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "CANCEL_TIMEOUT_S", 0.01)

    async def main() -> list[str]:
        over, told = asyncio.Event(), []

        async def job() -> None:
            task = asyncio.current_task()
            assert task is not None

            def leave() -> None:
                told.append("left")
                over.set()

            try:
                await TaskDeadline(task, 0.01, leave=leave).within(stubborn(over))
            except LeftBehind:
                told.append("ended")

        await asyncio.create_task(job())
        return told

    assert asyncio.run(main()) == ["left", "ended"]


def test_time_in_which_the_loop_was_blocked_does_not_count() -> None:
    async def main() -> float:
        loop, expired = asyncio.get_running_loop(), asyncio.Event()
        began = loop.time()
        Deadline(loop, 0.01, expired.set)
        excuse(loop, 0.05)
        await expired.wait()
        return loop.time() - began

    assert asyncio.run(main()) >= 0.05


def test_a_deadline_that_is_cancelled_does_not_expire() -> None:
    async def main() -> bool:
        loop, expired, later = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        Deadline(loop, 0.01, expired.set).cancel()
        Deadline(loop, 0.02, later.set)
        await later.wait()
        return expired.is_set()

    assert not asyncio.run(main())


def test_no_deadline_keeps_its_loop_alive() -> None:
    loop = asyncio.new_event_loop()
    excuse(loop, 1.0)
    Deadline(loop, 600.0, lambda: None)
    gone = weakref.ref(loop)
    loop.close()
    del loop
    gc.collect()
    assert gone() is None
