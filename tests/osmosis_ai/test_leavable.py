from __future__ import annotations

import asyncio
from typing import Any

import pytest

from osmosis_ai.leavable import Leavable


def run(work: Any) -> tuple[Leavable[Any], asyncio.Task[Any]]:
    leavable = Leavable(work)

    async def awaiting() -> Any:
        return await leavable

    return leavable, asyncio.ensure_future(awaiting())


def test_results_exceptions_and_cancellations_pass_through():
    cleaned = []

    async def work(wish: str) -> str:
        try:
            await asyncio.sleep(3600 if wish == "wait" else 0)
            if wish == "raise":
                raise LookupError(wish)
            return wish
        finally:
            await asyncio.sleep(0)
            cleaned.append(wish)

    async def main() -> None:
        assert await run(work("end"))[1] == "end"
        with pytest.raises(LookupError, match="raise"):
            await run(work("raise"))[1]
        _, task = run(work("wait"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert cleaned == ["end", "raise", "wait"]


def test_what_is_left_is_not_resumed_although_it_swallows_everything():
    swallowed = []

    async def stubborn() -> None:
        while len(swallowed) < 3:
            try:
                await asyncio.sleep(3600)
            except BaseException as error:
                swallowed.append(type(error))

    async def main() -> None:
        leavable, task = run(stubborn())
        await asyncio.sleep(0)
        task.cancel()
        while not swallowed:
            await asyncio.sleep(0)
        place = f"{__file__}:{stubborn.__code__.co_firstlineno + 3} in stubborn"
        assert leavable.where().startswith(place)
        leavable.leave()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    assert swallowed == [asyncio.CancelledError, GeneratorExit, GeneratorExit]
