"""User code in the event loop of its pool, or in threads where it blocks that and never awaits.

Only code whose runs so far never suspended is moved: whatever it holds belongs to no event loop.
Code that uses the loop stays in it, since its clients and locks do. See `watchdog` for how blocking
code is found. Knows neither agents nor eval functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from .guards import Guards
from .main_loop import Call, RunInMainLoop, run_directly
from .section import Section
from .watchdog import BLOCKED_S, LONG_BLOCK_S, Blocked, Watchdog

T = TypeVar("T")


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

        `on_blocked(what)`: an owner blocks the loop; once, and once more where it was moved and
        is back since it awaits after all. `on_stuck(job, why)`: the loop is lost.
        """
        super().__init__()
        self._on_blocked = on_blocked
        self._on_stuck = on_stuck
        self._blocked_s = blocked_s
        self._long_block_s = long_block_s
        self._suspends: set[int] = set()
        """Owners that have awaited something: they stay in the loop."""
        self._in_one_go: set[int] = set()
        """Owners of which a run has ended that awaited nothing."""
        self._blocking: set[int] = set()
        """Owners that block the loop."""
        self._told: set[tuple[int, bool]] = set()
        """These, and whether it was said that they are moved."""
        self._watchdog: Watchdog | None = None

    def close(self) -> None:
        """Stop the watchdog."""
        if self._watchdog is not None:
            self._watchdog.stop()

    def _begin(self, section: Section, call: Call[T]) -> Awaitable[T]:
        if section.owner in self._blocking and self._is_movable(section.owner):
            from .loop_call import LoopCall  # few agents block the loop

            moved = LoopCall(lambda main_loop: self._observed(section.owner, call, main_loop))
            moved.start_apart()
            return moved.result()
        if self._watchdog is None:
            self._watchdog = Watchdog(
                self,
                self._note_blocked,
                self._on_stuck,
                blocked_s=self._blocked_s,
                long_block_s=self._long_block_s,
            )
        if section.owner in self._suspends:
            return call(run_directly)
        return self._observed(section.owner, call, run_directly)

    def _is_movable(self, owner: int) -> bool:
        return owner in self._in_one_go and owner not in self._suspends

    async def _observed(self, owner: int, call: Call[T], main_loop: RunInMainLoop) -> T:
        """Make a call, and note whether it suspends: only then does its loop turn meanwhile."""
        turn = asyncio.get_running_loop().call_soon(self._suspends.add, owner)
        try:
            return await call(main_loop)
        finally:
            turn.cancel()
            if owner not in self._suspends:
                self._in_one_go.add(owner)

    def _note_blocked(self, owner: int, blocked: Blocked) -> None:
        self._blocking.add(owner)
        blocked.is_moved = self._is_movable(owner)
        told = (owner, blocked.is_moved)
        if told not in self._told:
            self._told.add(told)
            self._on_blocked(blocked)
