"""The pace of one process: nobody sends before a Retry-After that any call has received.

Stands in where no gate is shared between processes. Knows no endpoint.
"""

from __future__ import annotations

import asyncio
import time

from .base import CallOutcome


class LocalGate:
    """`CallGate` for the models of one process."""

    def __init__(self) -> None:
        self._not_before = 0.0

    async def acquire(self) -> None:
        """Wait until the latest Retry-After has passed; at once when there was none."""
        while self._not_before:
            left_s = self._not_before - time.monotonic()
            if left_s <= 0.0:
                self._not_before = 0.0
                return
            await asyncio.sleep(left_s)

    def note(self, kind: CallOutcome, not_before_s: float) -> None:
        """Hold everybody back for `not_before_s` from now, unless they wait longer already."""
        if not_before_s > 0.0:
            self._not_before = max(self._not_before, time.monotonic() + not_before_s)
