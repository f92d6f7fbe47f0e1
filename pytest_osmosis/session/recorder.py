"""Record results in the reporting process, and aggregate them.

Registered unless the process is an xdist worker. Knows nothing of collectors and engines; what is
written of the results is `outputs`'.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from ..run_result import (
    AT_FIRST,
    DECIDED,
    REPORT_FIELD,
    SUITE_FIELD,
    RunId,
    RunResult,
    SuiteInfo,
    selected_suites,
    whole_ms,
)
from ..verdicts import INCONCLUSIVE
from .gate_reports import report_gates
from .outputs import SessionOutputs

if TYPE_CHECKING:
    from ..spec import SessionSpec
    from ..storage.run_store import RunStore
    from ..suite_results import EvalResult, SuiteResult
    from ..verdicts import EvalVerdict
    from .gates import SessionGates
    from .seams import Feature


class Recorder:
    """Reports in, `EvalResult` out."""

    def __init__(
        self,
        config: pytest.Config,
        session: SessionSpec,
        infos: dict[str, SuiteInfo],
        gates: SessionGates,
        store: RunStore,
        *,
        on_first: Callable[[RunResult], None],
        with_row_data: Callable[[EvalResult], EvalResult] = lambda result: result,
        features: Sequence[Feature] = (),
    ) -> None:
        """`on_first` gets every run once, when it is first heard of; from any thread.

        `with_row_data` adds what the dataset holds of each row, for reports that show it.
        """
        self._config = config
        self._session = session
        self._started = time.monotonic()
        self._infos = infos
        self._gates = gates
        self._store = store
        self._features = features
        self._on_first = on_first
        self._outputs = SessionOutputs(
            config, session, store, result=lambda: self.result, with_row_data=with_row_data
        )
        self.failed = self._outputs.failed
        self._selected: Counter[str] = Counter()
        self._runs: dict[RunId, RunResult] = {}
        self._unreported: set[RunId] = set()
        """Runs that have ended and are still to be reported."""
        self._is_closed = False
        """No run that ends from now on is counted, unless it is reported."""
        self._reported: set[str] = set()
        self._reports: Counter[str] = Counter()
        """How many items of each suite have been reported."""
        self._halted: str | None = None
        self.settled: Callable[[RunResult], RunResult] = lambda run: run
        """Returns a run as the end of the session sees it: see `Supervisor.settled`."""
        self._spent: Callable[[], str] | None = None
        """There where a spent budget halted the session: says so, with what was used."""
        self._interrupted: str | None = None
        self._ends = False
        """Whether nothing is left for another session, once all is reported."""
        self._lock = threading.Lock()
        self.result: EvalResult | None = None
        self._problems: list[str] = []
        self._notices: list[str] = []
        self._environment: Mapping[str, Any] = {}

    # ---- called by the process that runs items

    def begin(self, environment: Mapping[str, Any]) -> None:
        """Note what reports say of where the session runs."""
        self._environment = environment

    def declare(self, info: SuiteInfo) -> None:
        """Take in a suite of the session."""
        self._infos[info.name] = info

    def select(self, selected: dict[str, int]) -> None:
        """Set how many runs of each suite were selected."""
        self._selected = Counter(selected)

    def selected_infos(self) -> Iterator[tuple[SuiteInfo, int]]:
        """Return each suite that has selected runs, and how many: see `selected_suites`."""
        return selected_suites(self._infos, self._selected)

    def note(self, run: RunId, result: RunResult, *, is_reported: bool = False) -> None:
        """Count a run that has ended; what its report says supersedes that. From any thread.

        A test's asserts decide on its run: that counts when it is reported.
        """
        if not is_reported and self._infos[run.suite].scored_by_test:
            return
        with self._lock:
            is_first = run not in self._runs
            if is_reported:
                self._unreported.discard(run)
            elif self._is_closed or not is_first:
                return
            else:
                self._unreported.add(run)
            self._runs[run] = result
        if is_first:
            self._on_first(result)

    def close_runs(self, *, leave_out_unreported: bool) -> None:
        """Count no run that ends from now on; or none that has no report either."""
        with self._lock:
            self._is_closed = True
            for run in self._unreported if leave_out_unreported else ():
                del self._runs[run]

    def was_cut_short(self, session: pytest.Session) -> bool:
        """Return whether a session has ended before it came to every item."""
        stopped = self._halted or self._interrupted or session.shouldstop or session.shouldfail
        ended = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        return bool(stopped or not ended or session.config.option.maxfail)

    def selected(self) -> int:
        """Return how many runs were selected in all."""
        return self._selected.total()

    def fail(self, problem: str) -> None:
        """Report at the end, and by the exit status, what could not be written."""
        if problem not in self._problems:
            self._problems.append(problem)

    def halt(self, reason: str, *, spent: Callable[[], str] | None = None) -> None:
        """No further run is started; `spent`: see `seams.Halt`."""
        is_graver = self._spent is not None and spent is None
        if self._halted is None or is_graver:
            self._halted, self._spent = reason, spent

    def infos(self) -> Mapping[str, SuiteInfo]:
        """Return the suites of the session, by name."""
        return self._infos

    def has_report(self, nodeid: str) -> bool:
        """Return whether the run of this item has been reported."""
        return nodeid in self._reported

    def tell(self, notice: str) -> None:
        """Add a line to the end of the session."""
        self._notices.append(notice)

    def interrupt(self, signal: str) -> None:
        """Remember which signal interrupted the session."""
        self._interrupted = signal

    # ---- hooks

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, object, object]:
        """A run's final report: what it carries supersedes what was noted."""
        result: RunResult | None = getattr(report, REPORT_FIELD, None)
        suite: str | None = None
        if result is not None:
            suite = result.suite
        elif not report.passed:  # skipped, or failed before it
            suite = getattr(report, SUITE_FIELD, report.nodeid.rpartition("[")[0])
        if suite in self._infos and report.nodeid not in self._reported:
            self._reported.add(report.nodeid)
            self._reports[suite] += 1
        if result is None:
            return (yield)
        self._outputs.add_report(report, result)
        self.note(result.run_id, result, is_reported=True)
        try:
            return (yield)
        finally:
            delattr(report, REPORT_FIELD)  # terminal and JUnit keep reports to the end

    @pytest.hookimpl(trylast=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Say so where the session ends before it began, such as while workers start."""
        if self._interrupted is not None:
            self._say_interrupted(self._interrupted)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Aggregate, write, and let the exit status say what could not be written."""
        if self._interrupted is not None:
            self._say_interrupted(self._interrupted)
        if not any(self._selected.values()):
            return
        if self._spent is not None or self._halted == DECIDED:
            self._halted = self._left_undone()
        is_ended = self._is_ended(session)
        self._store.flush()
        gathered = self._aggregated()
        self._guard(session, gathered)
        judged = self._gates.evaluated(gathered)
        for feature in self._features:
            judged = feature.evaluated(judged)
        self.result = judged
        report_gates(
            session,
            self.result,
            self._gates.letters.begin_gates,
            self._outputs.explained,
            several=self._gates.several,
        )
        self.result = self._with_verdicts(self.result)
        for suite in self.result.suites:
            self._store.keep_verdict(suite, self._environment.get("git"))
        self._store.flush()
        unwritten = list(self._outputs.write(self.result))
        for feature in self._features:
            unwritten += feature.write(self.result, self._outputs.printed)
        for problem in unwritten:
            self.fail(problem)
        self._ends = is_ended and not unwritten
        if self._problems or (self._halted and not self._gates_decide()):
            session.exitstatus = _at_least_failed(session.exitstatus)

    def end(self, session: pytest.Session) -> None:
        """Note that its evaluations have ended: all is reported, also by pytest and other plugins.

        Otherwise the same command reports its runs once more.
        """
        if self._interrupted is None:
            if self._ends:
                self._store.end()
        elif session.exitstatus != pytest.ExitCode.INTERRUPTED:
            told = f"interrupted by {self._interrupted} while the reports were being written"
            self._config.get_terminal_writer().line(told)
            session.exitstatus = pytest.ExitCode.INTERRUPTED

    def _with_verdicts(self, result: EvalResult) -> EvalResult:
        """Return the result with what each suite came to: what was cut short is unfinished."""
        is_halted = self._halted and not self._gates_decide()
        is_stopped = self._interrupted or self._problems or is_halted

        def verdict(suite: SuiteResult) -> EvalVerdict:
            if is_stopped and suite.has_gaps:
                return "unfinished"
            is_observed = not suite.verdicts and self._gates.is_gated(suite.info.name)
            return "passed" if is_observed else suite.state  # gates on another of its group decide

        return result.with_suites(lambda suite: replace(suite, verdict=verdict(suite)))

    def _gates_decide(self) -> bool:
        """Return whether what halted the session leaves the exit status to gates.

        Those that are decided and a spent budget do; an endpoint that went away does not.
        """
        return self._gates.gated and (self._halted == DECIDED or self._spent is not None)

    def _left_undone(self) -> str | None:
        """Return why runs were left out; None where every run has been run all the same."""
        if len(self._runs) >= self.selected():
            return None
        return self._halted if self._spent is None else self._spent()

    def _is_ended(self, session: pytest.Session) -> bool:
        """Return whether nothing but its results and options ended the session."""
        if self._interrupted or not (self._halted in (None, DECIDED) or self._failed_at_first()):
            return False
        by_itself = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        return bool(session.shouldfail) or session.exitstatus in by_itself

    def _failed_at_first(self) -> bool:
        """Return whether what halted the session is wrong with every run of it."""
        runs = list(self._runs.values())
        return any(run.error_kind in AT_FIRST and run.error == self._halted for run in runs)

    def _say_interrupted(self, signal: str) -> None:
        """What pytest prints of the interrupt: a sentence, and not the place of our handler."""
        done, selected = len(self._runs), self.selected()
        kept = " and kept" if done and self._session.keeping.journal else ""
        from ..reports.summary import share_done

        runs = f": {share_done(done, selected)}{kept}" if selected else ""
        compat.say_interrupted(self._config, f"interrupted by {signal}{runs}")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The evaluation's own section."""
        for notice in self._notices:
            terminalreporter.write_line(notice)
        if self.result is None:
            return
        self._outputs.show(terminalreporter, self.result, self._infos)
        for feature in self._features:
            for line in feature.lines(self.result):
                terminalreporter.write_line(line)
        for problem in self._problems:
            terminalreporter.write_line(f"ERROR: {problem}", red=True)

    def _aggregated(self) -> EvalResult:
        from ..analysis.aggregate import CONFIDENCE, aggregate  # no request waits for it
        from ..suite_results import EvalResult

        with self._lock:
            every = self._runs.values()
            runs = [run if run.error_type is None else self._settled(run) for run in every]
        suites = tuple(
            aggregate(
                info,
                (run for run in runs if run.suite == info.name),
                selected=selected,
                confidence=self._session.deciding.confidence or CONFIDENCE,
                repeated=self._store.repeated(info.name),
            )
            for info, selected in self.selected_infos()
        )
        duration_ms = whole_ms((time.monotonic() - self._started) * 1000.0)
        return EvalResult(
            suites, duration_ms, self._halted, self._interrupted, environment=self._environment
        )

    def _settled(self, run: RunResult) -> RunResult:
        """Return the run as the end of the session sees it, and keep that."""
        settled = self.settled(run)
        if settled is not run and not run.cached:
            self._store.log.report(run.run_id, settled)
        return settled

    def _guard(self, session: pytest.Session, result: EvalResult) -> None:
        """A session that ended by itself has a result for every run that was selected."""
        if self.was_cut_short(session):
            return
        for suite in result.suites:
            name = suite.info.name
            missing = self._selected[name] - self._reports[name]
            if missing > 0:
                self._problems.append(
                    f"{name}: {missing} of {suite.selected} selected runs were never "
                    f"reported{_named(suite, missing, self._reported)}"
                )


def _named(suite: SuiteResult, missing: int, reported: Iterable[str]) -> str:
    """The first of the missing runs, where it is plain which they are."""
    have = {nodeid.rpartition("::")[2] for nodeid in reported}
    offset = suite.info.settings.get("offset", 0)
    rows = range(offset, offset + suite.info.rows)
    every = (f"row-{row}[run-{run}]" for row in rows for run in range(suite.info.n))
    names = [name for name in every if name not in have]
    if len(names) != missing:
        return ""
    return f": {', '.join(names[:5])}{' …' if len(names) > 5 else ''}"


def _at_least_failed(status: Any) -> Any:
    better = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, INCONCLUSIVE)
    return pytest.ExitCode.TESTS_FAILED if status in better else status
