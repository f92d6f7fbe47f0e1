"""The JSON report, made from a result; the file is written whole or not at all."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError

from ..analysis.metrics import estimates
from ..storage.atomic_write import write_whole
from ..suite_results import Breakdown, EvalResult, FunctionResult, RowResult, SuiteResult, Usage
from ..verdicts import Change, Comparison, GateResult, Interval
from ..verdicts import Difference as Found
from .formats import Sections
from .json_models import (
    BaselineChanges,
    ByColumn,
    ByValue,
    ChangedRow,
    Config,
    Difference,
    Environment,
    EvalFnSummary,
    Figure,
    FunctionChanges,
    GateReport,
    OtherModel,
    Repeated,
    Report,
    Row,
    Run,
    Savings,
    Suite,
    Summary,
)


def report_of(result: EvalResult) -> Report:
    """The report of a session with at least one suite."""
    suites = [Suite(**_described(suite, result)) for suite in result.suites]
    others = [suite.baseline_model_result for suite in result.suites]
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
        gates=[_gate(verdict, suite) for suite in result.suites for verdict in suite.verdicts],
        baseline=None if several else suites[0].baseline,
        by=[] if several else suites[0].by,
        baseline_models=[_other_model(other, result) for other in others if other is not None],
        saved=None if result.saved is None else Savings.model_validate(result.saved),
        environment=Environment.model_validate(result.environment) if result.environment else None,
    )


def write(result: EvalResult, path: Path, sections: Sections | None = None) -> None:
    """Write the report; OSError when it cannot be written, the old file then untouched."""
    report = report_of(result)
    try:
        text = report.model_dump_json(indent=2)
    except PydanticSerializationError:  # half a character (a lone surrogate), which JSON can hold
        text = json.dumps(report.model_dump(mode="json"), indent=2, allow_nan=False)
    text = re.sub(r"[^\x00-\x7e]+", lambda found: json.dumps(found[0])[1:-1], text)
    write_whole(path, text.encode("ascii") + b"\n")


def schema() -> dict[str, Any]:
    """The report's JSON Schema."""
    return Report.model_json_schema()


def _described(suite: SuiteResult, result: EvalResult) -> dict[str, Any]:
    return {
        "name": suite.info.name,
        "config": _config(suite),
        "summary": _summary(suite, result),
        "baseline": _baseline(suite),
        "by": [_by_column(each) for each in suite.breakdowns],
    }


def _by_column(found: Breakdown) -> ByColumn:
    return ByColumn(
        column=found.column,
        values=[
            ByValue(
                value=each.value,
                row_indices=list(each.row_indices),
                total_runs=each.finished,
                eval_fns={function.name: _function(function) for function in each.functions},
            )
            for each in found.values
        ],
    )


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
        name=info.name,
        endpoint=info.endpoint,
        settings=dict(info.settings),
    )


def _summary(suite: SuiteResult, result: EvalResult) -> Summary:
    return Summary(
        total_rows=len(suite.rows),
        total_runs=suite.finished,
        eval_fns={function.name: _function(function) for function in suite.functions},
        total_tokens=suite.used.tokens,
        total_duration_ms=result.duration_ms,
        selected=suite.selected,
        total=suite.info.total_runs,
        complete=suite.complete,
        incomplete_rows=suite.short_rows,
        errors=dict(suite.errors),
        finish_reasons=dict(suite.finish_reasons),
        unknown_tokens=suite.used.unknown_tokens,
        retries=suite.retries,
        cached=suite.cached,
        cost_usd=suite.used.cost_usd,
        unknown_cost=suite.used.unknown_cost,
        repeated=_repeated([suite]),
        halted=result.halted,
        interrupted=result.interrupted,
    )


def _function(function: FunctionResult) -> EvalFnSummary:
    return EvalFnSummary(
        scored=function.scored,
        missing=function.missing,
        recorded=function.is_recorded,
        threshold=function.pass_threshold,
        intervals={
            figure.field: _figure(figure.value, figure.interval)
            for figure in function.figures.values()
            if figure.value is not None and estimates(figure.metric)
        },
        **{figure.field: figure.value for figure in function.figures.values()},
    )


def _row(row: RowResult, suite: str | None) -> Row:
    return Row(
        row_index=row.row_index,
        row_id=row.row_id,
        digest=row.digest,
        suite=suite,
        runs=[Run.model_validate(run) for run in row.runs],
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
        repeated=_repeated(result.suites),
    )


def _repeated(suites: Iterable[SuiteResult]) -> Repeated:
    return Repeated.model_validate(sum((suite.repeated for suite in suites), Usage()))


def _shared(name: str, suites: list[Suite]) -> bool:
    return sum(name in suite.summary.eval_fns for suite in suites) > 1


def _added(counts: Any) -> dict[str, int]:
    added: Counter[str] = Counter()
    for count in counts:
        added.update(count)
    return dict(added)


def _baseline(suite: SuiteResult) -> BaselineChanges | None:
    """What changed, if the suite was compared."""
    if suite.baseline is None:
        return None
    return BaselineChanges(
        source=suite.baseline.source,
        notes=list(suite.baseline.notes),
        eval_fns={each.eval_fn: _changes(each) for each in suite.baseline.comparisons},
    )


def _gate(verdict: GateResult, suite: SuiteResult) -> GateReport:
    kept = {name: getattr(verdict, name) for name in _GATE_FIELDS}
    return GateReport(
        **kept,
        suite=suite.info.name,
        figure=None if verdict.figure is None else _figure(verdict.figure, verdict.interval),
        low=_finite(verdict.low),
        high=_finite(verdict.high),
        sentence=verdict.sentence(),
        row_indices=None if verdict.row_indices is None else list(verdict.row_indices),
    )


_GATE_FIELDS = set(GateReport.model_fields) - {
    "suite", "figure", "low", "high", "sentence", "row_indices"
}  # fmt: skip


def _figure(value: float, interval: Interval | None) -> Figure:
    return Figure(value=value, **({} if interval is None else asdict(interval)))


def _changes(comparison: Comparison) -> FunctionChanges:
    return FunctionChanges(
        rows=comparison.rows,
        differences=[_difference(each) for each in comparison.differences],
        broken=[_changed(each) for each in comparison.regressed],
        mended=[_changed(each) for each in comparison.fixed],
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
        runs=change.current.runs,
        baseline_passes=change.baseline.passes,
        baseline_runs=change.baseline.runs,
        answer=change.answer,
        baseline_answer=change.baseline_answer,
    )


def _finite(value: float | None) -> Any:
    return value if value is not None and math.isfinite(value) else None
