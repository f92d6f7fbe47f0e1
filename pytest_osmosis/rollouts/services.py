"""What a process offers to a run: to its agent, and to hold it to its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..run_result import RolloutRecord
from ..user_code.agent import Services
from .guards.isolation import Isolate, run_unwatched
from .guards.timeouts import TaskDeadline


class SetDeadline(Protocol):
    """Makes a deadline of the run's task."""

    def __call__(
        self, seconds: float, /, *, leave: Callable[[], None], expired: Callable[[], None]
    ) -> TaskDeadline:
        """One that has not begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutServices(Services):
    """What the process offers to a run: that to its agent, and what holds the run to its limits."""

    deadline: SetDeadline
    """Holds the run's task to a deadline."""
    isolate: Isolate = run_unwatched
    """Runs a section of user code where it delays no other run."""
    leave: Callable[[RolloutRecord], None] = lambda finished: None
    """Ends the run with this, while its task is in code that ignores its cancellation."""
    is_ending: Callable[[], bool] = lambda: False
    """Whether the session cancels what is in flight: then a cancellation is not an error."""
