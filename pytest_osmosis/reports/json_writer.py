"""The JSON report, made from a result; the file is written whole or not at all.

Every field that `json_models` defines, as plain dictionaries: a large report has many runs.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..analysis.metrics import definition_of
from ..run_result import RunResult
from ..storage.atomic_write import write_whole
from ..suite_results import (
    EvalResult,
    FunctionResult,
    RowResult,
    SuiteResult,
    Usage,
)
from ..verdicts import GateResult, Interval
from .formats import (
    CONFIG_FIELDS,
    SECTIONS,
    SectionFormat,
    Sections,
    companion_fields,
    no_sections,
)

Fields = dict[str, Any]
"""An object of the report."""

SCHEMA_VERSION = 1

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
_RUN = tuple(
    each.name
    for each in fields(RunResult)
    if each.name not in {"suite", "row_index", "row_id", "fatal", "thresholds"}
)
"""Fields of a run that are written as they are."""
_values = attrgetter(*_RUN)


def write(result: EvalResult, path: Path, sections: Sections = no_sections) -> None:
    """Write the report; OSError when it cannot be written, the old file then untouched.

    One that holds answers can be read by its owner alone.
    """
    data = f"{_text(document_of(result))}\n".encode("ascii")
    write_whole(path, (data,), mode=result.private_mode)


def _text(value: Any, margin: str = "\n") -> str:
    """Return JSON that people can read: a line for each run, and for what holds single values.

    By the standard library's encoder in C, which makes no lines of its own.
    """
    deeper = margin + "  "
    if isinstance(value, dict) and any(isinstance(each, (dict, list)) for each in value.values()):
        parts = [f"{_encode(name)}: {_part(name, each, deeper)}" for name, each in value.items()]
        return f"{{{deeper}{f',{deeper}'.join(parts)}{margin}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{deeper}{f',{deeper}'.join(_text(each, deeper) for each in value)}{margin}]"
    return _encode(value)


def _part(name: str, value: Any, margin: str) -> str:
    """Return the value of a field; rows are encoded at once, and the lines put in afterwards.

    What begins a row or a run is in no text: there its quotes would be escaped.
    """
    if name != "rows" or not isinstance(value, list):
        return _text(value, margin)
    rows = _encode(value).replace('{"row_index": ', f'{margin}  {{"row_index": ')
    runs = rows.replace('{"run_index": ', f'{margin}    {{"run_index": ')
    return runs.replace(", \n", ",\n")


def document_of(result: EvalResult) -> Fields:
    """Return the report of a session with at least one suite."""
    suites = [_suite(suite, result) for suite in result.suites]
    others = [suite.companion for suite in result.suites]
    several = len(suites) > 1
    return {
        "schema_version": SCHEMA_VERSION,
        "config": _merged_config(suites) if several else suites[0]["config"],
        "summary": _merged_summary(suites, result) if several else suites[0]["summary"],
        "rows": [
            row
            for suite in result.suites
            for row in _rows(suite, suite.info.name if several else None)
        ],
        "suites": suites if several else [],
        "gates": [_gate(verdict, suite) for suite in result.suites for verdict in suite.verdicts],
        **{each.name: each.empty if several else suites[0][each.name] for each in SECTIONS},
        companion_fields()[0]: [_companion(each, result) for each in others if each is not None],
        "environment": dict(result.environment) or None,
    }


def _suite(suite: SuiteResult, result: EvalResult) -> Fields:
    return {
        "name": suite.info.name,
        "config": _config(suite),
        "summary": _summary(suite, result),
        **{each.name: _section(suite, each) for each in SECTIONS},
    }


def _section(suite: SuiteResult, kind: SectionFormat) -> Any:
    section = suite.sections.get(kind.name)
    return kind.empty if section is None else section.document()


def _companion(suite: SuiteResult, result: EvalResult) -> Fields:
    return {
        **_suite(suite, result),
        companion_fields()[1]: suite.info.companion_of or "",
        "rows": _rows(suite, None),
    }


def _config(suite: SuiteResult) -> Fields:
    info = suite.info
    return {
        "model": info.model,
        "n_runs": info.n,
        "pass_threshold": info.pass_threshold,
        "eval_fns": [function.name for function in suite.functions],
        "agent": info.agent,
        "data": info.data,
        "data_sha256": info.digest,
        "name": info.name,
        "endpoint": info.endpoint,
        "label": info.label,
        **{each.name: getattr(info, each.attribute) for each in CONFIG_FIELDS},
        "priced": info.priced,
        "settings": dict(info.settings),
    }


def _summary(suite: SuiteResult, result: EvalResult) -> Fields:
    return {
        "total_rows": len(suite.rows),
        "total_runs": suite.finished,
        "eval_fns": {function.name: function_document(function) for function in suite.functions},
        "total_tokens": suite.used.tokens,
        "total_duration_ms": result.duration_ms,
        "selected": suite.selected,
        "total": suite.info.total_runs,
        "complete": suite.complete,
        "incomplete_rows": suite.short_rows,
        "mixed_rows": suite.mixed_rows,
        "clusters": len(suite.info.clusters) or None,
        "errors": dict(suite.errors),
        "finish_reasons": dict(suite.finish_reasons),
        "answer_kinds": suite.answer_kinds,
        "notes": suite.notes,
        "cached_tokens": suite.total_of("cached_tokens"),
        "reasoning_tokens": suite.total_of("reasoning_tokens"),
        "unknown_tokens": suite.used.unknown_tokens,
        "retries": suite.retries,
        "clamped": suite.total_of("clamped") or 0,
        "cost_usd": suite.used.cost_usd,
        "halted": result.halted,
        "interrupted": result.interrupted,
        "verdict": None if suite.info.companion_of else suite.state,
        "cached": suite.cached,
        "unknown_cost": suite.used.unknown_cost,
        "repeated": asdict(suite.repeated),
    }


def function_document(function: FunctionResult) -> Fields:
    """Return the figures of one eval function."""
    figures = function.figures.values()
    return {
        **{figure.field: figure.value for figure in figures},
        "scored": function.scored,
        "missing": function.missing,
        "recorded": function.is_recorded,
        "threshold": function.pass_threshold,
        "intervals": {
            figure.field: figure_of(figure.value, figure.interval)
            for figure in figures
            if figure.value is not None and definition_of(figure.metric).interval
        },
    }


def _rows(suite: SuiteResult, name: str | None) -> list[Fields]:
    clusters = suite.info.cluster_of
    return [_row(row, name, clusters.get(row.row_index)) for row in suite.rows]


def _row(row: RowResult, suite: str | None, cluster: str | None) -> Fields:
    return {
        "row_index": row.row_index,
        "row_id": row.row_id,
        "digest": row.digest,
        "suite": suite,
        "cluster": cluster,
        "runs": [_run(run) for run in row.runs],
    }


def _run(run: RunResult) -> Fields:
    fields = dict(zip(_RUN, _values(run), strict=True))
    fields["outcome"] = run.outcome
    fields["started_at"] = run.started_at or None
    return fields


def _merged_config(suites: list[Fields]) -> Fields:
    """The first suite's, naming all data, agents, models and eval functions."""
    configs = [suite["config"] for suite in suites]
    names = dict.fromkeys(name for config in configs for name in config["eval_fns"])
    several = {
        name: ", ".join(dict.fromkeys(config[name] for config in configs))
        for name in ("data", "agent", "model")
    }
    return {**configs[0], "eval_fns": list(names), **several}


_COUNTS = (
    "total_rows", "total_runs", "total_tokens", "selected", "total", "incomplete_rows",
    "unknown_tokens", "retries", "clamped", "cost_usd", "unknown_cost", "cached",
    "cached_tokens", "reasoning_tokens", "clusters", "mixed_rows",
)  # fmt: skip
"""Fields of a summary that are added up."""
_COUNTED = ("finish_reasons", "answer_kinds", "notes")
"""Fields of a summary that count runs by a word."""


def _merged_summary(suites: list[Fields], result: EvalResult) -> Fields:
    """Totals over all suites; figures of eval functions stay with their suites."""
    summaries = [suite["summary"] for suite in suites]
    names = Counter(name for summary in summaries for name in summary["eval_fns"])
    return {
        **summaries[0],
        **{name: _total(summary[name] for summary in summaries) for name in _COUNTS},
        "verdict": result.state,
        "eval_fns": {
            f"{suite['name']}::{name}" if names[name] > 1 else name: function
            for suite in suites
            for name, function in suite["summary"]["eval_fns"].items()
        },
        "complete": all(summary["complete"] for summary in summaries),
        "errors": _added(summary["errors"] for summary in summaries),
        **{name: _added(summary[name] for summary in summaries) for name in _COUNTED},
        "repeated": asdict(sum((suite.repeated for suite in result.suites), Usage())),
    }


def _total(values: Iterable[Any]) -> Any:
    """The sum of what is known."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    added: Counter[str] = Counter()
    for count in counts:
        added.update(count)
    return dict(added)


def _gate(verdict: GateResult, suite: SuiteResult) -> Fields:
    kept = {name: getattr(verdict, name) for name in OF_A_VERDICT}
    return {
        **kept,
        "suite": suite.info.name,
        "figure": None if verdict.figure is None else figure_of(verdict.figure, verdict.interval),
        "low": _finite(verdict.low),
        "high": _finite(verdict.high),
        "sentence": verdict.sentence(),
    }


OF_A_VERDICT = (
    "gate", "outcome", "metric", "eval_fn", "operator", "threshold", "rows", "unknown",
    "more_rows", "confidence", "detail", "sensitivity", "is_measure", "reason", "clusters",
    "group",
)  # fmt: skip
"""Fields of a gate that are those of its verdict."""
_NO_INTERVAL = dict.fromkeys(("low", "high", "method", "confidence"))


def figure_of(value: float, interval: Interval | None) -> Fields:
    """Return a figure with its interval."""
    return {"value": value, **(_NO_INTERVAL if interval is None else asdict(interval))}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
