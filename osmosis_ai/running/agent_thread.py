"""The user code of a server: in a thread beside the server's, which it cannot block.

Knows neither agents nor protocols.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from .guards import Guards
from .loop_call import LoopCall
from .loop_thread import LoopThread
from .main_loop import Call, RunInMainLoop
from .section import Section

T = TypeVar("T")

HELD_S = 0.5
"""The event loop of the thread is blocked when it does not come to a call for so long."""
CLOSE_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class AgentThread(Guards):
    """All user code runs in the event loop of one thread.

    While synchronous code blocks that loop, what comes meanwhile runs in threads of its own.
    """

    def __init__(self, size: int) -> None:
        """To be made in the server's event loop; `size`: how many rollouts run at once."""
        super().__init__()
        self._thread = LoopThread("osmosis-agent")
        self._is_blocked = self._was_blocked = False
        self.places = asyncio.Semaphore(size)
        """One is held by each rollout that runs; in the order in which they are asked for."""

    async def call(self, hook: Callable[[], Any]) -> None:
        """Call a hook where agents run, and await what it returns if it can be."""

        async def called(main_loop: RunInMainLoop) -> None:
            result = hook()
            if isinstance(result, Awaitable):
                await result

        await self.run(Section(hook, "hook"), called)

    @asynccontextmanager
    async def entered(self, manager: AbstractAsyncContextManager[Any]) -> AsyncIterator[None]:
        """Hold open a context manager of the user's, entered and left in one task of the thread."""
        entered, over = asyncio.get_running_loop().create_future(), asyncio.Event()

        async def wait() -> None:
            entered.set_result(None)
            await over.wait()

        async def hold(main_loop: RunInMainLoop) -> None:
            async with manager:
                await main_loop(wait())

        holding = asyncio.ensure_future(self.run(Section(manager, "lifespan"), hold))
        await asyncio.wait((holding, entered), return_when=asyncio.FIRST_COMPLETED)
        if holding.done():
            holding.result()  # raises what entering it has raised
        try:
            yield
        finally:
            over.set()
            await holding

    def cancel(self) -> None:
        """Cancel all code that runs, as when its time is up."""
        self.is_ending = True
        for section in tuple(self.sections.values()):
            section.cancel()

    async def close(self) -> None:
        """End the thread; one that is stuck in synchronous code is left behind."""
        await asyncio.to_thread(self._thread.close, CLOSE_TIMEOUT_S)

    def _begin(self, section: Section, call: Call[T]) -> Awaitable[T]:
        begun, left = LoopCall(call), section.left

        def leave() -> None:
            said = "%s of rollout %s did not end although it was cancelled; it is left at %s"
            logger.error(said, section.name, section.job, begun.where())
            begun.leave()
            left()

        section.left = leave
        return self._result(begun)

    async def _result(self, call: LoopCall[T]) -> T:
        if self._is_blocked:
            call.start_apart()
        else:
            call.start(self._thread)
        moving = asyncio.get_running_loop().call_later(HELD_S, self._move, call)
        try:
            return await call.result()
        finally:
            moving.cancel()

    def _move(self, call: LoopCall[Any]) -> None:
        """Make a call in a separate thread, unless the thread has come to it."""
        if call.has_begun:
            return
        if not self._was_blocked:
            logger.warning(
                "the agent blocks its event loop with synchronous code; further rollouts run in "
                "threads of their own meanwhile. It is at:\n%s",
                self._thread.where(),
            )
        self._is_blocked = self._was_blocked = True
        self._thread.soon(self._unblock)
        call.start_apart()

    def _unblock(self) -> None:
        self._is_blocked = False
