"""Early stopping: start no further run once no result of the rest could change a gate.

The runs that are left are unknown, so a gate's own worst and best case tell whether it can still
change; they are looked at after each 1 % of a suite's runs. With a confidence, the limits of any
interval that can still come about are looked at instead.

Two things are assumed: scores lie in 0..1 (once one was seen outside, unknown scores are taken for
anything), and costs and tokens are not negative. Knows no pytest and not how runs are started.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..analysis.comparison import at_threshold
from ..analysis.metrics import Case, row_values
from ..analysis.planned_rows import empty_score_table, measured
from ..analysis.score_table import ScoreTable, ScoreTableBuilder
from ..results import DECIDED, EvalResult, RunResult, Saved, SuiteInfo
from .evaluate import matching_rows, slice_rows
from .interval_bounds import Box, widest_limits
from .parser import Gate, resolved
from .result import holds

if TYPE_CHECKING:
    from .session_gates import GateEvaluator

CHECKS = 100
"""How often in a session, at most, the gates of a suite are looked at."""

_ANY = (-math.inf, math.inf)
_UNIT = (0.0, 1.0)


def is_settled(gate: Gate, low: float, high: float) -> bool:
    """Return whether the gate holds for every value from low to high, or for none."""
    if gate.operator == "==" and low < gate.threshold < high:
        return False
    at_low, at_high = (holds(gate.operator, end, gate.threshold) for end in (low, high))
    return at_low == at_high


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
        self._table, self._definition = table, gate.metric.definition
        self._confidence = confidence if self._definition.interval else None
        self._limits = _UNIT
        self._shift = 0.0, 0.0
        rows = slice_rows(gate, table)
        if gate.against_baseline and baseline is not None:
            rows = self._against(at_threshold(baseline, table.pass_threshold), rows)
        self._places = {row: place for place, row in enumerate(rows)}
        self._values: dict[Case, list[float]] = {case: [0.0] * len(rows) for case in _ENDS}
        self.update(rows)

    def update(self, rows: Iterable[int]) -> None:
        """Compute the rows anew of which a run has ended."""
        if self._definition.of_row is None:
            return
        own = [row for row in rows if row in self._places]
        if self._definition.unit_scores and self._limits == _UNIT and self._leaves_unit(own):
            self._limits, own = _ANY, list(self._places)
        for case, values in self._values.items():
            found = row_values(self._gate.metric, self._table, own, case, self._limits)
            for row, value in zip(own, found, strict=True):
                values[self._places[row]] = value

    def is_settled(self) -> bool:
        """Return whether no result of the runs that are left can change the gate's."""
        if not self._places:
            return True  # nothing can be measured: it is inconclusive already
        worst, best = self._bounds()
        if not is_settled(self._gate, min(worst, best), max(worst, best)):
            return False
        return self._confidence is None or self._is_settled_with(self._confidence)

    def _bounds(self) -> tuple[float, float]:
        if self._definition.of_table is not None:
            found = self._definition.of_table(
                self._table, list(self._places), self._gate.metric.eval_fn
            )
            return found.worst, found.best
        worst, best = (self._definition.over_rows(self._values[case]) for case in _ENDS)
        return worst - self._shift[0], best - self._shift[1]

    def _is_settled_with(self, confidence: float) -> bool:
        """A paired interval is not bounded before the end, nor one of scores outside of 0..1."""
        if self._gate.against_baseline or self._limits != _UNIT:
            return False
        limits = widest_limits(
            Box(self._values["worst"], self._values["best"]),
            confidence=confidence,
            may_be_undefined=self._definition.interval == "mean",
        )
        return is_settled(self._gate, limits.low, limits.high)

    def _against(self, baseline: ScoreTable, rows: Sequence[int]) -> list[int]:
        """The rows that match; the baseline's best and worst shift the worst and the best."""
        metric = self._gate.metric
        pairs = matching_rows(self._table, baseline, rows)
        if not pairs or metric.function(self._table) not in baseline.scores:
            return []
        there = [other for _, other in pairs]
        worst, best = (
            self._definition.over_rows(row_values(metric, baseline, there, case))
            for case in ("worst", "best")
        )
        self._shift = best, worst
        return [here for here, _ in pairs]

    def _leaves_unit(self, rows: Iterable[int]) -> bool:
        name, table = self._gate.metric.function(self._table), self._table
        scores = (score for row in rows for score in table.row_scores(name, row))
        return any(score < 0.0 or score > 1.0 for score in scores)


_ENDS: tuple[Case, Case] = ("worst", "best")


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
        table = builder.table()
        self._builder, self._finished = builder, table.finished
        self._left = len(table.finished) - sum(table.finished)
        self._step = max(1, len(table.finished) // CHECKS)
        self._next_check = self._left
        self._touched: set[int] = set()
        self._open = [
            OpenGate(gate, table, confidence=confidence, baseline=baseline) for gate in gates
        ]

    @property
    def left(self) -> int:
        """Runs that have not ended: what stopping now saves."""
        return self._left

    def add(self, row: int, run: int, **measures: object) -> None:
        """Take a run in that ended, as `ScoreTableBuilder.add` does; a second time is ignored."""
        if self._builder.has(row, run):
            return
        self._builder.add(row, run, **measures)  # type: ignore[arg-type]
        self._left -= 1
        self._touched.add(row)

    def are_settled(self) -> bool:
        """Return whether no gate can change any more; it is looked at now and then."""
        if self._left and self._left > self._next_check:
            return not self._open
        self._next_check = self._left - self._step
        for gate in self._open:
            gate.update(self._touched)
        self._touched.clear()
        self._open = [gate for gate in self._open if self._left and not gate.is_settled()]
        return not self._open


class EarlyStopping:
    """Follows the gates of a session; calls `halt` at most once."""

    def __init__(
        self,
        judge: GateEvaluator,
        *,
        infos: Callable[[], Mapping[str, SuiteInfo]],
        selected: Callable[[Gate, SuiteInfo], bool],
        halt: Callable[[str], None],
    ) -> None:
        """`infos` and `selected` are asked when the first run has ended."""
        self._judge = judge
        self._infos = infos
        self._selected = selected
        self._halt = halt
        self._suites: dict[str, _Suite] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def ended(self, result: RunResult) -> None:
        """Take a run in that ended; from any thread, and more than once for the same run."""
        with self._lock:
            if self._stopped:
                return
            if self._suites is None:
                self._suites = {suite.info.name: suite for suite in self._gated()}
            if (suite := self._suites.get(result.suite)) is not None:
                suite.ended(result)
            gates = [suite.gates for suite in self._suites.values()]
            self._stopped = all(each and each.are_settled() for each in gates) and any(
                each.left for each in gates if each
            )
            if not self._stopped:
                return
        self._halt(DECIDED)

    def _gated(self) -> list[_Suite]:
        """The suites that gates decide; none where another suite's runs decide for themselves."""
        infos = self._infos().values()
        baseline_models = {info.baseline_of for info in infos}
        found = []
        for info in (each for each in infos if each.baseline_of is None):
            gates = [gate for gate in self._judge.gates(info) if self._selected(gate, info)]
            if not gates:
                return []
            found.append(
                _Suite(self._judge, info, gates, has_baseline_model=info.name in baseline_models)
            )
        return found


class _Suite:
    """The gates of one suite of the session, and its rows."""

    def __init__(
        self, judge: GateEvaluator, info: SuiteInfo, gates: list[Gate], *, has_baseline_model: bool
    ) -> None:
        names = dict.fromkeys([*info.eval_fns, *(gate.eval_fn for gate in gates if gate.eval_fn)])
        self.info = info
        self._names = tuple(names)
        baseline = judge.baselines.get(info.name)
        builder, self._places = empty_score_table(info, judge.rows(info), self._names)
        self.gates: SuiteGates | None = None
        """None: what another model will have scored is not known before the end."""
        if (not has_baseline_model and baseline is not None) or not any(
            g.against_baseline for g in gates
        ):
            self.gates = SuiteGates(
                gates,
                builder,
                confidence=judge.confidence,
                baseline=None if baseline is None else baseline.table,
            )

    def ended(self, result: RunResult) -> None:
        place = self._places.get(result.row_index)
        if self.gates is not None and place is not None and result.run_index < self.info.n:
            self.gates.add(place, result.run_index, **measured(result, self._names))


def saved(result: EvalResult) -> Saved:
    """Return what a session that was stopped has saved, by the average of the runs that it ran."""
    runs = [run for suite in result.suites for row in suite.rows for run in row.runs]
    selected = sum(suite.selected for suite in result.suites)
    left = selected - len(runs)
    tokens = [run.tokens for run in runs if run.tokens is not None]
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    return Saved(left, selected, _scaled(tokens, left), _scaled(costs, left))


def _scaled(known: list[int] | list[float], runs: int) -> float | None:
    return sum(known) / len(known) * runs if known else None
