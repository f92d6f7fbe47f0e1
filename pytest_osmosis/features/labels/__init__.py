"""What people say of runs, how far judges agree with it, and what judges' means are by it.

People mark runs in `osmosis eval view`; every session looks whether its runs have been marked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gates.names import OWN_VERDICTS
from ...options.table import FeatureEntry
from ...reports.formats import SectionFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...analysis.gates.names import Gate
    from ...analysis.score_table import ScoreTable
    from ...verdicts import GateResult


def _agreement(
    gate: Gate,
    table: ScoreTable,
    references: Mapping[str, ScoreTable],
    confidence: float | None,
) -> GateResult:
    from .gates import verdict

    return verdict(gate, table, references, confidence)


def _register() -> None:
    OWN_VERDICTS["agreement"] = _agreement


LABELS = FeatureEntry(
    "labels",
    read=lambda given: True,
    feature="LabelsFeature",
    section=SectionFormat("people", "features.labels.saved"),
    register=_register,
)
