"""What decides a gate on agreement: `agreement(judge) >= 0.6`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...analysis.aggregate import CONFIDENCE
from ...analysis.gates.evaluate import holds, outcome_between, unmeasured
from ...analysis.marks import agreement, marked_rows
from ...analysis.statistics.estimators import FEWEST_CLUSTERS
from ...analysis.statistics.prediction_powered import FEWEST_MARKED
from ...escaping import counted
from ...verdicts import POINT_ESTIMATES, GateOutcome, GateResult
from .people import MARK_MORE, MARKS

if TYPE_CHECKING:
    from ...analysis.gates.names import Gate
    from ...analysis.score_table import ScoreTable


def verdict(
    gate: Gate,
    table: ScoreTable,
    references: Mapping[str, ScoreTable],
    confidence: float | None,
) -> GateResult:
    """Return the verdict: held at the lower limit of kappa, with a confidence at both limits."""
    name = gate.metric.function(table)
    marked = references[MARKS].scores.get(name) if MARKS in references else None
    is_marked = None if marked is None else marked >= 0.0  # NaN: not marked
    if marked is None or is_marked is None or not is_marked.any():
        return unmeasured(gate, f"no run is marked by people: {MARK_MORE}")
    found = agreement(table, name, marked, confidence or CONFIDENCE)
    rows = marked_rows(marked)
    if found is None or found.kappa is None:
        return unmeasured(
            gate, f"people and {name} say one and the same thing of every run: {MARK_MORE}"
        )
    if found.interval is None and confidence != POINT_ESTIMATES:
        fewest = f"{FEWEST_MARKED} marked rows"
        if table.clusters is not None:
            fewest += f" in {FEWEST_CLUSTERS} clusters"
        return unmeasured(
            gate, f"{counted(rows, 'marked row')}: an interval takes {fewest}; {MARK_MORE}"
        )
    low = high = found.kappa
    if found.interval is not None and confidence != POINT_ESTIMATES:
        low, high = found.interval.low, found.interval.high
    outcome: GateOutcome = outcome_between(gate.operator, gate.threshold, low, high)
    if confidence is None and outcome == "inconclusive":
        outcome = "failed"
    detail = f"{counted(int(is_marked.sum()), 'mark')} in {counted(rows, 'row')}"
    if outcome != "passed" and holds(gate.operator, high, gate.threshold):
        detail += ": mark more of them to narrow it"
    return replace(
        unmeasured(gate, None),
        outcome=outcome,
        figure=found.kappa,
        low=low,
        high=high,
        interval=found.interval,
        rows=rows,
        confidence=confidence,
        detail=detail,
    )
