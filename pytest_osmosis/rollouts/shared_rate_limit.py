"""The rate limit of an evaluation: what one process learns, all of them observe.

A 429 or 503 with a Retry-After pauses the calls of this process at once and, through `share`, those
of the others; the controller answers with a smaller window. The waiting time itself is computed in
`osmosis_ai.models.retry`. Knows no endpoint and no xdist.
"""

from __future__ import annotations

from collections.abc import Callable

from osmosis_ai.models.base import CallOutcome
from osmosis_ai.models.rate_limiter import RateLimiter

Share = Callable[[str, float], None]
"""Called with `("rate_limited" | "overloaded" | "ok", seconds from now)` of calls made here."""


class SharedRateLimit(RateLimiter):
    """`RateLimit` that shares refusals, and answers after a refusal."""

    def __init__(self, share: Share) -> None:
        super().__init__()
        self._share = share
        self._refused = False

    def record_response(self, outcome: CallOutcome, retry_after_s: float) -> None:
        """Pause this process, and share what concerns the others."""
        super().record_response(outcome, retry_after_s)
        if outcome in ("rate_limited", "overloaded"):
            self._refused = True
            self._share(outcome, retry_after_s)
        elif outcome == "ok" and self._refused:
            self._share(outcome, 0.0)

    def pause_for_others(self, seconds: float) -> None:
        """Pause because another process was refused."""
        self.pause(seconds)
        self._refused = True
