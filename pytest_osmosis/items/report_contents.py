"""What the report of a run carries: its result, and what its item prints if it did not pass.

Within a process that is the `RunResult` itself; what crosses to another, or goes into a log of
reports, is JSON in ASCII: texts that a model wrote may hold what execnet refuses (half a
character). What an item prints is composed when it is first shown: of most runs that fail nothing
is ever shown but a line. What was said in a run is on disk before its report is made, and is read
from there, by the process that reports too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from .. import compat
from ..escaping import escape_control_chars
from ..rollouts.suite import Suite
from ..run_result import REPORT_FIELD, RolloutRecord, RunId, RunResult


class FailureSections:
    """One a process."""

    def __init__(
        self, suites: Mapping[str, Suite], record: Callable[[RunId], RolloutRecord | None]
    ) -> None:
        """`record` reads what was said in a run."""
        self._suites = suites
        self._record = record

    def of(self, result: RunResult, nodeid: str) -> Any:
        """Return the `longrepr` of a run's item, with one line for the short summary."""
        from ..rollouts.failure_text import headline

        suite = self._suites[result.suite]
        line = headline(result, suite.spec.pass_threshold)
        return compat.failure_section(
            lambda: self.text(result),
            path=nodeid.partition("::")[0],
            line=escape_control_chars(line),
            lineno=suite.dataset.line(result.row_index) or 0,
        )

    def text(self, result: RunResult) -> str:
        """Return what the item of a run prints; redacted."""
        record = self._record(result.run_id) or RolloutRecord(result)
        return self._suites[result.suite].explain(replace(record, result=result))

    def __contains__(self, result: RunResult) -> bool:
        """Return whether the run is one of a data file: a test has a traceback of its own."""
        suite = self._suites.get(result.suite)
        return suite is not None and not suite.spec.scored_by_test


class SerializedReports:
    """A plugin of every process of an evaluation."""

    def __init__(
        self,
        sections: FailureSections,
        *,
        is_worker: bool,
        is_sent: Callable[[RunResult], bool],
        take_sent: Callable[[RunId], RunResult],
    ) -> None:
        """`is_sent`: the process that reports has this result, and gives it for its run, once."""
        self._sections = sections
        self._is_worker = is_worker
        self._is_sent = is_sent
        self._take_sent = take_sent

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self, report: Any) -> Generator[None, Any, Any]:
        """Put the JSON of a result in its place, or the run where the result was sent ahead.

        A worker leaves out what the item prints.
        """
        section = getattr(report, "longrepr", None)
        is_left_out = self._is_worker and compat.is_failure_section(section)
        if is_left_out:
            report.longrepr = None
        try:
            data = yield
        finally:
            if is_left_out:
                report.longrepr = section
        result = data.get(REPORT_FIELD) if isinstance(data, dict) else None
        if isinstance(result, RunResult):
            is_sent = self._is_sent(result)
            data[REPORT_FIELD] = [*result.run_id] if is_sent else result.to_json()
        return data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self) -> Generator[None, Any, Any]:
        """Put the result in the place of its JSON, and what the item prints where it was."""
        report = yield
        given = getattr(report, REPORT_FIELD, None)
        if isinstance(given, list):
            result = self._take_sent(RunId(*given))
        elif isinstance(given, str):
            result = RunResult.from_json(given)
        else:
            return report
        setattr(report, REPORT_FIELD, result)
        if report.longrepr is None and not report.passed and result in self._sections:
            report.longrepr = self._sections.of(result, report.nodeid)
        return report
