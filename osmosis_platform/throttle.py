"""How often something may be done under one name: it is refused for a while after that."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from .errors import Refused

WINDOW_S = 600.0
_NAMES = 10_000
_LENGTH = 64
"""No address is longer."""


class Throttle:
    """Counts what was done under each name, in this process."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._counted: dict[str, tuple[float, int]] = {}

    def check(self, name: str, message: str) -> None:
        """Refuse a name that is blocked, with a sentence that says why."""
        if wait_s := self.wait_s(name):
            raise too_many(message, wait_s)

    def wait_s(self, name: str) -> float:
        """Return for how long the name is blocked."""
        name = name[:_LENGTH]
        with self._lock:
            since, count = self._counted.get(name, (0.0, 0))
            left = since + WINDOW_S - self._clock()
        return left if count >= self._most and left > 0 else 0.0

    def count(self, name: str) -> None:
        """Count once more."""
        name, moment = name[:_LENGTH], self._clock()
        with self._lock:
            since, count = self._counted.pop(name, (moment, 0))
            if moment >= since + WINDOW_S:
                since, count = moment, 0
            if len(self._counted) >= _NAMES:
                del self._counted[next(iter(self._counted))]
            self._counted[name] = (since, count + 1)


def too_many(message: str, wait_s: float) -> Refused:
    """Return the refusal of what may be done again later."""
    return Refused(
        429,
        "too_many",
        f"{message}; try again in {math.ceil(wait_s / 60)} min",
        headers={"Retry-After": str(math.ceil(wait_s))},
    )
