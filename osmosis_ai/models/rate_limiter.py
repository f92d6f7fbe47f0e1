"""The rate limit of one process: no request is sent before a Retry-After that any call received.

`models.retry` computes the waiting time, from the reply's headers; this module only observes it.
Serves where no rate limit is shared between processes. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import time

from .base import CallOutcome


class RateLimiter:
    """`RateLimit` for the models of one process."""

    def __init__(self) -> None:
        self._not_before = 0.0

    async def acquire(self) -> None:
        """Wait until the latest Retry-After has passed; return at once without one."""
        while self._not_before:
            left_s = self._not_before - time.monotonic()
            if left_s <= 0.0:
                self._not_before = 0.0
                return
            await asyncio.sleep(left_s)

    def record_response(self, outcome: CallOutcome, retry_after_s: float) -> None:
        """Pause all calls for `retry_after_s`; `outcome` concerns subclasses."""
        self.pause(retry_after_s)

    def pause(self, seconds: float) -> None:
        """Send nothing for `seconds` from now, or longer where a longer pause was asked for."""
        if seconds > 0.0:
            self._not_before = max(self._not_before, time.monotonic() + seconds)
