"""A server's user code runs beside the server, also while some of it blocks the others' loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from osmosis_ai.running.agent_thread import AgentThread
from osmosis_ai.running.main_loop import RunInMainLoop
from osmosis_ai.running.section import DeadlineExceeded, Section

TIMEOUT_S = 60.0
BEGUN_S = 1.0
"""A deadline behind which code has begun in its thread, on a busy machine too."""


def run(main: Callable[[AgentThread], Coroutine[Any, Any, Any]]) -> Any:
    async def closing() -> Any:
        agents = AgentThread(1)
        try:
            return await main(agents)
        finally:
            await agents.close()

    return asyncio.run(closing())


def section(seconds: float = TIMEOUT_S) -> Section:
    return Section("owner", "agent", seconds, clean_up_s=0.01)


async def thread_of(main_loop: RunInMainLoop) -> threading.Thread:
    return threading.current_thread()


def test_calls_share_a_thread_which_is_not_the_servers():
    async def main(agents: AgentThread) -> set[threading.Thread]:
        return {await agents.apart(section(), thread_of) for _ in range(2)}

    [thread] = run(main)
    assert thread is not threading.main_thread()


def test_what_waits_behind_code_that_blocks_runs_in_another_thread():
    begun, ready, blocks, released = (threading.Event() for _ in range(4))
    threads: list[threading.Thread] = []

    async def waiting(main_loop: RunInMainLoop) -> None:
        begun.set()
        ready.wait(TIMEOUT_S)

    async def blocking(main_loop: RunInMainLoop) -> None:
        threads.append(threading.current_thread())
        blocks.set()
        released.wait(TIMEOUT_S)

    async def main(agents: AgentThread) -> bool:
        calls = [asyncio.ensure_future(agents.apart(section(), waiting))]
        assert await asyncio.to_thread(begun.wait, TIMEOUT_S)
        calls.append(asyncio.ensure_future(agents.apart(section(), blocking)))
        behind = asyncio.ensure_future(agents.apart(section(), thread_of))
        for _ in range(3):
            await asyncio.sleep(0)
        ready.set()  # the loop takes up both in one pass
        assert await asyncio.to_thread(blocks.wait, TIMEOUT_S)
        threads.append(await behind)
        is_blocked = not calls[1].done()
        threads.append(await agents.apart(section(), thread_of))  # while it is still blocked
        released.set()
        await asyncio.gather(*calls)
        return is_blocked

    assert run(main)
    assert threads[0] not in threads[1:]


def test_once_the_thread_is_free_again_it_has_the_next_call():
    begun, released = threading.Event(), threading.Event()

    async def blocking(main_loop: RunInMainLoop) -> threading.Thread:
        begun.set()
        released.wait(TIMEOUT_S)
        return threading.current_thread()

    async def main(agents: AgentThread) -> bool:
        first = asyncio.ensure_future(agents.apart(section(), blocking))
        await asyncio.to_thread(begun.wait, TIMEOUT_S)
        moved = await agents.apart(section(), thread_of)
        released.set()
        assert await first is not moved
        # A call may still come before the thread says that it is free.
        later = [await agents.apart(section(), thread_of) for _ in range(20)]
        return later[-1] is await first

    assert run(main)


def test_code_that_spins_beyond_its_time_is_interrupted():
    ended = threading.Event()

    async def spin(main_loop: RunInMainLoop) -> None:
        try:
            while True:
                pass
        finally:
            ended.set()

    async def main(agents: AgentThread) -> None:
        spinning = Section("owner", "agent", BEGUN_S, clean_up_s=TIMEOUT_S)
        with pytest.raises(DeadlineExceeded):
            await agents.apart(spinning, spin)

    run(main)
    assert ended.is_set()


def test_code_that_is_left_behind_is_not_resumed_and_the_log_says_where(
    caplog: pytest.LogCaptureFixture,
):
    swallowed: list[type[BaseException]] = []

    async def stubborn(main_loop: RunInMainLoop) -> None:
        try:
            while True:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError as error:
                    swallowed.append(type(error))
        except BaseException as error:
            swallowed.append(type(error))
            raise

    async def main(agents: AgentThread) -> None:
        with pytest.raises(DeadlineExceeded):
            await agents.apart(section(BEGUN_S), stubborn)
        await agents.apart(section(), thread_of)  # behind what ends the other

    run(main)
    assert swallowed == [asyncio.CancelledError, GeneratorExit]
    place = f"{__file__}:{stubborn.__code__.co_firstlineno + 4} in stubborn"
    assert "did not end although it was cancelled; it is left at" in caplog.text
    assert place in caplog.text


def test_a_context_manager_is_entered_and_left_in_one_task_where_agents_run():
    seen: list[tuple[str, Any]] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        seen.append(("enter", asyncio.current_task()))
        yield
        seen.append(("leave", asyncio.current_task()))

    async def main(agents: AgentThread) -> threading.Thread:
        async with agents.entered(lifespan()):
            assert len(seen) == 1
            return await agents.apart(section(), thread_of)

    run(main)
    (enter, task), (leave, other) = seen
    assert (enter, leave) == ("enter", "leave")
    assert task is other


def test_a_context_manager_that_cannot_be_entered_says_why():
    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        raise LookupError("no database")
        yield

    async def main(agents: AgentThread) -> None:
        async with agents.entered(lifespan()):
            raise AssertionError

    with pytest.raises(LookupError, match="no database"):
        run(main)


def test_code_that_is_thrown_away_with_its_thread_is_not_reported(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
):
    async def hang(main_loop: RunInMainLoop) -> None:
        await asyncio.sleep(3600)

    async def main(agents: AgentThread) -> None:
        hanging = asyncio.ensure_future(agents.apart(section(), hang))
        await agents.apart(section(), thread_of)
        agents.cancel()
        with pytest.raises(DeadlineExceeded):
            await hanging

    run(main)
    assert not caplog.text
    assert not capsys.readouterr().err
