"""Whether an endpoint refuses every call alike, which ends a session before each row has failed.

`EndpointWatch` looks at the runs of one model at one endpoint, `RefusedTries` at the tries of calls
while they are repeated. Pure: knows no clock but the one that it is given.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable

from osmosis_ai.models.errors import FATAL_KINDS

from ..run_result import RunResult

REFUSED_ROWS = 3
"""Different rows that are refused before it is taken for the endpoint's answer to all."""
OVERLOADED_RUNS = 16
"""Runs in a row that end in nothing but 5xx and 429, after which an endpoint is given up."""
UNANSWERED_S = 120.0
"""And the time without a success, the pauses that it asked for not counted."""
OVERLOADED_KINDS = ("overloaded", "rate_limited")
_NUMBER = re.compile(r"\d+")


class EndpointWatch:
    """The runs of a session that one model at one endpoint has answered, or has not."""

    def __init__(self, planned: Callable[[], tuple[int, int]]) -> None:
        """`planned` returns how many rows and runs the session has of it."""
        self._planned = planned
        self._has_answered = False
        self._rows: dict[str, set[tuple[str, int]]] = {}
        """Rows that were refused, by why."""
        self._refused: Counter[str] = Counter()
        """And how many runs."""
        self._overloaded = 0
        """Runs since the last one that had an answer."""

    def ended(self, run: RunResult) -> bool:
        """Count a run; return whether no other can be expected to get an answer."""
        if run.llm_calls or run.success:
            self._has_answered, self._overloaded = True, 0
            return False
        if run.error_type == "provider" and run.error_kind in OVERLOADED_KINDS:
            self._overloaded += 1
            return self._overloaded >= min(OVERLOADED_RUNS, self._planned()[1])
        cause = cause_of(run)
        if cause is None:
            return False
        self._overloaded = 0
        rows = self._rows.setdefault(cause, set())
        rows.add((run.suite, run.row_index))
        self._refused[cause] += 1
        if self._has_answered:
            return False
        if run.error_kind == "bad_request":
            return run.fatal or len(rows) >= REFUSED_ROWS
        planned_rows, planned_runs = self._planned()
        is_all = self._refused[cause] >= planned_runs
        return is_all or len(rows) >= min(REFUSED_ROWS, planned_rows)


def cause_of(run: RunResult) -> str | None:
    """Return what names the refusal that a run ended in, if it may concern every row alike."""
    if run.error_type == "provider" and run.error_kind in FATAL_KINDS:
        return run.error_kind
    if run.error_kind == "bad_request":
        return _NUMBER.sub("#", run.error or "")
    return None


class RefusedTries:
    """The tries that were refused with 5xx or 429 since the last call that was answered."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._paused_s = 0.0
        self._paused_until = 0.0
        self._counts: Counter[str] = Counter()
        self._last = "", ""

    def add(self, said: str, pause_s: float) -> bool:
        """Count a try; return whether there was no success for too long.

        `said` is the status and the endpoint's words, `pause_s` what it asked to wait.
        """
        now = self._clock()
        if self._began is None:
            self._began, self._paused_until = now, now
        until = max(self._paused_until, now + pause_s)
        self._paused_s += until - max(self._paused_until, now)
        self._paused_until = until
        status, _, words = said.partition(": ")
        self._counts[status] += 1
        self._last = status, words
        paused_s = self._paused_s - max(0.0, until - now)
        return now - self._began - paused_s >= UNANSWERED_S

    def clear(self) -> None:
        """Forget them: a call was answered."""
        self._began, self._paused_s, self._last = None, 0.0, ("", "")
        self._counts.clear()

    def __str__(self) -> str:
        """The last one, and how many there were of its status: "500 x 23: upstream timed out"."""
        status, words = self._last
        if not self._counts:
            return ""
        return f"{status} x {self._counts[status]}" + (f": {words}" if words else "")
