"""How user code is called, and what it does in the main loop, where connections and totals are.

Knows nothing of other loops: `loop_call` makes calls in these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

INTERRUPT_RETRY_S = 1.0
"""How long code that was cancelled or interrupted may hold its loop until it is interrupted."""


class RunInMainLoop(Protocol):
    """Runs coroutines in the main loop, from any loop."""

    def __call__(self, coroutine: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        """Await the coroutine's result."""


def run_directly(coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """`RunInMainLoop` for code that is in the main loop already."""
    return coroutine


Call = Callable[[RunInMainLoop], Awaitable[T]]
"""A call of user code."""
