"""The gates of a pytest session: which decide, what they are held at, and the exit status.

`analysis.gates.session_gates` evaluates; each is reported as a test (`gate_reports`). Gates decide
on a suite of which every run is selected, and make its runs observations. Of a part (`-k` for one
row, a node id) the runs decide, as in a session without gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..analysis.gates.session_gates import GateEvaluator
from ..errors import ConfigurationError
from ..escaping import shown_path
from ..options.build_spec import gate_mistake
from ..run_result import RunResult, SuiteInfo
from .gate_reports import report_gate
from .outcome_letters import OutcomeLetters

if TYPE_CHECKING:
    from ..analysis.gates.parser import Gate
    from ..analysis.planned_rows import PlannedRows
    from ..rollouts.suite import Suite
    from ..spec import SessionSpec
    from ..suite_results import EvalResult, SuiteResult
    from ..verdicts import GateResult

_BY_ITSELF = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
"""Exit statuses of a session that was not cut short: nothing failed, something did."""


class SessionGates:
    """One a session and process: which gates decide, and what becomes of them."""

    def __init__(
        self,
        spec: SessionSpec,
        *,
        suites: Mapping[str, Suite],
        infos: Callable[[], Mapping[str, SuiteInfo]],
    ) -> None:
        """`suites` are this process's, `infos` are of all suites of the session."""
        deciding = spec.deciding
        self._spec = spec
        self._suites = suites
        self._infos = infos
        self._several = sum(each.baseline_of is None for each in spec.evals) != 1
        self._selected: Mapping[str, int] = {}
        self.evaluator = GateEvaluator(
            deciding.gates,
            confidence=deciding.confidence,
            has_baseline=deciding.has_baseline,
            rows_of=self._rows_of,
        )
        self.letters = OutcomeLetters()
        self.has_gated = bool(deciding.gates) or any(each.baseline_of for each in spec.evals)
        """Whether anything may be decided by gates, or observed only: then `letters` is needed."""

    def decide_on_marked(self) -> None:
        """The gates are for marked test functions: no data file is collected."""
        self.evaluator.for_marked = self._several = True

    def _rows_of(self, info: SuiteInfo) -> PlannedRows:
        from ..analysis.planned_rows import planned
        from .suite_rows import rows_of

        return planned(rows_of(info, self._suites, self._spec))

    # ---- before anything runs

    def check(self, info: SuiteInfo) -> None:
        """Raises ConfigurationError when a gate does not suit a suite."""
        from ..analysis.gates.parser import GateError

        try:
            self.evaluator.gates(info)
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
        for error in self.evaluator.unclear(there):
            raise ConfigurationError(gate_mistake(error))

    def _read_baseline(self, path: Path, infos: Sequence[SuiteInfo]) -> None:
        from ..analysis.baseline import NoCounterpart, baselines_of
        from ..reports.json_reader import UnreadableReport, read_result

        try:
            report = read_result(path, figures=False)
        except UnreadableReport as error:
            raise ConfigurationError(f"--osmosis-baseline {error}") from None
        source = shown_path(path)
        try:
            found = baselines_of(report, infos, source=source)
        except NoCounterpart as error:
            raise ConfigurationError(
                f"--osmosis-baseline {source}: {error}; name a report of the same evaluation"
            ) from None
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

    # ---- once the runs are known

    def select(self, selected: Mapping[str, int]) -> None:
        """Take how many runs of each suite are selected: where all are, gates decide."""
        self._selected = selected
        for suite in self._suites.values():
            suite.gated = suite.gated or self._is_group_gated(suite.info)

    def _is_group_gated(self, info: SuiteInfo) -> bool:
        """Return whether a gate decides on the suite, or on another candidate beside it."""
        known = [*self._infos().values(), *(suite.info for suite in self._suites.values())]
        return any(each.group == info.group and self._decides(each) for each in known)

    def _decides(self, info: SuiteInfo) -> bool:
        """Return whether the suite has gates, and all of its runs are selected."""
        is_whole = self._selected.get(info.name) == info.total_runs
        return is_whole and bool(self.evaluator.texts(info))

    # ---- the end

    def is_gated(self, suite: str) -> bool:
        """Whether gates decide on a suite, and not its runs."""
        info = self._infos().get(suite)
        return info is not None and (info.baseline_of is not None or self._is_group_gated(info))

    @property
    def gated(self) -> bool:
        """Whether gates decide."""
        return any(map(self._decides, self._infos().values()))

    def evaluated(self, result: EvalResult) -> EvalResult:
        """The result with intervals, verdicts and what changed."""
        digests = self._spec.output is not None
        return self.evaluator.evaluated(result, selected=self._is_selected, digests=digests)

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
        others_failed = bool(session.testsfailed)
        named_by_other = session.exitstatus != _BY_ITSELF[others_failed]
        self.letters.begin_gates(session, [verdict.outcome for _, verdict in verdicts])
        for suite, verdict in verdicts:
            section = explain(verdict, suite) if verdict.outcome == "failed" else ""
            named = [suite.info.name, verdict.gate] if self._several else [verdict.gate]
            report_gate(session.config, "::".join(named), verdict, section)
        if not others_failed and not named_by_other:
            from ..analysis.gates.result import exit_status

            session.exitstatus = exit_status(verdict.outcome for _, verdict in verdicts)

    def _is_selected(self, gate: Gate, info: SuiteInfo) -> bool:
        return self._decides(info)
