"""What the pool of a process offers to one run: to its agent, and to hold it to its limits."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from osmosis_ai.running.captured import Captured
from osmosis_ai.running.guards import Guards
from osmosis_ai.running.thread_calls import CallThreads

from ..run_result import RolloutRecord, RunId

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.base import ChatModel
    from osmosis_ai.running.code_warning import CodeWarning

T = TypeVar("T")


@dataclass(slots=True)
class RunServices:
    """The `Services` of a run's agent, and what the run itself needs."""

    run_id: RunId
    guards: Guards
    threads: CallThreads
    """For synchronous calls."""
    captured: Captured
    """What the run prints and logs."""
    model: ChatModel | None
    """The model under test; None where none is called."""
    bridge: Callable[[], Bridge]
    warn: Callable[[CodeWarning], None]
    """Warns of what the run's code does, once, in pytest's summary."""
    leave: Callable[[RolloutRecord], None]
    """Ends the run with this, while its task is in code that ignores its cancellation."""

    def run_sync(self, call: Callable[[], T], /, within_s: float = math.inf) -> Awaitable[T]:
        """Make a synchronous call in a thread."""
        return self.threads.run(call, within_s)

    def write(self, kind: str, text: str, /) -> None:
        """Append text to the section of the run's item."""
        self.captured.write(kind, text)
