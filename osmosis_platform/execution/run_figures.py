"""What the API says of a run's figures: from the journal while it runs, then from the report."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_osmosis.analysis.statistics.intervals import unit_interval
from pytest_osmosis.escaping import shortened
from pytest_osmosis.reports.json_models import Report
from pytest_osmosis.run_result import is_counted, passes
from pytest_osmosis.storage.journal import FILE, worker_files
from pytest_osmosis.storage.run_lines import verify_checksum

from .tail import TailedFile

if TYPE_CHECKING:
    from pytest_osmosis.suite_results import FunctionResult, SuiteResult

_PASS_AT = "pass@"
_ROWS = 100
"""That a page shows while they come: those of which the fewest runs passed."""
_SESSION, _RUN = b'{"session":', b'{"run":'
"""How the lines begin that are counted; the others are what was said."""
_RUN_BYTES = 256 * 1024
"""Of the line of a run, which has no conversation."""
_SESSIONS = 1000
_MOST = 2**53
_FILES = 1000
"""Of workers that are followed."""
_GATES, _CHARACTERS = 100, 2000
"""Of a report, that lists of runs have too."""


class Progress:
    """The runs of rows that an evaluation's files have, counted as their lines come."""

    def __init__(self, folder: Path, most: int = 1_000_000) -> None:
        """`most`: runs that are counted; the code of users may write there too."""
        self._folder = folder
        self._most = most
        self._files: dict[Path, TailedFile] = {}
        self._session = self._sessions = 0
        self._runs: dict[tuple[int, int], Mapping[str, Any]] = {}
        self._planned = 0
        self._until = 0.0
        self._earlier: dict[tuple[int, int], Mapping[str, Any]] = {}
        """Runs as the last session found them."""
        self._repeated_tokens = 0
        self._began: float | None = None
        """When the first run of the last session did."""

    def update(self, time_s: float = 5.0) -> bool:
        """Read what is new, for so long at most; return whether there was something."""
        self._until = time.monotonic() + time_s
        found = self._read(self._folder / FILE)
        return self._read_workers() or found

    def _read_workers(self) -> bool:
        paths = worker_files(self._folder, self._session)[:_FILES]
        return sum(map(self._read, paths)) > 0

    def _read(self, path: Path) -> bool:
        count = 0
        for lines in self._files.setdefault(path, TailedFile(path)).blocks():
            for line in lines:
                if line.startswith(_SESSION) or (line.startswith(_RUN) and len(line) <= _RUN_BYTES):
                    count += self._take_line(line)
            if time.monotonic() > self._until:
                break
        return count > 0

    def _take_line(self, line: bytes) -> bool:
        """Take a line; return whether it is whole, and one of ours."""
        try:
            record = verify_checksum(line)
            if record is not None:
                self._take(record)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return False  # code of users has written it
        return record is not None

    def _take(self, record: Mapping[str, Any]) -> None:
        """Take the line of a session, or of a run."""
        if "session" in record:
            number, planned = _whole(record["session"]["number"]), _planned(record["session"])
            if self._sessions >= _SESSIONS:
                return
            self._read_workers()  # of the session before
            self._sessions += 1
            self._session = number
            self._planned = planned or self._planned
            self._earlier = dict(self._runs)
            self._began = None
            return
        run = record["run"]
        key = _whole(run["row_index"]), _whole(run["run_index"])
        if key not in self._runs and len(self._runs) >= self._most:
            return
        began = _whole(run.get("started_at") or 0, float) or None
        before = self._earlier.pop(key, None)
        if before is not None and not (began and before["began"] == began):  # scored again
            self._repeated_tokens += before["tokens"]
        if began and (before is None or before["began"] != began):
            self._began = min(began, self._began or began)
        self._runs[key] = {
            "passed": bool(run.get("passed")),
            "counted": is_counted(run.get("error_type"), run.get("error_kind")),
            "tokens": _whole(run.get("tokens") or 0),
            "began": began,
        }

    @property
    def overview(self) -> dict[str, Any]:
        """The counts."""
        runs = self._runs.values()
        graded = sum(run["counted"] for run in runs)
        passed = sum(run["passed"] for run in runs)
        return {
            "total_samples": max(self._planned, len(runs)),
            "completed_samples": len(runs),
            "graded": graded,
            "passed": passed,
            "failed": graded - passed,
            "pass_rate": passed / graded if graded else None,
            "tokens_used": sum(run["tokens"] for run in runs) + self._repeated_tokens,
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """The counts, and pass@1 of the rows that have a run that counts."""
        by_row: dict[int, list[bool]] = {}
        for (row_index, _), run in self._runs.items():
            if run["counted"]:
                by_row.setdefault(row_index, []).append(run["passed"])
        rows = sorted((sum(runs) / len(runs), row, runs) for row, runs in by_row.items())
        began = self._began
        done = sum((run["began"] or 0) >= began for run in self._runs.values()) if began else 0
        return {
            "overview": self.overview,
            "pass_at_1": _pass_at_1(by_row.values()),
            "rows": [[row, sum(runs), len(runs)] for _, row, runs in rows[:_ROWS]],
            "remaining_s": _remaining_s(began, done, self.overview),
        }


def _whole(value: Any, kind: type[int] | type[float] = int) -> Any:
    """Return a number that counts something; raise ValueError for another value."""
    if not isinstance(value, (int, kind)) or not 0 <= value <= _MOST:
        raise ValueError
    return kind(value)


def _remaining_s(began: float | None, done: int, overview: Mapping[str, Any]) -> float | None:
    """Return how long the rest takes at the pace of the runs since a time; None where unknown."""
    if not began or not done:
        return None
    left: int = overview["total_samples"] - overview["completed_samples"]
    return max(0.0, time.time() - began) / done * left


def _planned(session: Mapping[str, Any]) -> int:
    """How many runs a session of the journal was to have; 0 where it does not say."""
    plan = session.get("plan")
    if not plan:
        return 0
    rows = sum(_whole(stop) - _whole(first) for first, stop in plan["rows"])
    total: int = _whole(_whole(plan["n"]) * max(0, rows))
    return total


def metrics_of(report: Report) -> dict[str, Any]:
    """Return the figures of a report as the API has them: those of its first eval function.

    Raises:
        ValueError: for a report that contradicts itself.
    """
    from pytest_osmosis.reports.json_reader import result_of

    summary, suite = report.summary, result_of(report).suites[0]
    runs = list(suite.runs)
    deciding = list(suite.deciding_runs)
    counted = [run for run in deciding if is_counted(run.error_type, run.error_kind)]
    passed = sum(run.passed for run in counted)
    function = next(iter(suite.functions), None)
    by_row = [] if function is None else _counted_scores(suite, function.name)
    threshold = None if function is None else suite.threshold_of(function)
    passing = [
        [passes(score, threshold) for score in row] for row in by_row if threshold is not None
    ]
    return {
        "verdict": summary.verdict,
        "gates": [
            {
                "gate": shortened(gate.gate, _CHARACTERS),
                "outcome": gate.outcome,
                "sentence": shortened(gate.sentence, _CHARACTERS),
            }
            for gate in report.gates[:_GATES]
        ],
        "overview": {
            "duration_ms": summary.total_duration_ms,
            "total_samples": max(summary.selected, len(runs)),
            "completed_samples": len(runs),
            "graded": len(counted),
            "passed": passed,
            "failed": len(counted) - passed,
            "skipped": len(runs) - len(counted),
            "pass_rate": passed / len(counted) if counted else None,
            "pass_threshold": report.config.pass_threshold,
            "tokens_used": (summary.total_tokens or 0) + (summary.repeated.tokens or 0),
        },
        "reward_stats": {} if function is None else _statistics(function, by_row),
        "pass_at_k": [] if function is None else _pass_at(function),
        "pass_at_1": _pass_at_1(passing),
    }


def _counted_scores(suite: SuiteResult, name: str) -> list[list[float]]:
    """Return what the runs of each row count for in a function's figures, as far as any does."""
    every = ([run.counted_score(name) for run in row.runs] for row in suite.deciding_rows)
    known = ([score for score in row if score is not None] for row in every)
    return [row for row in known if row]


def _pass_at_1(rows: Iterable[Sequence[bool]]) -> dict[str, float | None] | None:
    """The figure with its interval over rows; None without rows."""
    import numpy as np

    values = [sum(row) / len(row) for row in rows]
    interval = unit_interval(np.array(values))
    if interval is None:
        return None
    return {"value": statistics.fmean(values), "low": interval.low, "high": interval.high}


def _statistics(function: FunctionResult, rows: Iterable[Sequence[float]]) -> dict[str, float]:
    """The figures of the report, and the median of the same scores."""
    named = ((name, function[name]) for name in ("mean", "std", "min", "max"))
    known = {name: value for name, value in named if value is not None}
    return known and {**known, "median": statistics.median(chain.from_iterable(rows))}


def _pass_at(function: FunctionResult) -> list[dict[str, float]]:
    """The passing figures of a function, by k."""
    found = {
        int(name.removeprefix(_PASS_AT)): figure.value
        for name, figure in function.figures.items()
        if name.startswith(_PASS_AT) and figure.value is not None
    }
    return [{"k": k, "value": found[k]} for k in sorted(found)]
