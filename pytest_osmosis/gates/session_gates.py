"""What a session's results decide: intervals, the comparison with a baseline, a verdict per gate.

One a session, in the process that reports: suites with results become suites with verdicts. Knows
no pytest; who is told, and with what exit status, is in `deciding_session`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..results import EvalResult, SuiteInfo, SuiteResult

if TYPE_CHECKING:
    from ..analysis.baseline import Baseline
    from ..analysis.planned_rows import PlannedRows
    from ..analysis.score_table import ScoreTable
    from .parser import Gate
    from .result import GateResult

RowsOf = Callable[[SuiteInfo, Collection[str]], "PlannedRows"]
"""The rows of a suite, with the values of some columns."""

Selected = Callable[["Gate", SuiteInfo], bool]
"""Whether a gate is to be judged."""


class GateEvaluator:
    """The gates and baselines of a session."""

    def __init__(
        self,
        gates: Iterable[str] = (),
        *,
        confidence: float | None = None,
        has_baseline: bool = False,
        rows_of: RowsOf,
    ) -> None:
        """`confidence` widens the bounds of gates; the intervals that are shown have it too."""
        self.confidence = confidence
        self.baselines: dict[str, Baseline] = {}
        """By suite: what it is compared with, as far as that is known before anything runs."""
        self.for_marked = False
        """The gates are for marked test functions; else for data files."""
        self._has_baseline = has_baseline
        self._gates = _parsed(tuple(gates))
        self._rows_of = rows_of
        self._rows: dict[str, PlannedRows] = {}

    @property
    def texts(self) -> tuple[str, ...]:
        """The gates as given, blanks made single."""
        return tuple(gate.text for gate in self._gates)

    def is_gated(self, info: SuiteInfo) -> bool:
        """Whether gates decide on the suite, and not its runs."""
        return bool(self._gates) and info.baseline_of is None and info.marked == self.for_marked

    def gates(self, info: SuiteInfo, eval_fns: Sequence[str] | None = None) -> tuple[Gate, ...]:
        """The suite's gates, each with its eval function's whole name.

        Raises:
            GateError: when one does not suit the suite.
        """
        if not self.is_gated(info):
            return ()
        from .parser import resolved

        baseline = self.baselines.get(info.name)
        known = self._rows.get(info.name)
        return tuple(
            resolved(
                gate,
                eval_fns=_functions(gate, info, eval_fns),
                n=info.n,
                columns=known.columns if known is not None and gate.where else None,
                baseline_n=None if baseline is None else baseline.tally.n,
                has_baseline=self._has_baseline,
                is_part=_is_part(info),
            )
            for gate in self._gates
        )

    def check(self, info: SuiteInfo) -> None:
        """Raises GateError when a gate does not suit the suite, nor its data."""
        if any(gate.where for gate in self._gates):
            self.rows(info)
        self.gates(info)

    def rows(self, info: SuiteInfo) -> PlannedRows:
        """The suite's rows, with the columns that gates slice by."""
        rows = self._rows.get(info.name)
        if rows is None:
            wanted = {gate.where.column for gate in self._gates if gate.where}
            rows = self._rows_of(info, wanted)
            if _is_part(info):
                from ..analysis.planned_rows import with_columns

                rows = with_columns(rows, wanted)
            self._rows[info.name] = rows
        return rows

    def judged(self, result: EvalResult, *, selected: Selected, digests: bool) -> EvalResult:
        """The result with all that was decided; `digests`: rows with that of their content."""
        if digests:
            from ..analysis.planned_rows import with_digests

            told = [with_digests(suite, self.rows(suite.info)) for suite in result.suites]
        else:
            told = list(result.suites)
        rivals = {suite.info.baseline_of: suite for suite in told}
        suites = (
            self._judged(suite, rivals.get(suite.info.name), selected)
            for suite in told
            if suite.info.baseline_of is None
        )
        return result._replace(suites=tuple(suites))

    def _judged(
        self, suite: SuiteResult, rival: SuiteResult | None, selected: Selected
    ) -> SuiteResult:
        from ..analysis.uncertainty import CONFIDENCE, with_intervals

        level = self.confidence or CONFIDENCE
        suite = with_intervals(suite, level)
        if rival is not None:
            suite = suite._replace(rival=with_intervals(rival, level))
        names = [function.name for function in suite.functions]
        gates = [gate for gate in self.gates(suite.info, names) if selected(gate, suite.info)]
        baseline = self._baseline(suite)
        return self._decided(suite, gates, baseline, level)

    def _decided(
        self, suite: SuiteResult, gates: Sequence[Gate], baseline: Baseline | None, level: float
    ) -> SuiteResult:
        if not gates and baseline is None:
            return suite
        from ..analysis.planned_rows import score_table_of

        rows = self.rows(suite.info)
        tally = score_table_of(suite, rows, [gate.eval_fn for gate in gates if gate.eval_fn])
        if baseline is not None:
            from ..analysis.baseline import compared

            report = compared(suite, tally, rows, baseline=baseline, confidence=level)
            suite = suite._replace(baseline=report)
        verdicts = tuple(self._verdict(gate, tally, rows, baseline) for gate in gates)
        return suite._replace(verdicts=verdicts)

    def _verdict(
        self, gate: Gate, tally: ScoreTable, rows: PlannedRows, baseline: Baseline | None
    ) -> GateResult:
        from .evaluate import evaluate, slice_rows, unmeasured

        seen = slice_rows(gate, tally) if gate.where else None
        indices = None if seen is None else tuple(rows.indices[row] for row in seen)
        if gate.against_baseline and baseline is None:
            verdict = unmeasured(gate, "there is no earlier evaluation to compare with")
        else:
            there = None if baseline is None else baseline.tally
            verdict = evaluate(gate, tally, confidence=self.confidence, baseline=there, rows=seen)
        return replace(verdict, row_indices=indices)

    def _baseline(self, suite: SuiteResult) -> Baseline | None:
        if suite.rival is None:
            return self.baselines.get(suite.info.name)
        from ..analysis.baseline import baseline_of

        return baseline_of(suite.rival, suite.rival.info.model, self.rows(suite.rival.info))


def _is_part(info: SuiteInfo) -> bool:
    return bool(info.settings.get("shard"))


def _parsed(gates: Sequence[str]) -> tuple[Gate, ...]:
    if not gates:
        return ()
    from .parser import parse_gate

    return tuple(parse_gate(text) for text in gates)


def _functions(gate: Gate, info: SuiteInfo, eval_fns: Sequence[str] | None) -> Sequence[str]:
    """The names that a gate may use; a test may yet record a score under any."""
    if not info.marked or gate.eval_fn is None or gate.eval_fn in info.eval_fns:
        return info.eval_fns
    return [*(eval_fns or info.eval_fns), gate.eval_fn]
