"""Stopping as soon as no outcome of the rest could change any verdict.

Told every run as it ends, in the process that reports; from then on nothing more is started. What
was not run is reported as not run. Knows no pytest and not how runs are started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..analysis.planned_rows import empty_score_table, measured
from ..results import DECIDED, EvalResult, RunResult, Saved, SuiteInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .early_stopping import Decider
    from .parser import Gate
    from .session_gates import GateEvaluator


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
        self._followed: dict[str, _Suite] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def ended(self, result: RunResult) -> None:
        """A run has ended; from any thread, and more than once for the same run."""
        with self._lock:
            if self._stopped:
                return
            if self._followed is None:
                self._followed = {suite.name: suite for suite in self._suites()}
            suite = self._followed.get(result.suite)
            if suite is not None:
                suite.ended(result)
            suites = self._followed.values()
            self._stopped = all(suite.is_decided() for suite in suites) and any(
                suite.left for suite in suites
            )
            if not self._stopped:
                return
        self._halt(DECIDED)

    def _suites(self) -> list[_Suite]:
        """Those that gates decide; none where any other suite's runs decide for themselves."""
        infos = self._infos().values()
        rivals = {info.baseline_of for info in infos}
        found = []
        for info in (each for each in infos if each.baseline_of is None):
            gates = [gate for gate in self._judge.gates(info) if self._selected(gate, info)]
            if not gates:
                return []
            found.append(_Suite(self._judge, info, gates, has_rival=info.name in rivals))
        return found


class _Suite:
    """One suite, and what its gates can still become."""

    def __init__(
        self, judge: GateEvaluator, info: SuiteInfo, gates: list[Gate], *, has_rival: bool
    ) -> None:
        from .early_stopping import Decider

        names = dict.fromkeys([*info.eval_fns, *(gate.eval_fn for gate in gates if gate.eval_fn)])
        self.name = info.name
        self._names = tuple(names)
        baseline = judge.baselines.get(info.name)
        builder, self._places = empty_score_table(info, judge.rows(info), self._names)
        self._seen: set[tuple[int, int]] = set()
        self._n = info.n
        # What the other model will have scored is not known before the end.
        is_open = (has_rival or baseline is None) and any(gate.against_baseline for gate in gates)
        self._decider: Decider | None = None
        if not is_open:
            self._decider = Decider(
                gates,
                builder.tally(),
                confidence=judge.confidence,
                baseline=None if baseline is None else baseline.tally,
            )

    def ended(self, result: RunResult) -> None:
        place, run = self._places.get(result.row_index), result.run_index
        if self._decider is None or place is None or (place, run) in self._seen or run >= self._n:
            return
        self._seen.add((place, run))
        self._decider.add(place, run, **measured(result, self._names))

    @property
    def left(self) -> int:
        return 0 if self._decider is None else self._decider.left

    def is_decided(self) -> bool:
        return self._decider is not None and self._decider.decided()


def saved(result: EvalResult) -> Saved:
    """What a session that was stopped has saved, going by the average of the runs that it ran."""
    runs = [run for suite in result.suites for row in suite.rows for run in row.runs]
    selected = sum(suite.selected for suite in result.suites)
    left = selected - len(runs)
    tokens = [run.tokens for run in runs if run.tokens is not None]
    costs = [run.cost_usd for run in runs if run.cost_usd is not None]
    return Saved(left, selected, _scaled(tokens, left), _scaled(costs, left))


def _scaled(known: list[int] | list[float], runs: int) -> float | None:
    return sum(known) / len(known) * runs if known else None
