"""The JSON report: its one definition as models, and the file that is written whole or not at all.

Fields may be added; none of the core's is renamed or removed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..results import EvalResult, FunctionResult, RunResult, SuiteResult
from ..storage.atomic_write import write_whole
from . import json_models
from .writers import Sections

SCHEMA_VERSION = 1


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Config(_Model):
    """What was asked."""

    model: str
    n_runs: int
    pass_threshold: float
    eval_fns: list[str]
    agent: str
    data: str
    data_sha256: str
    endpoint: str
    settings: dict[str, Any] = Field(default_factory=dict)


class EvalFnSummary(BaseModel):
    """One eval function over all runs; a missing score counts as 0.0.

    For n > 1 there are further `pass_at_<k>` and `pass_hat_<k>` fields, for k in 1, 3, 5, 10 and n.
    """

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)

    mean: float
    std: float
    min: float
    max: float
    scored: int
    missing: int
    intervals: dict[str, json_models.Figure] = Field(
        default_factory=dict, description="of the mean, pass_at_<k> and pass_hat_<k>, by name"
    )


class Summary(_Model):
    """All runs taken together."""

    total_rows: int
    total_runs: int
    eval_fns: dict[str, EvalFnSummary]
    total_tokens: int | None
    total_duration_ms: float
    selected: int
    total: int
    complete: bool
    incomplete_rows: int
    errors: dict[str, int]
    finish_reasons: dict[str, int]
    unknown_tokens: int
    retries: int
    cost_usd: float | None
    halted: str | None = None
    interrupted: str | None = None
    cached: int = 0
    unknown_cost: int = 0


class Run(_Model):
    """One run."""

    run_index: int
    success: bool
    scores: dict[str, float]
    duration_ms: float
    tokens: int | None
    passed: bool
    outcome: str
    answer: str | None = None
    error: str | None = None
    error_type: str | None = None
    error_kind: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    llm_calls: int = 0
    tool_calls: int = 0
    llm_ms: float = 0.0
    retries: int = 0
    cost_usd: float | None = None
    model: str | None = None
    started_at: float | None = None
    cached: bool = False


class Row(_Model):
    """One row and its runs."""

    row_index: int
    runs: list[Run]
    row_id: str | None = None
    digest: str = ""
    suite: str | None = None


class Git(_Model):
    """The project's repository."""

    commit: str
    dirty: bool | None = Field(description="tracked files had been changed since the commit")


class Environment(_Model):
    """Where the session ran."""

    versions: dict[str, str]
    platform: str
    git: Git | None
    command_line: str = Field(description="without the values of keys")


class Suite(_Model):
    """One of several evaluations in the session."""

    name: str
    config: Config
    summary: Summary
    baseline: json_models.BaselineChanges | None = None


class OtherModel(Suite):
    """The baseline model's runs of the same rows."""

    baseline_of: str
    rows: list[Row]


class Report(_Model):
    """The report. With several suites the core holds them all, and `suites` tells them apart."""

    schema_version: int = SCHEMA_VERSION
    config: Config
    summary: Summary
    rows: list[Row]
    suites: list[Suite] = Field(default_factory=list)
    gates: list[json_models.GateReport] = Field(default_factory=list)
    baseline: json_models.BaselineChanges | None = Field(
        default=None, description="of the one suite; with several, each has its own"
    )
    baseline_models: list[OtherModel] = Field(default_factory=list)
    saved: json_models.Savings | None = Field(
        default=None, description="by stopping as soon as every gate was decided"
    )
    environment: Environment | None = None


def report_of(result: EvalResult) -> Report:
    """The report of a session with at least one suite."""
    suites = [Suite(**_described(suite, result)) for suite in result.suites]
    rivals = [suite.rival for suite in result.suites if suite.rival is not None]
    several = len(suites) > 1
    return Report(
        config=_merged_config(suites) if several else suites[0].config,
        summary=_merged_summary(suites, result) if several else suites[0].summary,
        rows=[
            _row(row, suite.info.name if several else None)
            for suite in result.suites
            for row in suite.rows
        ],
        suites=suites if several else [],
        gates=list(json_models.gates(result)),
        baseline=None if several else suites[0].baseline,
        baseline_models=[_other_model(rival, result) for rival in rivals],
        saved=json_models.savings(result),
        environment=Environment.model_validate(result.environment) if result.environment else None,
    )


def write(result: EvalResult, path: Path, sections: Sections | None = None) -> None:
    """Write the report; OSError when it cannot be written, the old file then untouched."""
    data = report_of(result).model_dump(mode="json")
    text = json.dumps(data, indent=2, ensure_ascii=True, allow_nan=False)
    write_whole(path, text.encode("ascii") + b"\n")


def schema() -> dict[str, Any]:
    """The report's JSON Schema."""
    return Report.model_json_schema()


def _described(suite: SuiteResult, result: EvalResult) -> dict[str, Any]:
    return {
        "name": suite.info.name,
        "config": _config(suite),
        "summary": _summary(suite, result),
        "baseline": json_models.baseline(suite),
    }


def _other_model(suite: SuiteResult, result: EvalResult) -> OtherModel:
    return OtherModel(
        **_described(suite, result),
        baseline_of=suite.info.baseline_of or "",
        rows=[_row(row, None) for row in suite.rows],
    )


def _config(suite: SuiteResult) -> Config:
    info = suite.info
    return Config(
        model=info.model,
        n_runs=info.n,
        pass_threshold=info.pass_threshold,
        eval_fns=[function.name for function in suite.functions],
        agent=info.agent,
        data=info.data,
        data_sha256=info.digest,
        endpoint=info.endpoint,
        settings=dict(info.settings),
    )


def _summary(suite: SuiteResult, result: EvalResult) -> Summary:
    return Summary(
        total_rows=len(suite.rows),
        total_runs=suite.finished,
        eval_fns={function.name: _function(function) for function in suite.functions},
        total_tokens=suite.total_tokens,
        total_duration_ms=result.duration_ms,
        selected=suite.selected,
        total=suite.info.total_runs,
        complete=suite.complete,
        incomplete_rows=suite.short_rows,
        errors=dict(suite.errors),
        finish_reasons=dict(suite.finish_reasons),
        unknown_tokens=suite.unknown_tokens,
        retries=suite.retries,
        cached=suite.cached,
        cost_usd=suite.cost_usd,
        unknown_cost=suite.unknown_cost,
        halted=result.halted,
        interrupted=result.interrupted,
    )


def _function(function: FunctionResult) -> EvalFnSummary:
    return EvalFnSummary(
        mean=function.mean,
        std=function.std,
        min=function.min,
        max=function.max,
        scored=function.scored,
        missing=function.missing,
        intervals=json_models.figures(function),
        **{f"pass_at_{k}": value for k, value in function.pass_at.items()},
        **{f"pass_hat_{k}": value for k, value in function.pass_hat.items()},
    )


def _row(row: Any, suite: str | None) -> Row:
    return Row(
        row_index=row.row_index,
        row_id=row.row_id,
        digest=row.digest,
        suite=suite,
        runs=[_run(run) for run in row.runs],
    )


def _run(run: RunResult) -> Run:
    return Run(
        run_index=run.run_index,
        success=run.success,
        scores=dict(run.scores),
        duration_ms=run.duration_ms,
        tokens=run.tokens,
        passed=run.passed,
        outcome=run.outcome,
        answer=run.answer,
        error=run.error,
        error_type=run.error_type,
        error_kind=run.error_kind,
        finish_reason=run.finish_reason,
        prompt_tokens=run.prompt_tokens,
        completion_tokens=run.completion_tokens,
        llm_calls=run.llm_calls,
        tool_calls=run.tool_calls,
        llm_ms=run.llm_ms,
        retries=run.retries,
        cached=run.cached,
        cost_usd=run.cost_usd,
        model=run.model,
        started_at=run.started_at or None,
    )


def _merged_config(suites: list[Suite]) -> Config:
    """The first suite's, naming all data and all eval functions."""
    first = suites[0].config
    names = dict.fromkeys(name for suite in suites for name in suite.config.eval_fns)
    data = dict.fromkeys(suite.config.data for suite in suites)
    return first.model_copy(update={"eval_fns": list(names), "data": ", ".join(data)})


def _merged_summary(suites: list[Suite], result: EvalResult) -> Summary:
    """Totals over all suites; figures of eval functions stay with their suites."""
    summaries = [suite.summary for suite in suites]

    def total(name: str) -> Any:
        known = [value for s in summaries if (value := getattr(s, name)) is not None]
        return sum(known) if known else None

    counts = ("total_rows", "total_runs", "total_tokens", "selected", "total", "incomplete_rows",
              "unknown_tokens", "retries", "cost_usd", "unknown_cost", "cached")  # fmt: skip
    return Summary(
        **{name: total(name) for name in counts},
        eval_fns={
            f"{suite.name}::{name}" if _shared(name, suites) else name: summary
            for suite in suites
            for name, summary in suite.summary.eval_fns.items()
        },
        total_duration_ms=result.duration_ms,
        complete=all(summary.complete for summary in summaries),
        errors=_added(summary.errors for summary in summaries),
        finish_reasons=_added(summary.finish_reasons for summary in summaries),
        halted=result.halted,
        interrupted=result.interrupted,
    )


def _shared(name: str, suites: list[Suite]) -> bool:
    return sum(name in suite.summary.eval_fns for suite in suites) > 1


def _added(counts: Any) -> dict[str, int]:
    added: dict[str, int] = {}
    for count in counts:
        for name, value in count.items():
            added[name] = added.get(name, 0) + value
    return added
