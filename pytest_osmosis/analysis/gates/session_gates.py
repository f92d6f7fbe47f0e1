"""The gates of a session: what suits which suite, and the results of suites that have ended.

`evaluate_suite` is pure, and serves `osmosis eval merge` too. Knows no pytest: the gates' reports
and the exit status are `session.gates_plugin`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...run_result import SuiteInfo

if TYPE_CHECKING:
    from ...suite_results import EvalResult, SuiteResult
    from ...verdicts import GateResult
    from ..baseline import Baseline
    from ..planned_rows import PlannedRows
    from ..score_table import ScoreTable
    from .parser import Gate

RowsOf = Callable[[SuiteInfo, Collection[str]], "PlannedRows"]
"""The rows of a suite, with the values of some columns."""

Selected = Callable[["Gate", SuiteInfo], bool]
"""Whether a gate is to be evaluated."""


@dataclass(frozen=True, slots=True)
class AskedGate:
    """A gate to be evaluated, and the rows that it looks at."""

    gate: Gate
    """Its eval function as a whole name."""
    confidence: float | None = None
    """As `GateResult` has it."""
    row_indices: tuple[int, ...] | None = None
    """By their position in the data file; None: all rows."""
    problem: str | None = None
    """Why nothing can be measured, if so."""


def evaluate_suite(
    suite: SuiteResult,
    gates: Sequence[AskedGate],
    rows: PlannedRows,
    *,
    baseline: Baseline | None,
    confidence: float | None,
) -> SuiteResult:
    """Return the suite with a result for each gate, and with what changed against a baseline.

    `confidence` is that of the comparison's intervals; None: the usual. Raises GateError when a
    gate does not suit the suite.
    """
    from ..score_table import score_table_of

    functions = [asked.gate.eval_fn for asked in gates if asked.gate.eval_fn]
    table = score_table_of(suite, rows, functions)
    if baseline is not None:
        from ..aggregate import CONFIDENCE
        from ..baseline import compared

        level = confidence or CONFIDENCE
        report = compared(suite, table, baseline=baseline, confidence=level)
        suite = replace(suite, baseline=report)
    results = tuple(_evaluate(asked, table, baseline) for asked in gates)
    return replace(suite, verdicts=results)


def _evaluate(asked: AskedGate, table: ScoreTable, baseline: Baseline | None) -> GateResult:
    from ...verdicts import POINT_ESTIMATES
    from .decide import unmeasured
    from .evaluate import evaluate

    if asked.problem is not None:
        result = unmeasured(asked.gate, asked.problem)
    else:
        result = evaluate(
            asked.gate,
            table,
            confidence=asked.confidence,
            baseline=None if baseline is None else baseline.table,
            rows=None if asked.row_indices is None else table.rows.places(asked.row_indices),
        )
    if result.low is None or asked.confidence == POINT_ESTIMATES:
        result = replace(result, confidence=asked.confidence)
    return replace(result, row_indices=asked.row_indices)


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
        """`confidence` as `GateResult` has it; the intervals that are shown have it too."""
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
                baseline_n=None if baseline is None else baseline.suite.info.n,
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
                from ..planned_rows import with_columns

                rows = with_columns(rows, wanted)
            self._rows[info.name] = rows
        return rows

    def evaluated(self, result: EvalResult, *, selected: Selected, digests: bool) -> EvalResult:
        """Return the result with gates evaluated; `digests`: each row with that of its content."""
        suites = list(result.suites)
        if digests:
            from ..planned_rows import with_digests

            suites = [with_digests(suite, self.rows(suite.info)) for suite in suites]
        baseline_models = {suite.info.baseline_of: suite for suite in suites}
        own = (suite for suite in suites if suite.info.baseline_of is None)
        return replace(
            result,
            suites=tuple(
                self._evaluated(
                    replace(suite, baseline_model_result=baseline_models.get(suite.info.name)),
                    selected,
                )
                for suite in own
            ),
        )

    def _evaluated(self, suite: SuiteResult, selected: Selected) -> SuiteResult:
        names = [function.name for function in suite.functions]
        gates = [gate for gate in self.gates(suite.info, names) if selected(gate, suite.info)]
        baseline = self._baseline(suite)
        if not gates and baseline is None:
            return suite
        asked = [self._asked(gate, suite.info, baseline) for gate in gates]
        rows = self.rows(suite.info)
        return evaluate_suite(suite, asked, rows, baseline=baseline, confidence=self.confidence)

    def _asked(self, gate: Gate, info: SuiteInfo, baseline: Baseline | None) -> AskedGate:
        rows, problem = self.rows(info), "there is no earlier evaluation to compare with"
        return AskedGate(
            gate,
            self.confidence,
            row_indices=rows.where(gate.where.column, gate.where.value) if gate.where else None,
            problem=problem if gate.against_baseline and baseline is None else None,
        )

    def _baseline(self, suite: SuiteResult) -> Baseline | None:
        if suite.baseline_model_result is None:
            return self.baselines.get(suite.info.name)
        from ..baseline import baseline_of

        return baseline_of(
            suite.baseline_model_result,
            suite.baseline_model_result.info.model,
            self.rows(suite.baseline_model_result.info),
        )


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
