"""A JSON report read back: the same `EvalResult` that it was written from, figures recomputed.

Reads the contracted core; whatever stands beside it is taken where it is there, so that reports of
other versions can be compared. Imports no pydantic: a session with a baseline reads one too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..aggregation import aggregate
from ..results import EvalResult, RunResult, SuiteInfo, SuiteResult


class UnreadableReport(Exception):
    """The file is no report; `str()` names it and says why."""


def read_report(path: Path) -> EvalResult:
    """The result that a JSON report tells of; UnreadableReport when it is none."""
    try:
        document = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise UnreadableReport(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"{path}: not a JSON report: {error}") from None
    try:
        return result_of(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise UnreadableReport(f"{path}: not an evaluation's report: {what}") from None


@dataclass(frozen=True, slots=True)
class AskedGate:
    """A gate that a report tells of, without its verdict."""

    text: str
    suite: str
    confidence: float | None = None


def read_gates(path: Path) -> list[AskedGate]:
    """The gates of a report that `read_report` could read; none in one without."""
    told = json.loads(path.read_bytes()).get("gates") or []
    return [
        AskedGate(gate["gate"], gate["suite"], (gate.get("figure") or {}).get("confidence"))
        for gate in told
    ]


def result_of(document: Mapping[str, Any]) -> EvalResult:
    """The result of a parsed report; KeyError, TypeError or ValueError where it is none."""
    if not isinstance(document, dict):
        raise TypeError(f"expected an object, not {type(document).__name__}")
    summary = document["summary"]
    rows: defaultdict[str | None, list[Mapping[str, Any]]] = defaultdict(list)
    for row in document["rows"]:
        rows[row.get("suite")].append(row)
    several = document.get("suites") or []
    parts = [(part["name"], part["config"], part["summary"]) for part in several]
    if not parts:
        config = document["config"]
        parts = [(_name(config), config, summary)]
    return EvalResult(
        suites=tuple(
            _suite(name, config, told, rows[name if several else None])
            for name, config, told in parts
        ),
        duration_ms=float(summary["total_duration_ms"]),
        halted=summary.get("halted"),
        environment=document.get("environment") or {},
    )


def _name(config: Mapping[str, Any]) -> str:
    return str(config.get("data") or "evaluation")


def _suite(
    name: str,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    rows: list[Mapping[str, Any]],
) -> SuiteResult:
    info = _info(name, config, summary, rows)
    runs = list(_runs(name, rows, model=info.model, names=info.eval_fns, config=config))
    suite = aggregate(info, runs, selected=int(summary.get("selected", len(runs))))
    digests = {int(row["row_index"]): row.get("digest") or "" for row in rows}
    return replace(
        suite,
        rows=tuple(replace(row, digest=digests.get(row.row_index, "")) for row in suite.rows),
    )


def _info(
    name: str,
    config: Mapping[str, Any],
    summary: Mapping[str, Any],
    rows: list[Mapping[str, Any]],
) -> SuiteInfo:
    n = int(config["n_runs"])
    total = int(summary.get("total") or len(rows) * n)
    return SuiteInfo(
        name=name,
        agent=str(config.get("agent", "")),
        data=str(config.get("data", "")),
        model=str(config["model"]),
        endpoint=str(config.get("endpoint", "")),
        eval_fns=tuple(str(each) for each in config["eval_fns"]),
        n=n,
        pass_threshold=float(config["pass_threshold"]),
        rows=total // n if n else 0,
        digest=str(config.get("data_sha256", "")),
        settings=dict(config.get("settings") or {}),
    )


_KEPT = frozenset(field.name for field in fields(RunResult)) - {
    "suite", "row_index", "run_index", "row_id", "scores", "passed", "success", "model",
}  # fmt: skip


def _runs(
    suite: str,
    rows: list[Mapping[str, Any]],
    *,
    model: str,
    names: tuple[str, ...],
    config: Mapping[str, Any],
) -> Iterator[RunResult]:
    threshold = float(config["pass_threshold"])
    for row in rows:
        for run in row["runs"]:
            scores = {str(name): float(score) for name, score in run["scores"].items()}
            kept = {name: run[name] for name in _KEPT.intersection(run) if run[name] is not None}
            passes = all(scores.get(name, threshold - 1) >= threshold for name in names)
            yield RunResult(
                suite=suite,
                row_index=int(row["row_index"]),
                run_index=int(run["run_index"]),
                row_id=row.get("row_id"),
                success=bool(run["success"]),
                passed=bool(run.get("passed", run["success"] and passes)),
                scores=scores,
                model=run.get("model") or model,
                **kept,
            )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")
