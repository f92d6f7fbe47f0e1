"""Bisecting at the seams: everything is run anew, and what became of it is kept for the status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...run_result import is_counted
from ...session.seams import Feature
from .statuses import FAILED

if TYPE_CHECKING:
    import pytest

    from ...reports.formats import Sections
    from ...spec import SessionSpec
    from ...suite_results import EvalResult, SuiteResult


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
        if suite.verdicts or self._is_gated:
            return any(gate.outcome == "failed" for gate in suite.verdicts)
        counted = (run for run in suite.deciding_runs if is_counted(run.error_type, run.error_kind))
        return any(run.outcome != "passed" for run in counted)
