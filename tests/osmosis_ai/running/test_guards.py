"""User code is held to its time, whether it ends when it is cancelled or not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from osmosis_ai.running.guards import CodeEnded, Guards
from osmosis_ai.running.main_loop import RunInMainLoop
from osmosis_ai.running.section import DeadlineExceeded, LeftBehind, Section

Code = Callable[[], Awaitable[Any]]


async def within(way: str, seconds: float, code: Code, **more: Any) -> Any:
    section = Section("owner", "agent", seconds, **more)
    return await getattr(Guards(), way)(section, lambda main_loop: code())


both = pytest.mark.parametrize("way", ["run", "apart"])


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
@pytest.mark.parametrize("seconds", [30.0, 0.0])  # and as the time is up
def test_code_that_is_done_in_time_gives_its_result(way: str, seconds: float):
    assert asyncio.run(within(way, seconds, quick)) == "done"


@both
def test_what_the_code_raises_is_raised(way: str):
    async def broken() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        asyncio.run(within(way, 30.0, broken))


@both
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), r"called sys.exit\(3\)"),
        (KeyboardInterrupt(), "raised KeyboardInterrupt"),
        (GeneratorExit(), "raised GeneratorExit"),
        (asyncio.CancelledError(), "ended in CancelledError: something was cancelled"),
    ],
)
def test_what_would_end_more_than_the_code_is_an_exception(
    way: str, error: BaseException, said: str
):
    async def leave() -> None:
        raise error

    with pytest.raises(CodeEnded, match=said) as caught:
        asyncio.run(within(way, 30.0, leave))
    assert caught.value.__cause__ is error


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no task tells its cancellations")
@both
def test_code_that_cancels_its_own_task_has_ended_in_that(way: str):
    async def cancel() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def main() -> str:
        with pytest.raises(CodeEnded, match="ended in CancelledError"):
            await within(way, 30.0, cancel)
        async with asyncio.timeout(30.0):  # type: ignore[attr-defined]
            return await within(way, 30.0, quick)

    assert asyncio.run(main()) == "done"


@both
def test_code_beyond_its_time_is_cancelled(way: str):
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(DeadlineExceeded, match=r"timed out after 0\.01 s"):
        asyncio.run(within(way, 0.01, slow))
    assert ended == ["cancelled"]


@both
def test_a_task_goes_on_after_a_deadline_as_if_it_had_not_been_cancelled(way: str):
    async def main() -> str:
        with pytest.raises(DeadlineExceeded):
            await within(way, 0.01, lambda: asyncio.sleep(600))
        await asyncio.sleep(0)
        return await within(way, 30.0, quick)

    assert asyncio.run(main()) == "done"


def test_time_that_has_passed_already_counts():
    with pytest.raises(DeadlineExceeded, match="timed out after 30 s"):
        asyncio.run(within("run", 30.0, lambda: asyncio.sleep(600), took_s=40.0))


@both
def test_code_is_cancelled_with_its_caller_once_all_is(way: str):
    async def main() -> None:
        guards = Guards()
        section = Section("owner", "agent", 30.0)
        work = getattr(guards, way)(section, lambda main_loop: asyncio.sleep(600))
        caller = asyncio.ensure_future(work)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        guards.is_ending = True
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert not guards.sections

    asyncio.run(main())


def test_code_that_is_cancelled_with_its_caller_may_clean_up():
    cleaned: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    async def main() -> None:
        caller = asyncio.ensure_future(within("apart", 30.0, tidy))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(main())
    assert cleaned == ["up"]


def test_code_that_ignores_its_cancellation_is_left_behind():
    async def main() -> list[str]:
        over, steps = asyncio.Event(), []

        def left() -> None:
            steps.append("left")
            over.set()

        with pytest.raises(LeftBehind):
            await within("run", 0.01, lambda: stubborn(over), clean_up_s=0.01, left=left)
        return [*steps, "ended"]

    assert asyncio.run(main()) == ["left", "ended"]


def test_the_caller_goes_on_without_code_that_is_left_behind_apart():
    async def main() -> bool:
        over = asyncio.Event()
        section = Section("owner", "agent", 0.01, clean_up_s=0.01)

        def call(main_loop: RunInMainLoop) -> Awaitable[str]:
            return stubborn(over)

        with pytest.raises(DeadlineExceeded, match="timed out after"):
            await Guards().apart(section, call)
        over.set()
        return section.is_left

    assert asyncio.run(main())
