"""Runs to results: pure counting, in one place, whatever order the runs finished in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from ..results import FunctionResult, RowResult, RunResult, SuiteInfo, SuiteResult
from .metrics import mean, pass_at_k, pass_hat_k, population_std, reported_ks


def aggregate(info: SuiteInfo, runs: Iterable[RunResult], *, selected: int) -> SuiteResult:
    """Everything that the reports say about one suite."""
    rows = _rows(runs)
    every = [run for row in rows for run in row.runs]
    tokens = [run.tokens for run in every if run.tokens is not None]
    costs = [run.cost_usd for run in every]
    return SuiteResult(
        info=info,
        rows=rows,
        functions=tuple(_function(name, info, rows) for name in _names(info, every)),
        selected=selected,
        finished=len(every),
        short_rows=sum(len(row.runs) < info.n for row in rows),
        errors=dict(sorted(Counter(run.error_type for run in every if run.error_type).items())),
        finish_reasons=dict(
            sorted(Counter(run.finish_reason for run in every if run.finish_reason).items())
        ),
        total_tokens=sum(tokens) if tokens or not every else None,
        unknown_tokens=len(every) - len(tokens),
        cost_usd=_total_cost(costs),
        retries=sum(run.retries for run in every),
    )


def _rows(runs: Iterable[RunResult]) -> tuple[RowResult, ...]:
    ordered = sorted(runs, key=attrgetter("row_index", "run_index"))
    by_row = ((index, tuple(own)) for index, own in groupby(ordered, attrgetter("row_index")))
    return tuple(RowResult(index, own[0].row_id, own) for index, own in by_row)


def _names(info: SuiteInfo, runs: Sequence[RunResult]) -> list[str]:
    """The suite's eval functions, then the scores that tests recorded under other names."""
    recorded = {name for run in runs for name in run.scores}
    return [*info.eval_fns, *sorted(recorded.difference(info.eval_fns))]


def _function(name: str, info: SuiteInfo, rows: Sequence[RowResult]) -> FunctionResult:
    scores = [run.scores.get(name) for row in rows for run in row.runs]
    values = [0.0 if score is None else score for score in scores]
    tallies = [(len(row.runs), sum(_passes(run, name, info) for run in row.runs)) for row in rows]
    return FunctionResult(
        name=name,
        mean=mean(values),
        std=population_std(values),
        min=min(values, default=0.0),
        max=max(values, default=0.0),
        pass_at={k: _over_rows(pass_at_k, tallies, k) for k in reported_ks(info.n)},
        pass_hat={k: _over_rows(pass_hat_k, tallies, k) for k in reported_ks(info.n)},
        scored=sum(score is not None for score in scores),
        missing=sum(score is None for score in scores),
    )


def _passes(run: RunResult, name: str, info: SuiteInfo) -> bool:
    score = run.scores.get(name)
    return score is not None and score >= info.pass_threshold


def _over_rows(estimator, tallies: Sequence[tuple[int, int]], k: int) -> float:  # type: ignore[no-untyped-def]
    """The mean over rows; a row with fewer than k runs is estimated with all that it has."""
    return mean([estimator(n, c, min(k, n)) for n, c in tallies])


def _total_cost(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
