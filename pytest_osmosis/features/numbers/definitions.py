"""The metrics `SUMMARY(NUMBER)`, and percentiles of scores: what stands in a gate, and its bounds.

The runs that count are those that count in figures; what another would have given is not known, and
neither is a number that a run does not have. Imports no numpy until a gate is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ...analysis.metrics import Definition
from ...run_result import RunResult

if TYPE_CHECKING:
    from ...analysis.metrics import Bounds
    from ...analysis.score_table import Case, ScoreTable
    from ...verdicts import Interval

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def _duration(run: RunResult) -> float | None:
    return run.duration_ms / 1000.0 if run.duration_ms else None


def _calls(run: RunResult) -> float | None:
    """Of an agent that asks a model of its own no call is known."""
    return run.llm_calls if run.llm_calls or run.tokens == 0 else None


def _tool_calls(run: RunResult) -> float | None:
    """Of a run that did not end by itself none is known."""
    is_known = run.tool_calls or (run.success and _calls(run) is not None)
    return run.tool_calls if is_known else None


NUMBERS: Mapping[str, Callable[[RunResult], float | None]] = {
    "duration_s": _duration,
    "tokens": lambda run: run.tokens,
    "cost_usd": lambda run: run.spent_usd,
    "llm_calls": _calls,
    "tool_calls": _tool_calls,
    "turns": _calls,
}
"""What a run has; None where that is not known."""


def definitions() -> Iterator[Definition]:
    """Yield every summary of a number, and the percentiles of scores."""
    for name in NUMBERS:
        for summary in ("mean", *PERCENTILES, "max"):
            yield Definition(
                name=f"{summary}({name})",
                field=f"{summary}_{name}",
                of_table=partial(_of_number, summary, name),
                limits=None if summary == "max" else partial(_limits_of_number, summary, name),
                measure=NUMBERS[name] if summary == "mean" else None,
                quantile=PERCENTILES.get(summary),
                eval_fn="none",
                is_share=False,
            )
    for summary, p in PERCENTILES.items():
        yield Definition(
            name=summary,
            field=summary,
            of_table=partial(_of_scores, p),
            limits=partial(_limits_of_scores, p),
            quantile=p,
            unit_scores=True,
        )


def _of_number(summary: str, name: str, table: ScoreTable, eval_fn: str | None) -> Bounds:
    from .summaries import of_number

    return of_number(table, NUMBERS[name], PERCENTILES.get(summary, summary))


def _limits_of_number(
    summary: str, name: str, table: ScoreTable, eval_fn: str | None, case: Case, confidence: float
) -> Interval | None:
    from .summaries import limits_of_number

    return limits_of_number(
        table, NUMBERS[name], PERCENTILES.get(summary, summary), case, confidence
    )


def _of_scores(p: float, table: ScoreTable, eval_fn: str | None) -> Bounds:
    from .summaries import of_scores

    return of_scores(table, eval_fn or table.eval_fns[0], p)


def _limits_of_scores(
    p: float, table: ScoreTable, eval_fn: str | None, case: Case, confidence: float
) -> Interval | None:
    from .summaries import limits_of_scores

    return limits_of_scores(table, eval_fn or table.eval_fns[0], p, case, confidence)
