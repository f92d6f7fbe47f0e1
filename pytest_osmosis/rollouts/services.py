"""What a process offers to a run: to its agent, and to hold it to its limits."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from osmosis_ai.running.code_warning import CodeWarning
from osmosis_ai.running.isolation import Call
from osmosis_ai.running.timeouts import TaskDeadline

from ..run_result import RolloutRecord
from ..user_code.agent import Services

T = TypeVar("T")


class RolloutServices(Services, Protocol):
    """What the process offers to a run: that to its agent, and what holds the run to its limits."""

    def deadline(
        self, seconds: float, /, *, leave: Callable[[], None], expired: Callable[[], None]
    ) -> TaskDeadline:
        """Return a deadline of the run's task, which has not begun."""

    def isolate(
        self, owner: object, name: str, call: Call[T], /, *, within_s: float = math.inf
    ) -> Awaitable[T]:
        """Run a section of user code where it delays no other run, and await what it returns.

        `name` is the owner's in messages.

        Raises:
            LoopHeld: when it blocked the loop beyond `within_s` seconds.
        """

    def warn(self, warning: CodeWarning, /) -> None:
        """Warn of what the run's code does, once, in pytest's summary."""

    def leave(self, record: RolloutRecord, /) -> None:
        """End the run with this, while its task is in code that ignores its cancellation."""

    def is_ending(self) -> bool:
        """Return whether the session cancels what is in flight: then a cancellation is no error."""
