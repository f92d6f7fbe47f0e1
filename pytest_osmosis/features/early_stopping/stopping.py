"""Early stopping: start no further run once no result of the rest could change a gate.

The runs that are left are unknown, so a gate's worst and best case tell whether it can still
change; they are looked at after each 1 % of a suite's runs. Gates that an interval decides, that
is, with a confidence or on a difference, are open to the end.

Two things are assumed: scores lie in 0..1 (once one was seen outside, unknown scores are taken for
anything), and costs and tokens are not negative. Knows no pytest and not how runs are started.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.gates.evaluate import outcome_between
from ...analysis.gates.names import Gate
from ...analysis.gates.parser import resolved
from ...analysis.metrics import CASES, row_values
from ...run_result import DECIDED, RunResult, SuiteInfo

if TYPE_CHECKING:
    from ...analysis.planned_rows import PlannedRows
    from ...analysis.score_table import ScoreTable
    from ...analysis.statistics.estimators import Floats

CHECKS = 100
"""How often in a session, at most, the gates of a suite are looked at."""

_ANY = (-math.inf, math.inf)
_UNIT = (0.0, 1.0)


class OpenGate:
    """One gate, and the worst and best value of each of its rows so far."""

    def __init__(self, gate: Gate, table: ScoreTable) -> None:
        self._gate = gate
        self._definition = gate.metric.definition
        self._values: list[Floats] = []
        self.update(table)

    def update(self, table: ScoreTable, places: list[int] | None = None) -> None:
        """Compute the rows at these places anew, or all."""
        if self._definition.of_rows is None:
            return
        part = table if places is None else table.take(places)
        found = [row_values(self._gate.metric, part, case) for case in CASES[1:]]
        if places is None:
            self._values = found
            return
        for values, new in zip(self._values, found, strict=True):
            values[places] = new

    def is_settled(self, table: ScoreTable) -> bool:
        """Return whether no result of the runs that are left can change the gate's."""
        if not len(table.rows):
            return True  # nothing can be measured: it is inconclusive already
        if self._definition.of_table is not None:
            found = self._definition.of_table(table, self._gate.eval_fn)
            low, high = sorted((found.worst, found.best))
        else:
            low, high = sorted(map(self._definition.over_rows, self._values))
        between = outcome_between(self._gate.operator, self._gate.threshold, low, high)
        return between != "inconclusive"


class SuiteGates:
    """The gates of one suite, and its runs so far."""

    def __init__(self, gates: Iterable[Gate], table: ScoreTable) -> None:
        """`table` has the suite's rows, and the runs that have ended already.

        Raises GateError as `evaluate` does.
        """
        self._table = replace(table, score_limits=self._limits(table))
        self._new: list[RunResult] = []
        """Runs that the table's scores do not have yet."""
        self.left = self._next_check = int((~table.finished).sum())
        """Runs that have not ended: what stopping now saves."""
        self._step = max(1, table.finished.size // CHECKS)
        asked = [resolved(gate, eval_fns=table.eval_fns, n=table.n) for gate in gates]
        self._open = [OpenGate(gate, self._table) for gate in asked]

    def add(self, run: RunResult) -> None:
        """Take a run in that ended; a second time, and one that was not planned, is ignored."""
        place = self._table.rows.place_of.get(run.row_index)
        if place is None or run.run_index >= self._table.n:
            return
        if self._table.runs[place, run.run_index] is None:
            self._table.runs[place, run.run_index] = run
            self._new.append(run)
            self.left -= 1

    def are_settled(self) -> bool:
        """Return whether no gate can change any more; it is looked at now and then."""
        if not self.left or self.left <= self._next_check:
            self._next_check = self.left - self._step
            self._table.record(self._new)
            places = {self._table.rows.place_of[run.row_index] for run in self._new}
            self._new.clear()
            limits = self._limits(self._table)
            is_same = limits == self._table.score_limits
            self._table = replace(self._table, score_limits=limits)
            for gate in self._open if places else ():
                gate.update(self._table, sorted(places) if is_same else None)
            self._open = [
                gate for gate in self._open if self.left and not gate.is_settled(self._table)
            ]
        return not self._open

    @staticmethod
    def _limits(table: ScoreTable) -> dict[str, tuple[float, float]]:
        """Return between what unknown scores lie, by eval function."""
        seen = replace(table, score_limits=None)
        ranges = {name: seen.score_range(name) for name in table.eval_fns}
        return {name: _UNIT if found == _UNIT else _ANY for name, found in ranges.items()}


class EarlyStopping:
    """Follows the gates of a session; calls `halt` at most once."""

    def __init__(
        self,
        gated: Callable[[], Iterable[tuple[SuiteInfo, Sequence[Gate], PlannedRows]]],
        *,
        halt: Callable[[str], None],
    ) -> None:
        """`gated` gives every suite with its gates and rows, when the first run has ended."""
        self._gated = gated
        self._halt = halt
        self._suites: dict[str, SuiteGates] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def ended(self, result: RunResult) -> None:
        """Take a run in that ended; from any thread, and more than once for the same run."""
        with self._lock:
            if self._stopped:
                return
            if self._suites is None:
                self._suites = self._open()
            if (gates := self._suites.get(result.suite)) is not None:
                gates.add(result)
            every = self._suites.values()
            self._stopped = all(each.are_settled() for each in every) and any(
                each.left for each in every
            )
            if not self._stopped:
                return
        self._halt(DECIDED)

    def _open(self) -> dict[str, SuiteGates]:
        """Return the suites that gates decide; none where one must run to its end.

        It must where its runs decide for themselves, where a difference or the values of a column
        decide, and where a gate is about a score that tests may record.
        """
        from ...analysis.score_table import empty_score_table

        suites = {}
        for info, gates, rows in self._gated():
            if not gates or any(gate.minus or gate.prefix for gate in gates):
                return {}
            if any(gate.eval_fn not in (None, *info.eval_fns) for gate in gates):
                return {}
            suites[info.name] = SuiteGates(gates, empty_score_table(info, rows))
        return suites
