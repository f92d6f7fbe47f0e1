"""What a session leaves to read: report files, the terminal's summary, JUnit's part.

In the process that reports, at the end. Knows the result and the reports of runs that did not pass;
does not know how they came together (`recorder`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..escaping import escape_control_chars, exact_text, shown_path
from ..options.reader import OptionReader
from ..reports.formats import Conversations, asked_reports
from ..run_result import ROLLOUT, RunId, RunResult
from .failed_runs import FailedRuns

if TYPE_CHECKING:
    from ..spec import SessionSpec
    from ..storage.run_store import RunStore
    from ..suite_results import EvalResult, SuiteResult
    from ..verdicts import GateResult


class SessionOutputs:
    """One a session."""

    def __init__(
        self,
        config: pytest.Config,
        session: SessionSpec,
        store: RunStore,
        *,
        result: Callable[[], EvalResult | None],
        with_row_data: Callable[[EvalResult], EvalResult],
    ) -> None:
        """`with_row_data` adds what the dataset holds of each row, for reports that show it."""
        self._config = config
        self._session = session
        self._store = store
        self._with_row_data = with_row_data
        self._reports: dict[RunId, pytest.TestReport] = {}
        """Of runs that did not pass; the last report of each."""
        self._shown: set[RunId] = set()
        """Runs that the section of a gate shows."""
        self._written: list[str] = []
        self.failed = FailedRuns(config, result=result, where=self._where)
        """What the terminal shows of runs that did not pass."""

    def add_report(self, report: pytest.TestReport, run: RunResult) -> None:
        """Take the report of a run."""
        if not report.passed:
            self.failed.note(report.nodeid, run)
        if report.longrepr:
            self._reports[run.run_id] = report
        elif self._reports:
            self._reports.pop(run.run_id, None)

    def explained(self, verdict: GateResult, suite: SuiteResult) -> str:
        """Return the section of a gate that failed."""
        from ..reports.gate_section import gate_section
        from ..rollouts.failure_text import harmless

        where = self._where(suite.info.name)
        lines = gate_section(verdict, suite, section_of=self._once, where=where)
        return harmless(["\n".join(lines)])

    def _once(self, run: RunId) -> str | None:
        """What the item of a run printed; None where the section of a gate above shows it."""
        if run in self._shown:
            return None
        self._shown.add(run)
        return self._section(run)

    # ---- files

    def write(self, result: EvalResult) -> Iterator[str]:
        """Write the files that were asked for; yield why one could not be written."""
        for name, value in _junit_properties(result):
            compat.junit_property(self._config, name, value)
        for report, path in asked_reports(self._session):
            shown = self._with_row_data(result) if report.needs_rows else result
            write = report.writer(self._conversations() if report.needs_conversations else None)
            problem = _written(path, partial(write, shown, path, self.printed))
            if problem is not None:
                yield problem
            elif report.option != "output" or not OptionReader(self._config).output_is_temporary:
                self._written.append(f"{report.title}: {shown_path(path)}")
        if (conversations := self._session.trajectories) is not None:
            from ..storage.excerpt import export

            runs = (run for suite in result.with_companions for run in suite.runs)
            write_said = partial(export, conversations, runs, self._store.log.read_conversation)
            problem = _written(conversations, write_said)
            if problem is not None:
                yield problem

    def _conversations(self) -> Conversations | None:
        """Return what reads the conversations; None where no answer is to be shown."""
        return self._store.log.record if self._session.answers else None

    def printed(self, run: RunId) -> str | None:
        """Return what pytest reports of a run; None where it passed."""
        return self._section(run) if run in self._reports else None

    def _section(self, run: RunId) -> str:
        """What the item of a run that did not pass printed."""
        report = self._reports.get(run)
        if report is None:
            return ""
        said = [text for title, text in report.sections if title == ROLLOUT]
        return "\n\n".join([str(report.longrepr).rstrip(), *said])

    def _where(self, suite: str) -> str:
        """Say where all conversations of a suite can be read."""
        if (page := self._page()) is not None:
            return shown_path(page)
        place = self._store.places().get(suite)
        if place is None or not self._store.keeps(suite):
            return "-vv shows all"
        return f"osmosis eval runs show {Path(place.folder).name}"

    def _page(self) -> Path | None:
        """Return the page that shows every run, if one was asked for."""
        asked = asked_reports(self._session)
        return next((path for report, path in asked if report.is_page), None)

    # ---- the terminal

    def show(self, terminal: Any, result: EvalResult, suites: Iterable[str]) -> None:
        """Write the summary, unless `-qq`; `suites`: the session's, by name."""
        if self._config.get_verbosity() < -1:
            return
        from ..reports.summary import next_step, summary
        from .screen import Screen

        screen = Screen(terminal)
        screen.title("osmosis summary")
        kept = any(map(self._store.keeps, suites))
        verbose = self._config.get_verbosity() > 0
        lines = summary(result, kept=kept, width=screen.width, verbose=verbose)
        screen.lines(map(escape_control_chars, lines))
        if step := next_step(result, self._store.keeps):
            screen.line(step)
        for lines in self._config.hook.pytest_osmosis_summary(result=result, config=self._config):
            for line in [lines] if isinstance(lines, str) else lines or ():
                terminal.write_line(line)
        for line in self._written:
            terminal.write_line(line)
        trajectories = self._session.trajectories
        if trajectories is not None and trajectories.exists():
            terminal.write_line(f"conversations: {shown_path(trajectories)}")
        screen.lines(filter(None, [self._view(result)]))
        if self._session.batch_size == 1 and not self._config.getoption("usepdb", False):
            from ..reports.waits import waits_line

            screen.lines(filter(None, [waits_line(result)]))

    def _view(self, result: EvalResult) -> str:
        """Say how to look at the kept runs; "" in CI, with `-q`, and where a page was asked for."""
        from ..reports.highlights import refusal

        kept = any(each.finished and self._store.keeps(each.info.name) for each in result.suites)
        elsewhere = self._page() or os.environ.get("CI") or self._session.keeping.run_dir
        if elsewhere or not kept or self._config.get_verbosity() < 0 or refusal(result):
            return ""
        return "look at every run: osmosis eval view"


def _written(path: Path, write: Callable[[], None]) -> str | None:
    """Write a file; return why that was not possible, if so."""
    try:
        write()
    except OSError as error:
        return f"cannot write {shown_path(path)}: {error.strerror or error}"
    return None


def _junit_properties(result: EvalResult) -> Iterator[tuple[str, str]]:
    """Return the suite-level properties; with several suites, names begin with the suite's."""
    for suite in result.suites:
        prefix = f"{suite.info.name}::" if len(result.suites) > 1 else ""
        yield f"{prefix}osmosis_model", suite.info.model
        yield f"{prefix}osmosis_runs", str(suite.finished)
        for function in suite.functions:
            for figure in function.figures.values():
                if figure.value is not None:
                    yield (
                        f"{prefix}osmosis_{figure.field}[{function.name}]",
                        exact_text(figure.value),
                    )
            yield f"{prefix}osmosis_missing[{function.name}]", str(function.missing)
