"""Controller only (or the only process): gathers what happened, aggregates it, writes reports.

Registered unless the process is an xdist worker. Never asks a collector or an engine anything.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .aggregation import aggregate
from .failures import clean
from .results import EvalResult, RunResult, SuiteInfo
from .spec import SessionSpec

REPORT_FIELD = "osmosis"
"""The attribute of a pytest report that carries a run's result as one JSON string."""


class Recorder:
    """Reports in, `EvalResult` out."""

    def __init__(self, config: pytest.Config, session: SessionSpec) -> None:
        self._config = config
        self._session = session
        self._started = time.monotonic()
        self._infos: dict[str, SuiteInfo] = {}
        self._selected: Counter[str] = Counter()
        self._runs: dict[tuple[str, int, int], RunResult] = {}
        self._halted: str | None = None
        self._lock = threading.Lock()
        self.result: EvalResult | None = None
        self._written: list[str] = []
        self._problems: list[str] = []
        self._notices: list[str] = []

    # ---- told by the process that runs items

    def declare(self, info: SuiteInfo) -> None:
        """A suite of the session."""
        self._infos[info.name] = info

    def select(self, selected: dict[str, int]) -> None:
        """How many runs of each suite were selected."""
        self._selected = Counter(selected)

    def note(self, run: RunResult) -> None:
        """A run has ended; its item may be reported later. From any thread."""
        with self._lock:
            self._runs[run.key] = run

    def halt(self, reason: str) -> None:
        """No further run is started."""
        if self._halted is None:
            self._halted = reason

    def threshold_of(self, suite: str) -> float:
        """The pass threshold of a declared suite."""
        return self._infos[suite].pass_threshold

    def tell(self, notice: str) -> None:
        """A line for the end of the session."""
        self._notices.append(notice)

    # ---- hooks

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A run's final report: what it carries supersedes what was noted."""
        text = getattr(report, REPORT_FIELD, None)
        if text is not None:
            self.note(RunResult.from_json(text))
            delattr(report, REPORT_FIELD)  # terminal and JUnit keep reports to the end

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Aggregate, write, and let the exit status say what could not be written."""
        if self._config.option.collectonly or not self._infos:
            return
        self.result = self._aggregated()
        self._tell_junit(self.result)
        if self._session.output is not None:
            self._write(self._session.output)
        if self._problems or self._halted:
            session.exitstatus = _at_least_failed(session.exitstatus)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The evaluation's own section."""
        for notice in self._notices:
            terminalreporter.write_line(notice)
        if self.result is None or not any(suite.selected for suite in self.result.suites):
            return
        if self._config.get_verbosity() > -2:
            self._show(terminalreporter, self.result)
        for problem in self._problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True)

    def _show(self, terminal: Any, result: EvalResult) -> None:
        from .reports.terminal import summary

        terminal.section("osmosis summary")
        for line in summary(result):
            terminal.write_line(clean(line))
        for lines in self._config.hook.pytest_osmosis_summary(result=result, config=self._config):
            for line in [lines] if isinstance(lines, str) else lines or ():
                terminal.write_line(line)
        for path in self._written:
            terminal.write_line(f"report: {path}")

    def _aggregated(self) -> EvalResult:
        with self._lock:
            runs = list(self._runs.values())
        suites = tuple(
            aggregate(
                info,
                (run for run in runs if run.suite == name),
                selected=self._selected[name],
            )
            for name, info in self._infos.items()
        )
        duration_ms = (time.monotonic() - self._started) * 1000.0
        return EvalResult(suites, duration_ms, self._halted)

    def _tell_junit(self, result: EvalResult) -> None:
        from _pytest.junitxml import xml_key

        xml = self._config.stash.get(xml_key, None)
        if xml is not None:
            from .reports import junit

            for name, value in junit.properties(result):
                xml.add_global_property(name, value)

    def _write(self, path: Path) -> None:
        assert self.result is not None
        from .reports import json

        shown = _shown(path)
        try:
            json.write(self.result, path)
        except OSError as error:
            self._problems.append(f"cannot write {shown}: {error.strerror or error}")
        else:
            self._written.append(shown)


def _at_least_failed(status: Any) -> Any:
    failed = pytest.ExitCode.TESTS_FAILED
    return failed if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else status


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
