"""How often a login may fail: a user's name is blocked for a while after that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FAILURES = 10
WINDOW_S = 600.0
_NAMES = 10_000
_LENGTH = 64
"""No user has a longer name."""


class LoginThrottle:
    """Counts the failed logins of each name, in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failed: dict[str, tuple[float, int]] = {}

    def wait_s(self, name: str) -> float:
        """Return for how long the name is blocked."""
        name = name[:_LENGTH]
        with self._lock:
            since, count = self._failed.get(name, (0.0, 0))
            left = since + WINDOW_S - self._clock()
        return left if count >= FAILURES and left > 0 else 0.0

    def failed(self, name: str) -> None:
        """Count a failure."""
        name, moment = name[:_LENGTH], self._clock()
        with self._lock:
            since, count = self._failed.pop(name, (moment, 0))
            if moment >= since + WINDOW_S:
                since, count = moment, 0
            if len(self._failed) >= _NAMES:
                del self._failed[next(iter(self._failed))]
            self._failed[name] = (since, count + 1)

    def succeeded(self, name: str) -> None:
        """Forget the failures of a name."""
        with self._lock:
            self._failed.pop(name[:_LENGTH], None)
