"""The result of an evaluation that is kept, aggregated from its journal as at the end of a session.

Knows journals; no folders, and no session that continues.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..run_result import CLUSTER, RunResult, SuiteInfo
from ..verdicts import gate_result_of
from .fingerprint import RunPlan
from .resume import planned

if TYPE_CHECKING:
    from ..suite_results import SuiteResult
    from .replay import Replay


def kept_suite(kept: Replay, *, figures: bool = True) -> SuiteResult:
    """Return the figures of the runs that have ended, of the rows that were last asked for.

    And what they came to.
    """
    plan = RunPlan.from_json(kept.plan)
    runs = _ended(kept, plan)
    repeated = planned(kept.repeated, plan)
    info = planned_info(kept, plan)
    suite = aggregate(
        info,
        runs,
        selected=plan.total,
        confidence=CONFIDENCE,
        repeated=repeated,
        figures=figures,
    )
    return replace(suite, verdicts=tuple(map(gate_result_of, kept.gates)), verdict=kept.verdict)


def planned_info(kept: Replay, plan: RunPlan) -> SuiteInfo:
    """Return the suite as the journal has it; n, rows and clusters as they were last asked for."""
    info = replace(SuiteInfo.from_dict(kept.header["info"]), n=plan.n, rows=len(plan.indices))
    if kept.clusters is None:
        return info
    settings = {name: value for name, value in info.settings.items() if name != CLUSTER}
    if kept.clusters:
        settings[CLUSTER] = kept.clusters["column"]
    return replace(info, settings=settings, clusters=kept.clusters.get("rows", {}))


def _ended(kept: Replay, plan: RunPlan) -> list[RunResult]:
    return [kept.runs[key].result for key in plan.runs() if key in kept.runs]
