"""The names that gates use beside metrics and eval functions: features bring them.

Two tables, each by name. Reading what a gate says imports none of what stands behind a name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ...run_result import SuiteInfo

if TYPE_CHECKING:
    from ...verdicts import GateResult
    from ..score_table import ScoreTable
    from .parser import Gate

CONDITIONS: dict[str, Callable[[SuiteInfo], Collection[str]]] = {}
"""What a gate may say of the suites that it is about, `[NAME=VALUE]`: the values of a suite."""

DIFFERENCES: dict[str, Callable[[Gate, ScoreTable, ScoreTable, float | None], GateResult]] = {}
"""What a gate may subtract, `METRIC - NAME`: the verdict by both tables and a confidence."""


def _baseline(
    gate: Gate, table: ScoreTable, baseline: ScoreTable, confidence: float | None
) -> GateResult:
    from .differences import against

    return against(gate, table, baseline, confidence)


CONDITIONS["model"] = lambda info: [info.model]
CONDITIONS["agent"] = lambda info: dict.fromkeys([info.agent, info.agent.rpartition(":")[2]])
DIFFERENCES["baseline"] = _baseline
