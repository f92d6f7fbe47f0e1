"""A metric of a tally: the figure that is reported, and its bounds over what is not known.

A run without a score could have scored anything between `ScoreTable.score_range`'s ends. The figure
counts it as 0.0 and as no pass; the bounds put all of them at the worst, then all at the best.
Knows no thresholds of gates, no sampling error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Literal

from ..gates.parser import Gate
from .metrics import mean, pass_at_k, pass_hat_k
from .score_table import ScoreTable

Fill = Literal["figure", "worst", "best"]
"""What a run without a score is taken for."""

P95 = 0.95


@dataclass(frozen=True, slots=True)
class Bounds:
    """One metric three ways; worst == best when nothing that matters is unknown."""

    figure: float
    """As reported."""
    worst: float
    """With every unknown run at its worst."""
    best: float
    """With every unknown run at its best; infinite where a sum has no upper bound."""


def bounds(gate: Gate, tally: ScoreTable, rows: Sequence[int]) -> Bounds | None:
    """The gate's metric over some rows; None when there are no rows to measure."""
    if not rows:
        return None
    if gate.metric in ("errors", "scored"):
        return _exact(_errors(gate, tally, rows) if gate.metric == "errors" else
                      _scored(gate, tally, rows))  # fmt: skip
    if gate.metric in _SUMS:
        return _sum(run_values(_SUMS[gate.metric](tally), tally.n, rows))
    if gate.metric == "p95_duration_s":
        return _p95(run_values(tally.duration_s, tally.n, rows))
    return Bounds(
        *(
            over_rows(gate, row_values(gate, tally, rows, fill))
            for fill in ("figure", "worst", "best")
        )
    )


def row_values(gate: Gate, tally: ScoreTable, rows: Sequence[int], fill: Fill) -> list[float]:
    """One value a row for a metric of scores, unknown runs taken as `fill` says."""
    name = gate.eval_fn or tally.eval_fns[0]
    if gate.metric in ("mean", "min"):
        filling = _filling(tally, name, fill)
        take = mean if gate.metric == "mean" else min
        return [
            take([score if not isnan(score) else filling for score in tally.row_scores(name, row)])
            for row in rows
        ]
    return [_from_count(gate, tally, name, row, fill) for row in rows]


def over_rows(gate: Gate, values: Sequence[float]) -> float:
    """What the metric makes of its rows' values: their mean, lowest, or sum."""
    if gate.metric == "min":
        return min(values)
    return math.fsum(values) if gate.metric == "rows@0" else mean(values)


def row_estimate(gate: Gate, n: int) -> Callable[[int], float]:
    """A row's value from its passes among n runs, for pass@K, pass^K and rows@0."""
    if gate.metric == "rows@0":
        return lambda passes: float(passes == 0)
    estimate = pass_at_k if gate.metric == "pass@" else pass_hat_k
    k = gate.k or 1
    return lambda passes: estimate(n, passes, k)


def run_values(column: Sequence[float], n: int, rows: Sequence[int]) -> list[float]:
    """The values of all runs of some rows."""
    return [column[row * n + run] for row in rows for run in range(n)]


def quantile_95(known: Sequence[float], *, zeros: int, total: int) -> float:
    """The 95th percentile by nearest rank of `known` (rising), so many zeros, the rest infinite."""
    rank = math.ceil(P95 * total - 1e-9)
    if rank <= zeros:
        return 0.0
    return known[rank - zeros - 1] if rank - zeros <= len(known) else math.inf


_SUMS: dict[str, Callable[[ScoreTable], Sequence[float]]] = {
    "cost_usd": lambda tally: tally.cost_usd,
    "tokens": lambda tally: tally.tokens,
}


def _from_count(gate: Gate, tally: ScoreTable, name: str, row: int, fill: Fill) -> float:
    found = tally.count(name, row)
    passes = found.passes + (found.unknown if fill == "best" else 0)
    return row_estimate(gate, tally.n)(passes)


def _filling(tally: ScoreTable, name: str, fill: Fill) -> float:
    if fill == "figure":
        return 0.0
    low, high = tally.score_range(name)
    return low if fill == "worst" else high


def _errors(gate: Gate, tally: ScoreTable, rows: Sequence[int]) -> int:
    """Runs that ended in an error; with an eval function, runs that ended without its score."""
    if gate.eval_fn is None:
        return sum(int(value) for value in run_values(tally.errors, tally.n, rows))
    scores = run_values(tally.scores[gate.eval_fn], tally.n, rows)
    ended = run_values(tally.finished, tally.n, rows)
    return sum(isnan(score) and bool(end) for score, end in zip(scores, ended, strict=True))


def _scored(gate: Gate, tally: ScoreTable, rows: Sequence[int]) -> float:
    scores = run_values(tally.scores[gate.eval_fn or tally.eval_fns[0]], tally.n, rows)
    return sum(not isnan(score) for score in scores) / len(scores)


def _exact(value: float) -> Bounds:
    return Bounds(float(value), float(value), float(value))


def _sum(values: Sequence[float]) -> Bounds:
    known = [value for value in values if not isnan(value)]
    total = math.fsum(known)
    return Bounds(total, total, total if len(known) == len(values) else math.inf)


def _p95(values: Sequence[float]) -> Bounds:
    known = sorted(value for value in values if not isnan(value))
    zeros = len(values) - len(known)
    return Bounds(
        figure=quantile_95(known, zeros=0, total=len(known)) if known else 0.0,
        worst=quantile_95(known, zeros=zeros, total=len(values)),
        best=quantile_95(known, zeros=0, total=len(values)),
    )
