"""What the rollouts of a process share, each named for what it does for one of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from osmosis_ai.bridge import Bridge
    from osmosis_ai.models.rate_limiter import RateLimiter
    from osmosis_ai.running.captured import Captured
    from osmosis_ai.running.code_warning import CodeWarning
    from osmosis_ai.running.guards import Guards
    from osmosis_ai.running.thread_calls import CallThreads

    from ..run_result import RolloutRecord
    from ..spec import ModelSpec
    from .around import AroundRuns


@dataclass(frozen=True, slots=True)
class Services:
    """What a rollout takes from the process that runs it."""

    guards: Guards
    """Runs user code within its limits."""
    threads: CallThreads
    """For synchronous calls."""
    rate_limit: RateLimiter
    """The pause between requests that an endpoint has asked for."""
    bridge: Callable[[ModelSpec], Bridge]
    """Returns a model behind a URL on loopback."""
    leave: Callable[[RolloutRecord, Captured], None]
    """Ends a run whose task is in code that ignores its cancellation."""
    around: Sequence[AroundRuns] = ()
    """What features put around runs."""
    warnings: deque[CodeWarning] = field(default_factory=deque)
    """What user code was found to do to the session, until it is taken."""
