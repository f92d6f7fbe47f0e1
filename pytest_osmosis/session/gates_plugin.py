"""The gates of a pytest session: each reported as a test, and the exit status.

`analysis.gates.session_gates` evaluates; this module reports to pytest, so that the terminal,
JUnit, `--lf` and every other plugin see a gate. A worker only needs the gates' items
(`items.gates`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .. import compat
from ..analysis.gates.session_gates import GateEvaluator
from ..errors import ConfigurationError
from ..escaping import shown_path
from ..items.gates import GateCollector, node_id
from ..items.marks import ROOT, is_gate
from ..items.protocol import BELOW
from ..options.build_spec import gate_mistake
from ..options.reader import lists_only
from ..run_result import DECIDED, REPORT_FIELD, RunResult, SuiteInfo
from .gate_reports import VERDICT, begin_line, reports_of

if TYPE_CHECKING:
    from ..analysis.gates.parser import Gate
    from ..analysis.planned_rows import PlannedRows
    from ..rollouts.suite import Suite
    from ..run_result import RunId
    from ..spec import SessionSpec
    from ..suite_results import EvalResult, SuiteResult
    from ..verdicts import GateResult

_BY_ITSELF = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""Exit statuses of a session that was not cut short: nothing failed, something did."""


class GatedReports:
    """A pytest plugin where gates decide: how the reports of their runs, and their own, count."""

    def __init__(self, is_gated: Callable[[str], bool]) -> None:
        """`is_gated`: whether gates decide on a suite."""
        self._is_gated = is_gated
        self.failures = 0
        """Errors of gated runs: they do not fail the session."""
        self.outcomes: Counter[str] = Counter()
        """Of the gates that are reported."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the errors of gated runs."""
        run = getattr(report, REPORT_FIELD, None)
        if run is not None and report.failed and self._is_gated(run.suite):
            self.failures += 1

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """A passed gate counts as a gate; an inconclusive one is neither passed nor failed.

        A run below the threshold that fails nothing is counted as what it is.
        """
        if hasattr(report, BELOW):
            return "below", "-", ("BELOW", {"yellow": True})
        outcome = getattr(report, VERDICT, None) if report.when == "call" else None
        if outcome is None or outcome == "failed":
            return None
        gates = "gate" if self.outcomes[outcome] == 1 else "gates"
        letter, color = (".", "green") if outcome == "passed" else ("?", "yellow")
        return f"{gates} {outcome}", letter, (outcome.upper(), {color: True})


class GatesPlugin:
    """One a session and process; a pytest plugin where results are reported."""

    def __init__(
        self,
        spec: SessionSpec,
        *,
        suites: Mapping[str, Suite],
        infos: Callable[[], Mapping[str, SuiteInfo]],
        key_of: Callable[[pytest.Item], RunId | None],
    ) -> None:
        """`suites` are this process's, `infos` are of all suites of the session."""
        deciding = spec.deciding
        self._spec = spec
        self._suites = suites
        self._infos = infos
        self._several = sum(each.baseline_of is None for each in spec.evals) != 1
        self._collected: frozenset[str] = frozenset()
        self._session: pytest.Session
        self._lists_only = False
        self.evaluator = GateEvaluator(
            deciding.gates,
            confidence=deciding.confidence,
            has_baseline=deciding.has_baseline,
            rows_of=self._rows_of,
        )
        self.reports = GatedReports(self.is_gated)
        self.has_gated = bool(deciding.gates) or any(each.baseline_of for each in spec.evals)
        """Whether anything may be decided by gates, or observed only: then `reports` is needed."""
        self.gating: GateCollector | None = None
        """There where there are gates."""
        if deciding.gates:
            self.gating = GateCollector(
                self.evaluator, suites, several=self._several, key_of=key_of
            )

    def decide_on_marked(self) -> None:
        """The gates are for marked test functions: no data file is collected."""
        self.evaluator.for_marked = self._several = True
        if self.gating is not None:
            self.gating.several = True

    def _rows_of(self, info: SuiteInfo, columns: Collection[str]) -> PlannedRows:
        from ..analysis.planned_rows import planned
        from .suite_rows import rows_of

        return planned(rows_of(info, self._suites, self._spec), columns)

    # ---- before anything runs

    def check(self, info: SuiteInfo) -> None:
        """Raises ConfigurationError when a gate does not suit a suite."""
        from ..analysis.gates.parser import GateError

        try:
            self.evaluator.check(info)
        except GateError as error:
            raise ConfigurationError(gate_mistake(error)) from None

    def begin(
        self, infos: Iterable[SuiteInfo], folder_of: Callable[[SuiteInfo], Path]
    ) -> Iterator[str]:
        """Find what these suites are compared with, and check their gates; yield lines to show.

        `folder_of`: where each is kept. Raises ConfigurationError.
        """
        there = [info for info in infos if info.baseline_of is None]
        deciding = self._spec.deciding
        if deciding.baseline is not None:
            self._read_baseline(deciding.baseline, there)
        elif deciding.last:
            yield from self._find_last(there, folder_of)
        for info in there if deciding.gates else ():
            self.check(info)
        for error in self.evaluator.unused(there):
            raise ConfigurationError(gate_mistake(error))

    def _read_baseline(self, path: Path, infos: Sequence[SuiteInfo]) -> None:
        from ..analysis.baseline import baselines_of
        from ..reports.json_reader import UnreadableReport, read_report

        try:
            report = read_report(path, figures=False)
        except UnreadableReport as error:
            raise ConfigurationError(f"--osmosis-baseline {error}") from None
        found = baselines_of(report, infos, source=shown_path(path), alone=not self._several)
        for info in infos:
            if info.name not in found:
                raise ConfigurationError(
                    f"--osmosis-baseline {shown_path(path)}: it has no evaluation of {info.name}; "
                    "name a report of the same evaluation"
                )
        self.evaluator.baselines.update(found)

    def _find_last(
        self, infos: Iterable[SuiteInfo], folder_of: Callable[[SuiteInfo], Path]
    ) -> Iterator[str]:
        from ..storage.kept_result import last_complete

        for info in infos:
            found = last_complete(info, folder_of(info))
            if found is None:
                yield f"osmosis: no earlier complete evaluation of {info.name} to compare with"
            else:
                self.evaluator.baselines[info.name] = found
                yield f"osmosis: {info.name} is compared with {found.source}"

    def follow(self, halt: Callable[[str], None]) -> Callable[[RunResult], None] | None:
        """Return a listener for runs that end, which calls `halt` once every gate is settled.

        None where gates end no session.
        """
        if not self._spec.deciding.stop_when_decided:
            return None
        from ..analysis.gates.early_stopping import EarlyStopping

        stopping = EarlyStopping(
            self.evaluator, infos=self._infos, selected=self._is_selected, halt=halt
        )
        return stopping.ended

    # ---- hooks

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Whose progress the gates are left out of."""
        self._session = session
        self._lists_only = lists_only(session.config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """The items are known, where this process has collected them."""
        if self.gating is not None and self.gating.selected and not self._lists_only:
            self.count_runs_only()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """A worker has collected: which gates were selected."""
        self._collected = frozenset(filter(is_gate, ids))

    def count_runs_only(self) -> None:
        """The runs have reached 100 % when they are done; the gates come after that."""
        if self._session.config.get_verbosity() <= 0:
            self._session.testscollected -= len(self.selected)

    # ---- the end

    @property
    def selected(self) -> frozenset[str]:
        """Node ids of the gates that are evaluated."""
        collected_here = frozenset() if self.gating is None else self.gating.selected
        return self._collected | collected_here

    def is_gated(self, suite: str) -> bool:
        """Whether gates decide on a suite, and not its runs."""
        infos = self._infos()
        if (info := infos.get(suite)) is None or info.baseline_of is not None:
            return info is not None
        group = [each for each in infos.values() if each.group == info.group]
        return any(
            self._id(text, each) in self.selected
            for each in group
            for text in self.evaluator.texts(each)
        )

    @property
    def gated(self) -> bool:
        """Whether gates decide."""
        return bool(self.selected)

    def evaluated(self, result: EvalResult) -> EvalResult:
        """The result with intervals, verdicts and what changed."""
        digests = self._spec.output is not None
        evaluated = self.evaluator.evaluated(result, selected=self._is_selected, digests=digests)
        if result.halted != DECIDED:
            return evaluated
        from ..analysis.gates.early_stopping import saved

        return replace(evaluated, saved=saved(result))

    def settle(
        self,
        session: pytest.Session,
        result: EvalResult,
        explain: Callable[[GateResult, SuiteResult], str],
    ) -> None:
        """Report every gate, and let the exit status be theirs; `explain` those that failed.

        A failure that is no run's stays one, and whatever else ended the session stays its reason.
        """
        verdicts = [(suite, verdict) for suite in result.suites for verdict in suite.verdicts]
        if not verdicts or session.exitstatus not in _BY_ITSELF:
            return
        others_failed = session.testsfailed > self.reports.failures
        named_by_other = session.exitstatus != _BY_ITSELF[bool(session.testsfailed)]
        self.reports.outcomes.update(verdict.outcome for _, verdict in verdicts)
        begin_line(session.config)
        for suite, verdict in verdicts:
            section = explain(verdict, suite) if verdict.outcome == "failed" else ""
            self._report(session.config, suite.info, verdict, section)
        if not others_failed and not named_by_other:
            from ..analysis.gates.result import exit_status

            session.exitstatus = exit_status(verdict.outcome for _, verdict in verdicts)

    def _is_selected(self, gate: Gate, info: SuiteInfo) -> bool:
        return self._id(gate.text, info) in self.selected

    def _id(self, text: str, info: SuiteInfo) -> str:
        return node_id(text, info, several=self._several)

    def _report(
        self, config: pytest.Config, info: SuiteInfo, verdict: GateResult, section: str
    ) -> None:
        """The three reports of a test."""
        nodeid = self._id(verdict.gate, info)
        name = nodeid.removeprefix(f"{ROOT}::")
        # Not the node id's own end, in which the terminal takes dots for the names of classes.
        location = (ROOT, None, f"gate {name}")
        compat.name_in_junit(config, nodeid, name)
        config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        for report in reports_of(nodeid, location, verdict, section):
            config.hook.pytest_runtest_logreport(report=report)
        config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
