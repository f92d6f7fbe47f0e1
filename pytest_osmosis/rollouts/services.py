"""What the pool of a process offers to its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osmosis_ai.running.captured import Captured
from osmosis_ai.running.guards import Guards
from osmosis_ai.running.thread_calls import CallThreads

from ..run_result import RolloutRecord

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.base import RateLimit
    from osmosis_ai.running.code_warning import CodeWarning

    from ..spec import ModelSpec
    from .tracing import Tracing


@dataclass(frozen=True, slots=True)
class Services:
    """What all runs use of their process."""

    guards: Guards
    threads: CallThreads
    """For synchronous calls."""
    bridge: Callable[[ModelSpec], Bridge]
    """Returns a model behind a URL on loopback."""
    warn: Callable[[CodeWarning], None]
    """Warns of what a run's code does, once, in pytest's summary."""
    rate_limit: RateLimit
    """The pause between requests that an endpoint has asked for."""
    leave: Callable[[RolloutRecord, Captured], None]
    """Ends a run whose task is in code that ignores its cancellation, with what it has printed."""
    tracing: Tracing | None = None
    """Where spans go, in a session that traces."""
