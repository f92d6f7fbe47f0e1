"""The part of a comparison in the JSON report, as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...reports.json_writer import Fields, figure_of

if TYPE_CHECKING:
    from .results import BaselineReport, Change, Comparison, Difference


def document_of(report: BaselineReport) -> Fields:
    """Return the object of a comparison in the JSON report."""
    return {
        "source": report.source,
        "notes": list(report.notes),
        "eval_fns": {each.eval_fn: _changes(each) for each in report.comparisons},
    }


def _changes(comparison: Comparison) -> Fields:
    return {
        "rows": comparison.rows,
        "differences": [_difference(each) for each in comparison.differences],
        "changes": [_changed(each) for each in comparison.changes],
        "tested": comparison.tested,
        "short": comparison.short,
        "rule": comparison.rule,
    }


def _difference(found: Difference) -> Fields:
    return {
        "metric": found.metric,
        "current": found.current,
        "baseline": found.baseline,
        "difference": figure_of(found.paired.difference, found.paired.interval),
        "p": found.paired.p,
        "p_method": found.paired.p_method,
    }


def _changed(change: Change) -> Fields:
    return {
        "name": change.name,
        "row_index": change.row_index,
        "baseline_row_index": change.baseline_row_index,
        "verdict": change.verdict,
        "p": change.p,
        "mean": change.mean,
        "baseline_mean": change.baseline_mean,
        "passes": change.current.passes,
        "runs": change.current.runs,
        "scored": change.current.known,
        "baseline_passes": change.baseline.passes,
        "baseline_runs": change.baseline.runs,
        "baseline_scored": change.baseline.known,
        "answer": change.answer,
        "baseline_answer": change.baseline_answer,
    }
