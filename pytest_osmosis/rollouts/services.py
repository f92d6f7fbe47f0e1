"""What the pool of a process offers to one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osmosis_ai.running.captured import Captured
from osmosis_ai.running.guards import Guards
from osmosis_ai.running.thread_calls import CallThreads

from ..run_result import RolloutRecord, RunId

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.base import ChatModel
    from osmosis_ai.running.code_warning import CodeWarning


@dataclass(slots=True)
class RunServices:
    """What one run uses of its process."""

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
