"""What the terminal shows of runs that did not pass: which, and in what order.

The gates that failed come after them. The reports are taken out of the lists that pytest shows one
by one, and put back, so that its counts stay; those of other tests are left to pytest. How they are
shown is `failed_sections`', which is imported when the session has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..items.protocol import ERRORED, OBSERVED
from ..outcomes import OUTCOMES
from ..run_result import RunResult
from .gate_reports import VERDICT

if TYPE_CHECKING:
    from ..suite_results import EvalResult, RowResult
    from .failed_sections import Group

TITLES: dict[str, str] = {
    "error": "ERRORS",
    ERRORED: "ERRORS",
    "failed": "FAILURES",
    **{
        each: each.upper() for each, style in OUTCOMES.items() if style.is_error and each != "error"
    },
}
"""Of the sections of each status, pytest's or of runs that gates observe, in order."""
_OBSERVED = tuple(
    ERRORED if each == "error" else each for each in OUTCOMES if each not in ("passed", "not run")
)
_NUMBER = re.compile(r"\d+(\.\d+)?")


class FailedRuns:
    """A plugin of the process that reports."""

    def __init__(
        self,
        config: pytest.Config,
        *,
        result: Callable[[], EvalResult | None],
        where: Callable[[str], str],
    ) -> None:
        """`result` is there when the session has ended; `where` says where a suite's runs are."""
        self._config = config
        self._result = result
        self._where = where
        self._runs: dict[str, RunResult] = {}
        self._rows: dict[tuple[str, int], RowResult] = {}
        self._own: dict[str, list[Any]] = {}
        self._foreign: dict[str, list[Any]] = {}

    def note(self, nodeid: str, run: RunResult) -> None:
        """Note the run of an item that did not pass."""
        self._runs[nodeid] = run

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, object, object]:
        """Show the runs, then have pytest show everything else."""
        from ..reports.highlights import refusal

        result = self._result()
        if result is None:
            return (yield)
        stats = compat.reports_by_status(terminalreporter)
        self._take(stats, result)
        has_own = any(self._own.values())
        if has_own and self._config.option.tbstyle != "no" and refusal(result) is None:
            from .failed_sections import FailedSections

            groups = {status: self._groups(self._own.get(status, ())) for status in TITLES}
            FailedSections(terminalreporter, self._where).show(groups, TITLES)
        try:
            return (yield)
        finally:
            self._put(stats, self._own)

    def put_back(self, terminal: Any) -> None:
        """Put all reports back, for whatever looks at them."""
        self._put(compat.reports_by_status(terminal), self._own)

    def for_short_summary(self, terminal: Any) -> None:
        """Leave the reports that pytest's short summary names: one a group, or none."""
        from ..reports.highlights import refusal

        result, verbose = self._result(), self._config.get_verbosity() > 0
        for status, own in self._own.items():
            shown = own if verbose else self._short(own)
            if result is not None and refusal(result) is not None:
                shown = []
            self._put(compat.reports_by_status(terminal), {status: shown})

    def _short(self, own: Sequence[Any]) -> list[Any]:
        if not own:
            return []
        from .failed_sections import short

        return [short(group) for group in self._groups(own)]

    def _take(self, stats: dict[str, list[Any]], result: EvalResult) -> None:
        """Take the reports of runs out of the terminal's lists, sorted by row and run."""
        names = [suite.info.name for suite in result.suites]
        wanted = {(run.suite, run.row_index) for run in self._runs.values()}
        self._rows = {
            (suite.info.name, row.row_index): row
            for suite in result.suites
            for row in suite.rows
            if (suite.info.name, row.row_index) in wanted
        }
        for status in filter(stats.__contains__, TITLES):
            own: list[Any] = []
            foreign: list[Any] = []
            for report in stats[status]:
                is_own = hasattr(report, VERDICT) or self._run(report) is not None
                (own if is_own else foreign).append(report)
            self._foreign[status] = foreign
            self._own[status] = sorted(own, key=lambda report: self._place(report, names))
            stats[status][:] = foreign

    def _put(self, stats: dict[str, list[Any]], own: Mapping[str, list[Any]]) -> None:
        for status, reports in own.items():
            stats[status][:] = [*reports, *self._foreign[status]]

    def _run(self, report: Any) -> RunResult | None:
        return self._runs.get(str(getattr(report, "nodeid", "")))

    def _place(self, report: Any, names: list[str]) -> tuple[int, int, int]:
        run = self._run(report)
        if run is None or run.suite not in names:  # a gate
            return len(names), 0, 0
        return names.index(run.suite), run.row_index, run.run_index

    def _groups(self, reports: Iterable[Any]) -> list[Group]:
        """Return the runs of a row together, and those with one and the same error."""
        found: dict[object, list[Any]] = {}
        for report in reports:
            run = self._run(report)
            key: object = str(report.nodeid) if run is None else (run.suite, run.row_index)
            if run is not None and run.error_type is not None:
                key = (run.suite, run.error_type, _NUMBER.sub("", run.error or ""))
            found.setdefault(key, []).append(report)
        return [self._group(each) for each in found.values()]

    def _group(self, reports: Sequence[Any]) -> Group:
        from .failed_sections import Group

        runs = [run for report in reports if (run := self._run(report)) is not None]
        row = self._rows.get((runs[0].suite, runs[0].row_index)) if runs else None
        ended = len(row.runs) if row is not None and runs[0].error_type is None else 0
        return Group(reports[0], runs, ended)


def _observed(terminal: Any) -> Iterator[str]:
    """A line for each run that did not pass and fails nothing, as `-rx` has one a xfail."""
    stats = compat.reports_by_status(terminal)
    for status in _OBSERVED:
        for report in stats.get(status, ()):
            outcome = getattr(report, OBSERVED)
            yield f"{outcome.upper()} {report.nodeid} - {report.wasxfail}"


class BeforeSummaries:
    """A plugin: what comes first of all that writes to the terminal's summary."""

    def __init__(self, failed: FailedRuns) -> None:
        self._failed = failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Have other plugins find every report."""
        self._failed.put_back(terminalreporter)


class ShortSummary:
    """A plugin: what comes last before pytest's short summary."""

    def __init__(self, failed: FailedRuns) -> None:
        self._failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Leave what pytest names line by line, and name what it does not know."""
        if terminalreporter.hasopt("x"):
            from .screen import Screen

            Screen(terminalreporter).lines(_observed(terminalreporter))
        self._failed.for_short_summary(terminalreporter)
