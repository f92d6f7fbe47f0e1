"""Early stopping: start no further run once no result of the rest could change a gate.

`open_gates` says whether one could. Knows no pytest and not how runs are started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...run_result import DECIDED, RunResult, SuiteInfo
from ...suite_results import EvalResult, Saved

if TYPE_CHECKING:
    from .open_gates import SuiteGates
    from .parser import Gate
    from .session_gates import GateEvaluator


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
        self._suites: dict[str, SuiteGates] | None = None
        self._lock = threading.Lock()
        self._stopped = False

    def ended(self, result: RunResult) -> None:
        """Take a run in that ended; from any thread, and more than once for the same run."""
        with self._lock:
            if self._stopped:
                return
            if self._suites is None:
                self._suites = self._gated()
            if (gates := self._suites.get(result.suite)) is not None:
                gates.add(result)
            every = self._suites.values()
            self._stopped = all(each.are_settled() for each in every) and any(
                each.left for each in every
            )
            if not self._stopped:
                return
        self._halt(DECIDED)

    def _gated(self) -> dict[str, SuiteGates]:
        """Return the suites that gates decide; none where one must run to its end.

        It must where its runs decide for themselves, where a gate is about a score that tests may
        record, and where what a gate compares it with is not known before: another model's scores.
        """
        from ..score_table import empty_score_table
        from .open_gates import SuiteGates

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
            found[info.name] = SuiteGates(
                gates,
                empty_score_table(info, evaluator.rows(info)),
                confidence=evaluator.confidence,
                baseline=None if baseline is None else baseline.table,
            )
        return found


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
