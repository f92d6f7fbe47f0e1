"""A JSON report read back: the same `EvalResult` that it was written from, figures recomputed.

Reads the contracted core; whatever stands beside it is taken where it is there, so that reports of
other versions can be compared. Imports no pydantic: a session with a baseline reads one too.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..analysis.aggregate import aggregate
from ..analysis.breakdown import breakdown_of
from ..run_result import RUN_FIELDS, RunResult, SuiteInfo, passes
from ..suite_results import Breakdown, EvalResult, SuiteResult, Usage

MOST_RUNS = 1_000_000
"""Runs of one row; a report that claims more is damaged."""
MOST = 2**53
"""Of anything that is counted: up to here a float is exact."""


class UnreadableReport(Exception):
    """The file is no report; `str()` names it and says why."""


def read_report(path: Path) -> EvalResult:
    """Return the result that a JSON report was written from; UnreadableReport when it is none."""
    document = _document(path)
    try:
        return result_of(document)
    except ValueError as error:
        raise UnreadableReport(f"{path}: not an evaluation's report: {error}") from None


@dataclass(frozen=True, slots=True)
class AskedGate:
    """A gate of a report, without its result."""

    text: str
    suite: str
    eval_fn: str | None = None
    """Its whole name."""
    confidence: float | None = None
    row_indices: tuple[int, ...] | None = None
    """The rows of its slice; None: all, or not known."""


def read_row_indices(path: Path) -> list[int]:
    """Return the indices of the rows in a JSON report, ascending; UnreadableReport for no report.

    All of its evaluations must have the same rows.
    """
    document = _document(path)
    found: defaultdict[str | None, set[int]] = defaultdict(set)
    try:
        if not isinstance(document, dict):
            raise ValueError(f"expected an object, not {type(document).__name__}")
        for row in _list(document, "rows"):
            found[_text(row, "suite", None)].add(_whole(row, "row_index"))
    except ValueError as error:
        raise UnreadableReport(f"{path}: not an evaluation's report: {error}") from None
    if not found:
        raise UnreadableReport(f"{path}: has no row")
    first, *others = found.values()
    if any(rows != first for rows in others):
        raise UnreadableReport(f"{path}: has several evaluations, with different rows")
    return sorted(first)


def read_gates(path: Path) -> list[AskedGate]:
    """The gates of a report that `read_report` could read; none in one without."""
    document = _document(path)
    try:
        return [_asked(told) for told in _several(document, "gates")]
    except ValueError as error:
        raise UnreadableReport(f"{path}: not an evaluation's report: {error}") from None


def result_of(document: Any) -> EvalResult:
    """The result of a parsed report; ValueError, which says where, if it is none."""
    if not isinstance(document, dict):
        raise ValueError(f"expected an object, not {type(document).__name__}")
    summary = _object(document, "summary")
    rows: defaultdict[str | None, list[_Fields]] = defaultdict(list)
    for row in _list(document, "rows"):
        rows[_text(row, "suite", None)].append(row)
    parts = _several(document, "suites")
    suites = [_suite(_text(part, "name"), part, rows[_text(part, "name")]) for part in parts]
    if not parts:
        suites = [_suite(_name(_object(document, "config")), document, rows[None])]
    baseline_models = {
        _text(part, "baseline_of"): _baseline_model(part)
        for part in _several(document, "baseline_models")
    }
    if len(suites) == len(baseline_models) == 1:
        [other] = baseline_models.values()
        baseline_models = {suites[0].info.name: other}
    return EvalResult(
        suites=tuple(
            replace(suite, baseline_model_result=baseline_models.get(suite.info.name))
            for suite in suites
        ),
        duration_ms=_milliseconds(summary, "total_duration_ms"),
        halted=_text(summary, "halted", None),
        environment=_environment(document),
    )


def _document(path: Path) -> Any:
    """What the file holds."""
    try:
        return json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise UnreadableReport(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"{path}: not a JSON report: {error}") from None


def _asked(told: _Fields) -> AskedGate:
    indices, confidence = told.get("row_indices"), _number(told, "confidence", None)
    if confidence is not None and not 0.0 < confidence < 1.0:
        raise _unlike("confidence", "a number between 0 and 1", confidence)
    return AskedGate(
        _text(told, "gate"),
        _text(told, "suite"),
        _text(told, "eval_fn", None),
        confidence,
        None if indices is None else tuple(_wholes(told, "row_indices")),
    )


def _name(config: _Fields) -> str:
    return _text(config, "name", "") or _text(config, "data", "") or "evaluation"


def _suite(name: str, part: _Fields, rows: list[_Fields]) -> SuiteResult:
    summary = _object(part, "summary")
    recorded = _recorded(summary)
    info = _info(name, _object(part, "config"), summary, rows)
    info = replace(info, eval_fns=tuple(each for each in info.eval_fns if each not in recorded))
    runs = [_with_thresholds(run, recorded) for run in _runs(info, rows)]
    selected = _whole(summary, "selected", len(runs))
    suite = aggregate(info, runs, selected=selected)
    digests = {_whole(row, "row_index"): _text(row, "digest", "") for row in rows}
    return replace(
        suite,
        repeated=_usage(_object(summary, "repeated", {})),
        rows=tuple(replace(row, digest=digests.get(row.row_index, "")) for row in suite.rows),
        breakdowns=tuple(_breakdown(suite, told) for told in _several(part, "by")),
    )


def _usage(told: _Fields) -> Usage:
    return (
        Usage(
            _whole(told, "runs", 0),
            _whole(told, "tokens", None),
            _whole(told, "unknown_tokens", 0),
            _number(told, "cost_usd", None),
            _whole(told, "unknown_cost", 0),
        )
        if told
        else Usage()
    )


def _breakdown(suite: SuiteResult, told: _Fields) -> Breakdown:
    rows_of = {
        _text(value, "value"): _wholes(value, "row_indices") for value in _list(told, "values")
    }
    return breakdown_of(suite, _text(told, "column"), rows_of, confidence=None)


def _recorded(summary: _Fields) -> dict[str, float | None]:
    """The scores that tests have recorded, each with its pass threshold if it has one."""
    told = _object(summary, "eval_fns", {})
    functions = {str(name): _object(told, name) for name in told}
    return {
        name: _number(function, "threshold", None)
        for name, function in functions.items()
        if _flag(function, "recorded", False)
    }


def _with_thresholds(run: RunResult, recorded: dict[str, float | None]) -> RunResult:
    own = {name: at for name, at in recorded.items() if at is not None and name in run.scores}
    return replace(run, thresholds=own) if own else run


def _baseline_model(part: _Fields) -> SuiteResult:
    """The baseline model's runs."""
    suite = _suite(_text(part, "name"), part, _list(part, "rows"))
    return replace(suite, info=replace(suite.info, baseline_of=_text(part, "baseline_of")))


def _info(name: str, config: _Fields, summary: _Fields, rows: list[_Fields]) -> SuiteInfo:
    n = _whole(config, "n_runs")
    if not 1 <= n <= MOST_RUNS:
        raise ValueError(f"'n_runs' is {n}, and no number of runs a row")
    total = _whole(summary, "total", None)
    return SuiteInfo(
        name=name,
        agent=_text(config, "agent", ""),
        data=_text(config, "data", ""),
        model=_text(config, "model"),
        endpoint=_text(config, "endpoint", ""),
        eval_fns=tuple(dict.fromkeys(_texts(config, "eval_fns"))),
        n=n,
        pass_threshold=_number(config, "pass_threshold"),
        rows=(len(rows) * n if total is None else total) // n,
        digest=_text(config, "data_sha256", ""),
        settings=dict(_object(config, "settings", {})),
    )


def _runs(info: SuiteInfo, rows: list[_Fields]) -> Iterator[RunResult]:
    seen: set[tuple[int, int]] = set()
    for row in rows:
        index = _whole(row, "row_index")
        row_id = row.get("row_id")
        for run in _list(row, "runs"):
            key = index, _whole(run, "run_index")
            where = f"row {index}, run {key[1]}"
            if key in seen:
                raise ValueError(f"{where}: is there twice")
            if key[1] >= info.n:
                raise ValueError(f"{where}: there are {info.n} runs a row")
            seen.add(key)
            try:
                yield _run(info, run, key, None if row_id is None else str(row_id))
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None


def _run(info: SuiteInfo, run: _Fields, key: tuple[int, int], row_id: str | None) -> RunResult:
    told, reasons = _object(run, "scores"), _object(run, "reasons", {})
    scores = {str(name): _number(told, name) for name in told if told[name] is not None}
    success = _flag(run, "success")
    all_pass = all(passes(scores.get(name), info.pass_threshold) for name in info.eval_fns)
    return RunResult(
        suite=info.name,
        row_index=key[0],
        run_index=key[1],
        row_id=row_id,
        success=success,
        passed=_flag(run, "passed", success and all_pass),
        scores=scores,
        reasons={name: _text(reasons, name) for name in reasons},
        model=_text(run, "model", None) or info.model,
        **{name: read(run, name) for name, read in _KEPT.items() if run.get(name) is not None},
    )


def _environment(document: _Fields) -> dict[str, Any]:
    """Where the session ran, as far as the report says so in its usual form."""
    told = _object(document, "environment", {})
    if not told:
        return {}
    git = _object(told, "git", {})
    return {
        "versions": {name: str(number) for name, number in _object(told, "versions").items()},
        "platform": _text(told, "platform"),
        "git": {"commit": _text(git, "commit"), "dirty": git.get("dirty") is True} if git else None,
        "command_line": _text(told, "command_line"),
    }


_Fields = dict[str, Any]
_REQUIRED: Any = object()


def _value(fields: _Fields, name: str, default: Any) -> Any:
    """A field; without a default it has to be there. None counts as absent where there is one."""
    value = fields.get(name)
    if value is not None or (default is None and name in fields):
        return value
    if default is _REQUIRED:
        raise ValueError(f"{name!r} is {'null' if name in fields else 'missing'}")
    return default


def _reader(what: str, accepts: Callable[[Any], bool]) -> Callable[..., Any]:
    """Return a function that reads a field of one type: `read(fields, name[, default])`."""

    def read(fields: _Fields, name: str, default: Any = _REQUIRED) -> Any:
        value = _value(fields, name, default)
        if value is not default and not accepts(value):
            raise _unlike(name, what, value)
        return value

    return read


def _all_are(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(each, kind) for each in value)


_object = _reader("an object", lambda value: isinstance(value, dict))
_list = _reader("a list of objects", _all_are(dict))
_text = _reader("a text", lambda value: isinstance(value, str))
_texts = _reader("a list of texts", _all_are(str))
_flag = _reader("true or false", lambda value: isinstance(value, bool))


def _several(fields: _Fields, name: str) -> list[_Fields]:
    found: list[_Fields] = _list(fields, name, [])
    return found


def _wholes(fields: _Fields, name: str) -> list[int]:
    value = _value(fields, name, _REQUIRED)
    if not isinstance(value, list):
        raise _unlike(name, "a list of whole numbers", value)
    return [_whole({name: each}, name) for each in value]


def _number(fields: _Fields, name: str, default: Any = _REQUIRED) -> Any:
    value = _value(fields, name, default)
    if value is default:
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer that no float holds
            if math.isfinite(number := float(value)):
                return number
    raise _unlike(name, "a finite number", value)


def _whole(fields: _Fields, name: str, default: Any = _REQUIRED) -> Any:
    value = _number(fields, name, default)
    if value is default:
        return value
    if not value.is_integer() or not 0 <= value <= MOST:
        raise _unlike(name, "a whole number from 0 up", fields[name])
    return int(value)


def _milliseconds(fields: _Fields, name: str) -> Any:
    """A duration; earlier reports had fractions."""
    return round(_number(fields, name))


def _unlike(name: str, what: str, value: Any) -> ValueError:
    shown = json.dumps(value)
    return ValueError(
        f"{name!r} is {shown if len(shown) <= 40 else shown[:40] + '…'}, expected {what}"
    )


_OWN = frozenset(
    {"suite", "row_index", "run_index", "row_id", "success", "passed", "model", "fatal"}
)
_READERS: dict[type, Callable[..., Any]] = {
    str: _text, float: _number, int: _whole, bool: _flag
}  # fmt: skip
_KEPT = {
    name: _milliseconds if name.endswith("_ms") else _READERS[kind]
    for name, kind in RUN_FIELDS.items()
    if name not in _OWN
}
"""Further fields of a run, and what reads each."""


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")
