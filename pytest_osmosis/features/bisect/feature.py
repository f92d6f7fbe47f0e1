"""Bisecting at the seams: everything is run anew, and what became of it is kept for the status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.gates.evaluate import holds
from ...run_result import is_counted
from ...session.seams import Feature
from .statuses import FAILED

if TYPE_CHECKING:
    import pytest

    from ...reports.formats import Sections
    from ...spec import SessionSpec
    from ...suite_results import EvalResult, SuiteResult
    from ...verdicts import GateResult

COUNT_LOST_RUNS = ("errors", "scored")
"""Metrics of which a run is a part that the endpoint did not answer."""


class BisectFeature(Feature):
    """Finds whether the code failed, in the process that reports."""

    def __init__(self, config: pytest.Config, part: bool) -> None:
        self._config = config
        self._is_gated = False

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Use no run of another commit: what an agent reads may differ where its code does not."""
        self._is_gated = bool(spec.deciding.gates)
        return replace(spec, keeping=replace(spec.keeping, fresh=True))

    def write(self, result: EvalResult, sections: Sections) -> Iterable[str]:
        """Note whether a gate or a run failed by the code's doing."""
        self._config.stash[FAILED] = any(map(self._failed, result.suites))
        return ()

    def _failed(self, suite: SuiteResult) -> bool:
        runs = list(suite.deciding_runs)
        counted = [run for run in runs if is_counted(run.error_type, run.error_kind)]
        if suite.verdicts or self._is_gated:
            lost = len(runs) - len(counted)
            return any(_is_by_the_code(gate, lost) for gate in suite.verdicts)
        return any(run.outcome != "passed" for run in counted)


def _is_by_the_code(gate: GateResult, lost: int) -> bool:
    """Whether it failed, also without the runs that were lost to endpoints.

    Other figures leave these out; `errors` and `scored` count them.
    """
    if gate.outcome != "failed" or not lost or gate.metric.split()[0] not in COUNT_LOST_RUNS:
        return gate.outcome == "failed"
    if gate.metric != "errors" or gate.figure is None:
        return False
    return not holds(gate.operator, gate.figure - lost, gate.threshold)
