"""What was decided, as the JSON report tells it: intervals, gates, and what changed.

A number that is not defined, or has no bound, is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..analysis.comparison import Change, Comparison
from ..analysis.comparison import Difference as Found
from ..analysis.statistics.intervals import Interval
from ..gates.result import GateResult
from ..results import EvalResult, FunctionResult, SuiteResult


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Figure(_Model):
    """A figure, and its confidence interval where that is defined."""

    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None
    confidence: float | None = None


class GateReport(_Model):
    """A gate and its verdict."""

    gate: str = Field(description="as given")
    suite: str
    outcome: str = Field(description="passed, failed or inconclusive")
    metric: str
    eval_fn: str | None
    operator: str
    threshold: float
    figure: Figure | None = Field(description="unknown runs counted as 0.0; null: not measured")
    low: float | None = Field(description="the lower bound that the gate was held at")
    high: float | None = Field(description="the higher one; null: there is none")
    rows: int
    unknown: int = Field(description="runs whose value is not known: those to repeat")
    more_rows: int | None = Field(description="about how many more rows would settle it")
    sentence: str
    confidence: float | None = Field(default=None, description="that the bounds were widened with")
    row_indices: list[int] | None = Field(
        default=None, description="the rows that `where` looks at; null: all"
    )


class Difference(_Model):
    """A metric here and in the baseline, over the rows that both have."""

    metric: str
    current: float
    baseline: float
    difference: Figure
    p: float | None
    p_method: str | None


class ChangedRow(_Model):
    """A row that passes on one side only."""

    name: str
    passes: int
    runs: int
    baseline_passes: int
    baseline_runs: int
    answer: str | None
    baseline_answer: str | None


class FunctionChanges(_Model):
    """One eval function on both sides."""

    rows: int = Field(description="rows compared")
    differences: list[Difference]
    broken: list[ChangedRow]
    mended: list[ChangedRow]


class BaselineChanges(_Model):
    """What the session was compared with, and what changed."""

    source: str
    notes: list[str] = Field(description="what else differs, and what was not compared")
    eval_fns: dict[str, FunctionChanges]


class Savings(_Model):
    """What was not run because every gate was decided without it."""

    runs: int
    of: int
    tokens: float | None
    cost_usd: float | None


def figures(function: FunctionResult) -> dict[str, Figure]:
    """The figures that have intervals, under their names in the summary."""
    named = {"mean": ("mean", function.mean)}
    named |= {f"pass_at_{k}": (f"pass@{k}", value) for k, value in function.pass_at.items()}
    named |= {f"pass_hat_{k}": (f"pass^{k}", value) for k, value in function.pass_hat.items()}
    return {
        name: _figure(value, function.intervals.get(metric))
        for name, (metric, value) in named.items()
    }


def gates(result: EvalResult) -> Iterator[GateReport]:
    """The verdicts of every suite."""
    for suite in result.suites:
        for verdict in suite.verdicts:
            yield _gate(verdict, suite)


def baseline(suite: SuiteResult) -> BaselineChanges | None:
    """What changed, if the suite was compared."""
    if suite.baseline is None:
        return None
    return BaselineChanges(
        source=suite.baseline.source,
        notes=list(suite.baseline.notes),
        eval_fns={each.eval_fn: _changes(each) for each in suite.baseline.comparisons},
    )


def savings(result: EvalResult) -> Savings | None:
    """What stopping early has saved, if it did."""
    saved = result.saved
    if saved is None:
        return None
    return Savings(runs=saved.runs, of=saved.of, tokens=saved.tokens, cost_usd=saved.cost_usd)


def _gate(verdict: GateResult, suite: SuiteResult) -> GateReport:
    gate = verdict.gate
    return GateReport(
        gate=gate.text,
        suite=suite.info.name,
        outcome=verdict.outcome,
        metric=f"{gate.label} - baseline" if gate.against_baseline else gate.label,
        eval_fn=gate.eval_fn,
        operator=gate.operator,
        threshold=gate.threshold,
        figure=None if verdict.figure is None else _figure(verdict.figure, verdict.interval),
        low=_finite(verdict.low),
        high=_finite(verdict.high),
        rows=verdict.rows,
        unknown=verdict.unknown,
        more_rows=verdict.more_rows,
        sentence=verdict.sentence(),
        confidence=verdict.confidence,
        row_indices=None if verdict.row_indices is None else list(verdict.row_indices),
    )


def _figure(value: float, interval: Interval | None) -> Figure:
    if interval is None:
        return Figure(value=value)
    return Figure(
        value=value,
        low=interval.low,
        high=interval.high,
        method=interval.method,
        confidence=interval.confidence,
    )


def _changes(comparison: Comparison) -> FunctionChanges:
    return FunctionChanges(
        rows=comparison.rows,
        differences=[_difference(each) for each in comparison.differences],
        broken=[_changed(each) for each in comparison.broken],
        mended=[_changed(each) for each in comparison.mended],
    )


def _difference(found: Found) -> Difference:
    return Difference(
        metric=found.metric,
        current=found.current,
        baseline=found.baseline,
        difference=_figure(found.paired.difference, found.paired.interval),
        p=found.paired.p,
        p_method=found.paired.p_method,
    )


def _changed(change: Change) -> ChangedRow:
    return ChangedRow(
        name=change.name,
        passes=change.current.passes,
        runs=change.current.known,
        baseline_passes=change.baseline.passes,
        baseline_runs=change.baseline.known,
        answer=change.answer,
        baseline_answer=change.baseline_answer,
    )


def _finite(value: float | None) -> Any:
    return value if value is not None and math.isfinite(value) else None
