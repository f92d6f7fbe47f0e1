"""Runs that have ended, on their way from their worker to the controller that reports them.

What ends while the event loop takes one turn is told in one message: every message makes threads of
two processes take turns, which costs more than what it tells. Knows neither side.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple


class WorkerResult(NamedTuple):
    """What became of a run."""

    item: int
    """The index of its item."""
    text: str | None = None
    """Its result as JSON; None when it was not run, and will not be."""
    why: str = ""
    """What its item prints when it did not pass."""
    sections: Sequence[tuple[str, str]] = ()
    """What it printed and logged."""


def encode(runs: Sequence[WorkerResult]) -> str:
    """As ASCII JSON."""
    return json.dumps(runs, separators=(",", ":"))


def decode(text: str) -> list[WorkerResult]:
    """What `encode` made a text of."""
    return [
        WorkerResult(item, result, why, [(title, said) for title, said in sections])
        for item, result, why, sections in json.loads(text)
    ]


class Outbox:
    """A worker's runs that the controller does not know of yet. From any thread."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._sending = threading.Lock()
        """Apart from the other one, which the thread that receives needs: it never waits for what
        is sent to be read."""
        self._lock = threading.Lock()
        self._waiting: list[WorkerResult] = []
        self._expected = 0
        self._idle = threading.Event()
        self._idle.set()
        self._over = False
        """Nobody has to wait any more."""
        self._failure: BaseException | None = None

    def expect(self, runs: int) -> None:
        """So many more will be put in."""
        with self._lock:
            self._expected += runs
            if self._expected and not self._over:
                self._idle.clear()

    def put(self, run: WorkerResult) -> bool:
        """Take a run; whether it is the first that waits, so that `flush` is due in a moment."""
        with self._lock:
            self._waiting.append(run)
            self._expected -= 1
            if not self._expected:
                self._idle.set()
            return len(self._waiting) == 1

    def flush(self) -> None:
        """Tell what waits."""
        with self._sending:
            with self._lock:
                waiting, self._waiting = self._waiting, []
            if waiting:
                self._send(encode(waiting))

    def give_up(self, failure: BaseException | None = None) -> None:
        """No more need be waited for; `failure` is why, when something is wrong here."""
        with self._lock:
            self._over = True
            self._failure = self._failure or failure
            self._idle.set()

    def wait(self) -> None:
        """Return once all that was expected has been told; raises what went wrong here."""
        self._idle.wait()
        self.flush()
        if self._failure is not None:
            raise self._failure
