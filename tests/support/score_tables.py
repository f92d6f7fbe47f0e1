"""Score tables of runs that are made up: what gates, comparisons and early stopping work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_osmosis.analysis.planned_rows import PlannedRows
from pytest_osmosis.analysis.score_table import ScoreTable, empty_score_table
from pytest_osmosis.run_result import RunResult
from tests.support.made_results import info

UNKNOWN = None
LOST = "lost"


def run_of(row: int, run: int, scores: Mapping[str, float | None], **measures: Any) -> RunResult:
    """A run that ended; one that lacks a score ended in an error, unless `error_type` says so."""
    known = {name: score for name, score in scores.items() if score is not None}
    error_type = None if known and len(known) == len(scores) else "provider"
    usual = {"error_type": error_type, "success": error_type is None, "scores": known}
    return RunResult("data.jsonl", row, run, **{**usual, **measures})


def empty_table(
    rows: int,
    n: int = 1,
    *,
    names: Sequence[str] = ("f",),
    threshold: float = 1.0,
    keys: Sequence[str] = (),
    digests: Sequence[str] = (),
) -> ScoreTable:
    """A table of which nothing has run yet."""
    row_names = [f"row-{row}" for row in range(rows)]
    return empty_score_table(
        info(n=n, rows=rows, pass_threshold=threshold, eval_fns=tuple(names)),
        PlannedRows(range(rows), row_names, keys or row_names, digests or [""] * rows),
    )


def table_of(rows: Sequence[Sequence[Any]], **settings: Any) -> ScoreTable:
    """Rows of runs: a score, UNKNOWN (ended in an error), or LOST (never ended)."""
    table = empty_table(len(rows), len(rows[0]) if rows else 1, **settings)
    table.record(
        run_of(
            row, run, dict.fromkeys(table.eval_fns or ("?",), score),
            duration_ms=1000 * (1 + run), tokens=100, llm_calls=1,
            cost_usd=None if score is UNKNOWN else 0.01,
        )
        for row, scores in enumerate(rows)
        for run, score in enumerate(scores)
        if score is not LOST
    )  # fmt: skip
    return table
