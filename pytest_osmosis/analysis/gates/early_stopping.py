"""Early stopping: start no further run once no result of the rest could change a gate.

The runs that are left are unknown, so a gate's worst and best case tell whether it can still
change; they are looked at after each 1 % of a suite's runs. With a confidence, the limits of any
interval that can still come about are looked at too.

Two things are assumed: scores lie in 0..1 (once one was seen outside, unknown scores are taken for
anything), and costs and tokens are not negative. Knows no pytest and not how runs are started.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...run_result import DECIDED, RunResult, SuiteInfo
from ...suite_results import EvalResult, Saved
from ..comparison import at_thresholds
from ..metrics import row_values
from ..planned_rows import empty_score_table, measured
from ..score_table import Case, ScoreTable, ScoreTableBuilder
from ..statistics import student_t
from ..statistics.estimators import mean
from ..statistics.intervals import agresti_coull
from .evaluate import matching_rows, slice_rows
from .parser import Gate, resolved
from .result import outcome_between

if TYPE_CHECKING:
    from .session_gates import GateEvaluator

CHECKS = 100
"""How often in a session, at most, the gates of a suite are looked at."""

_CASES: tuple[Case, Case] = ("worst", "best")
_ANY = (-math.inf, math.inf)
_UNIT = (0.0, 1.0)


def is_settled(gate: Gate, low: float, high: float) -> bool:
    """Return whether the gate holds for every value from low to high, or for none."""
    return outcome_between(gate.operator, gate.threshold, low, high) != "inconclusive"


def widest_limits(
    lows: Sequence[float], highs: Sequence[float], *, confidence: float
) -> tuple[float, float]:
    """Return limits that no interval passes while each row's value is in its span within 0..1.

    An interval is the wider, the fewer rows its values are worth, and rises with their mean: it is
    widest where each row is worth one.
    """
    rows = len(lows)
    z = student_t.two_sided(confidence, rows - 1 if rows > 1 else math.inf)
    return agresti_coull(mean(lows), rows, z)[0], agresti_coull(mean(highs), rows, z)[1]


class OpenGate:
    """One gate, and the worst and best value of each of its rows so far."""

    def __init__(
        self,
        gate: Gate,
        table: ScoreTable,
        *,
        confidence: float | None = None,
        baseline: ScoreTable | None = None,
    ) -> None:
        """Take the runs in that the table holds; raise GateError as `evaluate` does."""
        self._gate = gate = resolved(
            gate,
            eval_fns=table.eval_fns,
            n=table.n,
            baseline_n=baseline.n if baseline else None,
            has_baseline=baseline is not None,
        )
        self._table = replace(table, score_limits=_UNIT)
        self._definition = gate.metric.definition
        self._confidence = confidence if self._definition.interval else None
        self._shift = 0.0, 0.0
        rows = slice_rows(gate, table)
        if gate.against_baseline and baseline is not None:
            rows = self._matched(at_thresholds(baseline, table), rows)
        self._values = {case: dict.fromkeys(rows, 0.0) for case in _CASES}
        self.update(rows)

    def _matched(self, baseline: ScoreTable, rows: Sequence[int]) -> list[int]:
        """Return the rows that match; the baseline's best and worst shift the worst and best."""
        metric = self._gate.metric
        pairs = matching_rows(self._table, baseline, rows)
        if not pairs or metric.function(self._table) not in baseline.scores:
            return []
        there = [other for _, other in pairs]
        worst, best = (mean(row_values(metric, baseline, there, case)) for case in _CASES)
        self._shift = best, worst
        return [here for here, _ in pairs]

    def update(self, rows: Iterable[int]) -> None:
        """Compute the rows anew of which a run has ended."""
        own = [row for row in rows if row in self._values["worst"]]
        if self._definition.unit_scores and self._is_unit and self._leaves_unit(own):
            self._table = replace(self._table, score_limits=_ANY)
            own = list(self._values["worst"])
        if self._definition.of_row is None:
            return
        for case, values in self._values.items():
            found = row_values(self._gate.metric, self._table, own, case)
            values.update(zip(own, found, strict=True))

    @property
    def _is_unit(self) -> bool:
        return self._table.score_limits == _UNIT

    def _leaves_unit(self, rows: Iterable[int]) -> bool:
        name, table = self._gate.metric.function(self._table), self._table
        scores = (score for row in rows for score in table.row_scores(name, row))
        return any(score < 0.0 or score > 1.0 for score in scores)

    def is_settled(self) -> bool:
        """Return whether no result of the runs that are left can change the gate's.

        A paired interval is not bounded before the end, nor one of scores outside of 0..1.
        """
        lows, highs = ([*self._values[case].values()] for case in _CASES)
        if not lows:
            return True  # nothing can be measured: it is inconclusive already
        if self._definition.of_table is not None:
            name = self._gate.metric.eval_fn
            found = self._definition.of_table(self._table, [*self._values["worst"]], name)
            worst, best = found.worst, found.best
        else:
            worst = self._definition.over_rows(lows) - self._shift[0]
            best = self._definition.over_rows(highs) - self._shift[1]
        if not is_settled(self._gate, min(worst, best), max(worst, best)):
            return False
        if self._confidence is None:
            return True
        if self._gate.against_baseline or not self._is_unit:
            return False
        return is_settled(self._gate, *widest_limits(lows, highs, confidence=self._confidence))


class SuiteGates:
    """The gates of one suite, and its runs so far."""

    def __init__(
        self,
        gates: Iterable[Gate],
        builder: ScoreTableBuilder,
        *,
        confidence: float | None = None,
        baseline: ScoreTable | None = None,
    ) -> None:
        """`builder` has the suite's rows, and the runs that have ended already."""
        self._builder, self.table = builder, builder.table()
        runs = len(self.table.finished)
        self.left = self._next_check = runs - sum(self.table.finished)
        """Runs that have not ended: what stopping now saves."""
        self._step = max(1, runs // CHECKS)
        self._touched: set[int] = set()
        self._open = [
            OpenGate(gate, self.table, confidence=confidence, baseline=baseline) for gate in gates
        ]

    def add(self, row: int, run: int, **measures: object) -> None:
        """Take a run in that ended, as `ScoreTableBuilder.add` does; a second time is ignored."""
        if self._builder.has(row, run):
            return
        self._builder.add(row, run, **measures)  # type: ignore[arg-type]
        self.left -= 1
        self._touched.add(row)

    def are_settled(self) -> bool:
        """Return whether no gate can change any more; it is looked at now and then."""
        if not self.left or self.left <= self._next_check:
            self._next_check = self.left - self._step
            for gate in self._open:
                gate.update(self._touched)
            self._touched.clear()
            self._open = [gate for gate in self._open if self.left and not gate.is_settled()]
        return not self._open


class EarlyStopping:
    """Follows the gates of a session; calls `halt` at most once."""

    def __init__(
        self,
        evaluator: GateEvaluator,
        *,
        infos: Callable[[], Mapping[str, SuiteInfo]],
        selected: Callable[[Gate, SuiteInfo], bool],
        halt: Callable[[str], None],
    ) -> None:
        """`infos` and `selected` are asked when the first run has ended."""
        self._evaluator = evaluator
        self._infos = infos
        self._selected = selected
        self._halt = halt
        self._suites: dict[str, tuple[SuiteGates, Mapping[int, int]]] | None = None
        """Per suite its gates, and the place in their table of each row index."""
        self._lock = threading.Lock()
        self._stopped = False

    def ended(self, result: RunResult) -> None:
        """Take a run in that ended; from any thread, and more than once for the same run."""
        with self._lock:
            if self._stopped:
                return
            if self._suites is None:
                self._suites = self._gated()
            if (suite := self._suites.get(result.suite)) is not None:
                _take(result, *suite)
            gates = [gates for gates, _ in self._suites.values()]
            self._stopped = all(each.are_settled() for each in gates) and any(
                each.left for each in gates
            )
            if not self._stopped:
                return
        self._halt(DECIDED)

    def _gated(self) -> dict[str, tuple[SuiteGates, Mapping[int, int]]]:
        """Return the suites that gates decide; none where one must run to its end.

        It must where its runs decide for themselves, where a gate is about a score that tests may
        record, and where what a gate compares it with is not known before: another model's scores.
        """
        evaluator, infos = self._evaluator, self._infos().values()
        with_other_model = {info.baseline_of for info in infos}
        found = {}
        for info in (each for each in infos if each.baseline_of is None):
            gates = [gate for gate in evaluator.gates(info) if self._selected(gate, info)]
            baseline = None if info.name in with_other_model else evaluator.baselines.get(info.name)
            if not gates or (baseline is None and any(gate.against_baseline for gate in gates)):
                return {}
            if any(gate.eval_fn not in (None, *info.eval_fns) for gate in gates):
                return {}
            builder, places = empty_score_table(info, evaluator.rows(info))
            table = None if baseline is None else baseline.table
            followed = SuiteGates(gates, builder, confidence=evaluator.confidence, baseline=table)
            found[info.name] = followed, places
        return found


def _take(result: RunResult, gates: SuiteGates, places: Mapping[int, int]) -> None:
    place = places.get(result.row_index)
    if place is not None and result.run_index < gates.table.n:
        gates.add(place, result.run_index, **measured(result, gates.table.eval_fns))


def saved(result: EvalResult) -> Saved:
    """Return what a session that was stopped has saved, by the average of the runs that it ran."""
    runs = list(result.runs)
    selected = sum(suite.selected for suite in result.suites)
    left = selected - len(runs)
    tokens = [run.tokens for run in runs if run.tokens is not None]
    costs = [run.spent_usd for run in runs if run.spent_usd is not None]
    if all(run.cost_usd is None for run in runs):  # no price is known
        costs = []
    return Saved(left, selected, _scaled(tokens, left), _scaled(costs, left))


def _scaled(known: list[int] | list[float], runs: int) -> float | None:
    return sum(known) / len(known) * runs if known else None
