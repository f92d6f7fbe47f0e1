"""User code in the event loop of its pool, or in separate threads and loops once it blocks that.

See `watchdog` for how blocking code is found. Knows neither agents nor eval functions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..error_text import error_text
from .guards import Guards
from .loop_call import Call, LoopCall, run_directly
from .section import Section
from .watchdog import BLOCKED_S, LONG_BLOCK_S, Blocked, Watchdog

T = TypeVar("T")

_OTHER_LOOP = ("different loop", "different event loop", "should be used inside a task")


class Isolation(Guards):
    """Runs user code in the running event loop, or in threads once its owner has blocked that."""

    def __init__(
        self,
        on_blocked: Callable[[Blocked], None],
        *,
        blocked_s: float = BLOCKED_S,
        long_block_s: float = LONG_BLOCK_S,
        on_stuck: Callable[[Any, str], None] = lambda job, held: None,
    ) -> None:
        """Both callbacks are called in the watchdog's thread.

        `on_blocked(what)`: an owner is moved to threads. `on_stuck(job, why)`: the loop is lost.
        """
        super().__init__()
        self._on_blocked = on_blocked
        self._on_stuck = on_stuck
        self._blocked_s = blocked_s
        self._long_block_s = long_block_s
        self._isolated: set[int] = set()
        """Owners whose code runs in threads."""
        self._needs_main_loop: set[int] = set()
        """Owners whose code cannot be moved."""
        self._watchdog: Watchdog | None = None

    def close(self) -> None:
        """Stop the watchdog."""
        if self._watchdog is not None:
            self._watchdog.stop()

    def _begin(self, section: Section, call: Call[T]) -> Awaitable[T]:
        if section.owner in self._isolated:
            return self._begin_apart(section, call)
        if self._watchdog is None:
            self._watchdog = Watchdog(
                self,
                self._isolate_owner,
                self._on_stuck,
                blocked_s=self._blocked_s,
                long_block_s=self._long_block_s,
            )
        return call(run_directly)

    async def _begin_apart(self, section: Section, call: Call[T]) -> T:
        """Make the call in a thread.

        One that turns out to need the main loop, since it shares a lock or a client between runs,
        is made a second time, in that loop.
        """
        moved = LoopCall(call)
        moved.start_apart()
        try:
            return await moved.result()
        except Exception as error:
            if not _is_bound_to_other_loop(error):
                raise
        self._needs_main_loop.add(section.owner)
        self._isolated.discard(section.owner)
        return await self._begin(section, call)

    def _isolate_owner(self, owner: int, blocked: Blocked) -> None:
        if owner not in self._isolated and owner not in self._needs_main_loop:
            self._isolated.add(owner)
            self._on_blocked(blocked)


def _is_bound_to_other_loop(error: BaseException | None) -> bool:
    """Whether asyncio or aiohttp refused an object that belongs to another event loop."""
    for _ in range(10):
        if error is None:
            break
        if isinstance(error, RuntimeError) and any(
            part in error_text(error) for part in _OTHER_LOOP
        ):
            return True
        error = error.__cause__ or error.__context__
    return False
