"""The rate limit of one process: no request is sent before a Retry-After that any call received.

`models.retry` computes the waiting time, from the reply's headers; this module only observes it.
`share` tells other processes what concerns them. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from .base import CallOutcome
from .progress import current_call

Share = Callable[[str, float, str, str], None]
"""Called of calls made here with `"rate_limited"`, `"overloaded"` or `"ok"`, the seconds to wait
from now, what the endpoint said ("500: upstream timed out"), and which model where was asked."""


class RateLimiter:
    """`RateLimit` for the models of one process; shares refusals, and answers after a refusal."""

    def __init__(self, share: Share | None = None) -> None:
        self._share = share
        self._refused = False
        self._not_before = 0.0

    async def acquire(self) -> None:
        """Wait until the latest Retry-After has passed; return at once without one."""
        while self._not_before:
            left_s = self._not_before - time.monotonic()
            if left_s <= 0.0:
                self._not_before = 0.0
                return
            await asyncio.sleep(left_s)

    def at(self, place: str) -> PlacedRateLimit:
        """Return the limit for the calls to one model: what is shared of them names it."""
        return PlacedRateLimit(self, place)

    def record_response(self, outcome: CallOutcome, retry_after_s: float, place: str = "") -> None:
        """Pause all calls for `retry_after_s`, and share what concerns other processes."""
        if retry_after_s > 0.0:
            self.pause(retry_after_s)
        if self._share is None:
            return
        if outcome in ("rate_limited", "overloaded"):
            self._refused = True
            call = current_call()
            refusal = "" if call is None else call.refusal
            self._share(outcome, retry_after_s, refusal, place)
        elif outcome == "ok" and self._refused:
            self._share(outcome, 0.0, "", place)

    def pause_for_others(self, seconds: float) -> None:
        """Pause because another process was refused."""
        self.pause(seconds)
        self._refused = True

    def pause(self, seconds: float) -> None:
        """Send nothing for `seconds` from now, or longer where a longer pause was asked for."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)


class PlacedRateLimit:
    """`RateLimit` for the calls to one model at one endpoint; the pause is that of all."""

    def __init__(self, limit: RateLimiter, place: str) -> None:
        self.acquire = limit.acquire
        self._limit = limit
        self._place = place

    def record_response(self, outcome: CallOutcome, retry_after_s: float) -> None:
        """Record how a request ended."""
        self._limit.record_response(outcome, retry_after_s, self._place)
