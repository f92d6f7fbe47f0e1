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

from ..run_result import NOT_STREAMED, RunResult

REFUSED_ROWS = 3
"""Different rows that are refused before it is taken for the endpoint's answer to all."""
LOST_RUNS = 3
"""Runs without connection or reply, after which an endpoint that never replied is given up.

Fewer are enough where the session has no others, and none had a connection.
"""
GONE_RUNS = 5
"""And runs without a connection, with none that had a reply among them, where one had."""
UNANSWERED_RUNS = 16
"""Runs in a row that end without an answer, after which any endpoint is given up."""
UNANSWERED_S = 120.0
"""And the time without a success, the pauses that it asked for not counted."""
OVERLOADED_KINDS = ("overloaded", "rate_limited")
SILENT_KINDS = ("timeout", "connection", NOT_STREAMED)
_NUMBER = re.compile(r"\d+")


class EndpointWatch:
    """The runs of a session that one model at one endpoint has answered, or has not."""

    def __init__(
        self, planned: Callable[[], tuple[int, int]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`planned` returns how many rows and runs the session has of it."""
        self._planned = planned
        self._clock = clock
        self._has_answered = False
        self._has_replied = False
        """A refusal is a reply too."""
        self._rows: dict[str, set[tuple[str, int]]] = {}
        """Rows that were refused, by why."""
        self._refused: Counter[str] = Counter()
        """And how many runs."""
        self._lost = 0
        self._unreachable = 0
        self._unanswered = 0
        """Runs since the last one that had an answer."""
        self._silent_since: float | None = None
        """When the first of them began that ended without a word."""

    def reason(self, run: RunResult) -> str | None:
        """Count a run; return why no other can be expected to get an answer, None if one can."""
        if run.llm_calls or run.success:
            self._has_answered = self._has_replied = True
            self._unanswered = self._unreachable = 0
            self._silent_since = None
            return None
        if run.error_kind in ("unreachable", "connection"):
            self._lost += 1
            self._unreachable += run.error_kind == "unreachable"
            if not self._has_replied and self._is_lost():
                return run.error
            if self._unreachable >= GONE_RUNS:
                return f"the endpoint went away: {run.error}"
        elif run.error_type == "provider":
            self._has_replied = self._has_replied or run.error_kind not in SILENT_KINDS
            self._unreachable = 0
        if run.error_type == "provider" and run.error_kind in OVERLOADED_KINDS + SILENT_KINDS:
            is_stopped = self._is_unanswered(run)
        else:
            is_stopped = self._is_refused(run)
        return (run.error or "the endpoint answers no call") if is_stopped else None

    def _is_lost(self) -> bool:
        return self._lost >= LOST_RUNS or self._unreachable >= self._planned()[1]

    def _is_unanswered(self, run: RunResult) -> bool:
        """Return whether there were too many such runs, or too long none that had an answer.

        One that ends without a word may have been a long answer: time alone does not tell.
        """
        self._unanswered += 1
        if run.error_kind in OVERLOADED_KINDS:
            return self._unanswered >= min(UNANSWERED_RUNS, self._planned()[1])
        now = self._clock()
        if self._silent_since is None:
            self._silent_since = now - run.duration_ms / 1000.0
        is_long = not self._has_answered and now - self._silent_since >= UNANSWERED_S
        return self._unanswered >= (LOST_RUNS if is_long else UNANSWERED_RUNS)

    def _is_refused(self, run: RunResult) -> bool:
        """Return whether every row is refused alike."""
        cause = cause_of(run)
        if cause is None:
            return False
        self._unanswered, self._silent_since = 0, None
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
    """Tries that were refused with 5xx or 429, and none was answered since the first of them."""

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

    def __str__(self) -> str:
        """The last one, and how many there were of its status: "500 x 23: upstream timed out"."""
        status, words = self._last
        return f"{status} x {self._counts[status]}" + (f": {words}" if words else "")
