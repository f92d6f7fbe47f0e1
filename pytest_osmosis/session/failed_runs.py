"""What the terminal shows of runs that did not pass: one section a row, ten at most, in order.

The gates that failed come after them. The reports are taken out of the lists that pytest shows one
by one, and put back, so that its counts stay; those of other tests are left to pytest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from .. import compat
from ..reports.highlights import refusal
from ..reports.line_markup import hanging, sentence
from ..results import ROLLOUT, EvalResult, RowResult, RunResult
from ..verdicts import counted
from .gate_reports import VERDICT
from .screen import Screen

SECTIONS_SHOWN = 10
"""Sections of a session; with `-vv` all are shown."""
_STATUSES = ("error", "failed")
_TITLES = {"error": "ERRORS", "failed": "FAILURES"}
_NUMBER = re.compile(r"\d+(\.\d+)?")
_KEPT_SHORT = re.compile(r"  (?:user|ground truth|answer|reason)  ")
_BLOCK = re.compile(r"  (?:[a-z]+ [a-z]+|[a-z]+)  |  \(|  \d")


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that did not pass and belong together: of one row, or with one error."""

    report: pytest.TestReport
    """That of the first run."""
    runs: Sequence[RunResult]
    of: int
    """Runs of the row that have ended; 0 for runs with one error."""

    @property
    def others(self) -> str:
        """What there is besides the first run, in brackets; "" where there is nothing."""
        if self.of > 1:
            return f" ({len(self.runs)} of {self.of} runs failed)"
        more = max(0, len(self.runs) - 1)
        return f" (the same in {counted(more, 'more run')})" if more and not self.of else ""


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
        result = self._result()
        if result is None:
            return (yield)
        stats = compat.reports_by_status(terminalreporter)
        self._take(stats, result)
        if self._config.option.tbstyle != "no" and refusal(result) is None:
            self._show(terminalreporter)
        try:
            return (yield)
        finally:
            self._put(stats, self._own)

    def put_back(self, terminal: Any) -> None:
        """Put all reports back, for whatever looks at them."""
        self._put(compat.reports_by_status(terminal), self._own)

    def for_short_summary(self, terminal: Any) -> None:
        """Leave the reports that pytest's short summary names: one a group, or none."""
        result, verbose = self._result(), self._config.get_verbosity() > 0
        for status, own in self._own.items():
            shown = own if verbose else [_short(group) for group in self._groups(own)]
            if result is not None and refusal(result) is not None:
                shown = []
            self._put(compat.reports_by_status(terminal), {status: shown})

    def _take(self, stats: dict[str, list[Any]], result: EvalResult) -> None:
        """Take the reports of runs out of the terminal's lists, sorted by row and run."""
        names = [suite.info.name for suite in result.suites]
        self._rows = {
            (suite.info.name, row.row_index): row for suite in result.suites for row in suite.rows
        }
        for status in filter(stats.__contains__, _STATUSES):
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
        """The runs of a row together, and those with one and the same error."""
        found: dict[object, list[Any]] = {}
        for report in reports:
            run = self._run(report)
            key: object = str(report.nodeid) if run is None else (run.suite, run.row_index)
            if run is not None and run.error_type is not None:
                key = (run.suite, run.error_type, _NUMBER.sub("", run.error or ""))
            found.setdefault(key, []).append(report)
        return [self._group(each) for each in found.values()]

    def _group(self, reports: Sequence[Any]) -> Group:
        runs = [run for report in reports if (run := self._run(report)) is not None]
        row = self._rows.get((runs[0].suite, runs[0].row_index)) if runs else None
        ended = len(row.runs) if row is not None and runs[0].error_type is None else 0
        return Group(reports[0], runs, ended)

    def _show(self, terminal: Any) -> None:
        """Show the errors, then the failures: ten sections in all, unless `-vv` asks for more."""
        groups = {status: self._groups(self._own.get(status, ())) for status in _STATUSES}
        runs = {status: sum(bool(group.runs) for group in groups[status]) for status in _STATUSES}
        left = SECTIONS_SHOWN if self._config.get_verbosity() <= 1 else sum(runs.values())
        errors = min(runs["error"], max(left // 2, left - runs["failed"]))
        for status, limit in (("error", errors), ("failed", left - errors)):
            if groups[status]:
                self._show_status(status, groups[status], limit, terminal)

    def _show_status(self, status: str, groups: Sequence[Group], limit: int, terminal: Any) -> None:
        screen = Screen(terminal)
        screen.title(_TITLES[status])
        if self._config.option.tbstyle == "line":
            screen.lines(
                f"{group.report.nodeid}: {_message(group.report)}{group.others}" for group in groups
            )
            return
        of_runs = [group for group in groups if group.runs]
        for group in of_runs[:limit]:
            self._section(group, screen, terminal)
        if left := [run for group in of_runs[limit:] for run in group.runs]:
            rows = counted(len({(run.suite, run.row_index) for run in left}), "more row")
            screen.lines(["", f"{rows}: {self._where(left[0].suite)}"])
        for group in groups:
            if not group.runs:  # a gate
                self._section(group, screen, terminal)

    def _section(self, group: Group, screen: Screen, terminal: Any) -> None:
        report: Any = group.report
        screen.title(f"{_name(report)}{group.others}", "_", red=True, bold=True)
        is_short = bool(group.runs) and self._config.option.tbstyle == "short"
        if isinstance(report.longrepr, str) or compat.is_text(report.longrepr):
            lines = str(report.longrepr).rstrip().splitlines()
            if not group.runs:  # a gate's sentences
                lines = [part for line in lines for part in sentence(line, screen.width)]
            show_section(_without_steps(lines) if is_short else lines, screen)
        else:  # a test function's own traceback
            report.longrepr.toterminal(terminal.config.get_terminal_writer())
        for text in (text for title, text in report.sections if title == ROLLOUT):
            lines = ["", *text.splitlines()]
            show_section(_without_steps(lines) if is_short else lines, screen)
        for title, text in self._captured(report, terminal):
            screen.title(title, "-")
            screen.lines(part for line in text.rstrip("\n").split("\n")
                         for part in hanging(line, screen.width))  # fmt: skip

    def _captured(self, report: pytest.TestReport, terminal: Any) -> Iterator[tuple[str, str]]:
        """What the run printed and logged, as far as `--show-capture` wants it."""
        wanted = self._config.option.showcapture
        seen = [section for section in report.sections if section[0] != ROLLOUT]
        for other in compat.reports_by_status(terminal).get("", ()):
            if getattr(other, "when", None) == "teardown" and other.nodeid == report.nodeid:
                seen += [section for section in other.sections if section not in seen]
        if wanted != "no":
            yield from (each for each in seen if wanted == "all" or wanted in each[0])


def _below(terminal: Any) -> Iterator[str]:
    """A line for each run below the threshold that fails nothing, as `-rx` has one a xfail."""
    for report in compat.reports_by_status(terminal).get("below", ()):
        yield f"BELOW {report.nodeid} - {report.wasxfail}"


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
            Screen(terminalreporter).lines(_below(terminalreporter))
        self._failed.for_short_summary(terminalreporter)


def show_section(lines: Iterable[str], screen: Screen) -> None:
    """Write the section of a run: what went wrong in red, the conversation below it."""
    is_headline = True
    for line in lines:
        is_headline = is_headline and bool(line.strip())
        screen.lines(hanging(line, screen.width), style="bad" if is_headline else None)


def _without_steps(lines: Iterable[str]) -> list[str]:
    """What went wrong, the question, the last answer, and what was expected: `--tb=short`."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if _BLOCK.match(line):
            blocks.append([])
        blocks[-1].append(line)
    said = [block for block in blocks[1:] if block[0].startswith("  assistant  ")]
    kept = [block for block in blocks[1:] if _KEPT_SHORT.match(block[0]) or block in said[-1:]]
    return [line for block in (blocks[0], *kept) for line in block]


def _name(report: pytest.TestReport) -> str:
    return report.head_line or str(report.nodeid)


def _message(report: Any) -> str:
    """What went wrong, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", None) or report.longrepr).partition("\n")[0]


def _short(group: Group) -> Any:
    """The report of a group for the short summary: its message says how many runs it stands for."""
    report = group.report
    if not group.others:
        return report
    line = f"{group.others.strip(' ()')}: {_message(report)}"
    return pytest.TestReport(
        nodeid=report.nodeid,
        location=report.location,
        keywords={},
        outcome=report.outcome,
        longrepr=compat.failure_section(line, path=report.location[0], line=line),
        when=report.when,
    )
