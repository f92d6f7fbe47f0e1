"""A JSON report read back: the same `EvalResult` that it was written from, figures recomputed.

The models say what a report must have; here is what contradicts itself all the same.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ..analysis.aggregate import CONFIDENCE, aggregate
from ..run_result import RUN_FIELDS, RunResult, SuiteInfo, passes
from ..suite_results import EvalResult, SuiteResult, Usage
from ..verdicts import GateResult
from .formats import CONFIG_FIELDS
from .json_figures import interval_of
from .json_models import NOT_OF_A_RUN, Report
from .json_writer import OF_A_VERDICT

if TYPE_CHECKING:
    from .json_models import Config, GateReport, Row, Run, Suite, Summary

_SHOWN = 40
"""Characters of a wrong value that a message shows."""
_FIELDS = tuple(
    name for name in RUN_FIELDS if name not in {*NOT_OF_A_RUN, "passed", "model", "started_at"}
)
"""Fields of a run that are as they stand in the report."""


class UnreadableReport(Exception):
    """The file is no report; `str()` names it and says why."""


def read_result(path: Path, *, figures: bool = True) -> EvalResult:
    """Return the result that a JSON report was written from; UnreadableReport when it is none.

    Without `figures`, numpy is not imported.
    """
    return load_report(path, figures=figures)[1]


def load_report(path: Path, *, figures: bool = True) -> tuple[Report, EvalResult]:
    """Return what a file says, and the result that it was written from; raises likewise."""
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise UnreadableReport(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"{path}: not a JSON report: {error}") from None
    try:
        report = checked(document)
        return report, result_of(report, figures=figures)
    except ValueError as error:
        raise UnreadableReport(f"{path}: not an evaluation's report: {error}") from None


def read_row_indices(path: Path) -> list[int]:
    """Return the indices of the rows in a JSON report, ascending; UnreadableReport for no report.

    All of its evaluations must have the same rows.
    """
    found: defaultdict[str | None, set[int]] = defaultdict(set)
    for row in load_report(path)[0].rows:
        found[row.suite].add(row.row_index)
    if not found:
        raise UnreadableReport(f"{path}: has no row")
    first, *others = found.values()
    if any(rows != first for rows in others):
        raise UnreadableReport(f"{path}: has several evaluations, with different rows")
    return sorted(first)


def checked(document: Any) -> Report:
    """Return a parsed report; ValueError, which says where, if it is none."""
    try:
        return Report.model_validate(document)
    except ValidationError as error:
        raise ValueError(_mistake(error)) from None


def _mistake(error: ValidationError) -> str:
    """What is wrong first, and where."""
    first = error.errors(include_url=False)[0]
    places = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    where = "".join(places).removeprefix(".") or "the whole"
    if first["type"] == "missing":
        return f"{where} is missing"
    value = json.dumps(first["input"], default=repr)
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    is_object = first["type"] in ("model_type", "dict_type")
    rule = "should be an object" if is_object else first["msg"].removeprefix("Input ")
    return f"{where} is {shown} and {rule}"


def result_of(report: Report, *, figures: bool = True) -> EvalResult:
    """Return the result of a report; ValueError, which says where, if it contradicts itself."""
    for number, part in enumerate(report.suites):
        if part.name in (each.name for each in report.suites[:number]):
            raise ValueError(f"suites[{number}].name {part.name!r} is there twice")
    rows: defaultdict[str | None, list[Row]] = defaultdict(list)
    for row in report.rows:
        rows[row.suite].append(row)
    suite = partial(_suite, figures=figures)
    suites = [suite(part.name, part, rows[part.name]) for part in report.suites]
    if not suites:
        config = report.config
        suites = [suite(config.name or config.data or "evaluation", report, rows[None])]
    others = {
        part.companion_of: suite(part.name, part, part.rows, companion_of=part.companion_of)
        for part in report.companions
    }
    if len(suites) == len(others) == 1:
        others = {suites[0].info.name: next(iter(others.values()))}
    environment = report.environment
    return EvalResult(
        suites=tuple(
            replace(
                each,
                companion=others.get(each.info.name),
                verdicts=tuple(
                    _gate_result(gate)
                    for gate in report.gates
                    if gate.suite == each.info.name or not report.suites
                ),
            )
            for each in suites
        ),
        duration_ms=report.summary.total_duration_ms,
        halted=report.summary.halted,
        interrupted=report.summary.interrupted,
        environment={} if environment is None else environment.model_dump(),
    )


def _gate_result(gate: GateReport) -> GateResult:
    figure, saved = gate.figure, {name: getattr(gate, name) for name in OF_A_VERDICT}
    is_measured = figure is not None or gate.low is not None or gate.high is not None
    if gate.is_measure is None:  # an earlier version did not say
        saved |= {
            "is_measure": gate.eval_fn is None,
            "reason": None if is_measured else gate.sentence,
        }
    return GateResult(
        **saved,
        figure=None if figure is None else figure.value,
        low=-math.inf if gate.low is None and is_measured else gate.low,
        high=math.inf if gate.high is None and is_measured else gate.high,
        interval=interval_of(figure),
    )


def _suite(
    name: str,
    part: Report | Suite,
    rows: Sequence[Row],
    *,
    figures: bool,
    companion_of: str | None = None,
) -> SuiteResult:
    summary = part.summary
    recorded = {
        function: saved.threshold for function, saved in summary.eval_fns.items() if saved.recorded
    }
    info = replace(_info(name, part.config, summary, rows, recorded), companion_of=companion_of)
    runs = list(_runs(info, rows, recorded))
    selected = summary.selected if "selected" in summary.model_fields_set else len(runs)
    level = _confidence_of(summary)
    suite = aggregate(info, runs, selected=selected, confidence=level, figures=figures)
    digests = {row.row_index: row.digest for row in rows}
    return replace(
        suite.with_rows(lambda row: replace(row, digest=digests[row.row_index])),
        repeated=Usage(**summary.repeated.model_dump()),
        verdict=summary.verdict,
    )


def _confidence_of(summary: Summary) -> float | None:
    """Return the confidence of the intervals; None where there are none."""
    functions = summary.eval_fns.values()
    if functions and not any("intervals" in each.model_fields_set for each in functions):
        return CONFIDENCE  # an earlier version did not say
    intervals = (each for function in functions for each in function.intervals.values())
    return next(filter(None, (each.confidence for each in intervals)), None)


def _info(
    name: str,
    config: Config,
    summary: Summary,
    rows: Sequence[Row],
    recorded: Mapping[str, float | None],
) -> SuiteInfo:
    has_total = "total" in summary.model_fields_set
    return SuiteInfo(
        name=name,
        agent=config.agent,
        data=config.data,
        model=config.model,
        endpoint=config.endpoint,
        label=config.label,
        priced=config.priced,
        eval_fns=tuple(each for each in dict.fromkeys(config.eval_fns) if each not in recorded),
        n=config.n_runs,
        pass_threshold=config.pass_threshold,
        thresholds={
            name: saved.threshold
            for name, saved in summary.eval_fns.items()
            if saved.threshold is not None and not saved.recorded
        },
        rows=summary.total // config.n_runs if has_total else len(rows),
        digest=config.data_sha256,
        settings=config.settings,
        **{each.attribute: getattr(config, each.name) for each in CONFIG_FIELDS},
        clusters=_clusters(rows),
    )


def _clusters(rows: Sequence[Row]) -> dict[str, list[int]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.cluster is not None:
            found[row.cluster].append(row.row_index)
    return dict(found)


def _runs(
    info: SuiteInfo, rows: Sequence[Row], recorded: Mapping[str, float | None]
) -> Iterator[RunResult]:
    own = {name: at for name, at in recorded.items() if at is not None} | dict(info.thresholds)
    seen: set[tuple[int, int]] = set()
    for row in rows:
        for run in row.runs:
            key = row.row_index, run.run_index
            where = f"row {row.row_index}, run {run.run_index}"
            if key in seen:
                raise ValueError(f"{where}: is there twice")
            if run.run_index >= info.n:
                raise ValueError(f"{where}: there are {info.n} runs a row")
            seen.add(key)
            thresholds = {name: at for name, at in own.items() if name in run.scores}
            yield _run(info, row, run, thresholds)


def _run(info: SuiteInfo, row: Row, run: Run, thresholds: Mapping[str, float]) -> RunResult:
    scores = run.scores
    least = dict.fromkeys(info.eval_fns, info.pass_threshold) | {**info.thresholds}
    all_pass = all(passes(scores.get(name), least[name]) for name in info.eval_fns)
    saved: dict[str, Any] = {name: getattr(run, name) for name in _FIELDS}
    return RunResult(
        suite=info.name,
        row_index=row.row_index,
        row_id=row.row_id,
        passed=run.passed if "passed" in run.model_fields_set else run.success and all_pass,
        scores=scores,
        thresholds=thresholds,
        reasons=run.reasons,
        eval_errors=run.eval_errors,
        judge_errors=run.judge_errors,
        rubrics=run.rubrics,
        model=getattr(run, "model", None) or info.model,
        started_at=run.started_at or 0.0,
        **saved,
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")
