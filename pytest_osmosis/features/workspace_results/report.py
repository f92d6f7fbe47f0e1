"""Figures, runs and conversations in the layout that workspaces of Osmosis have.

    metrics.json                     what was evaluated, and its figures
    index.jsonl, summary.jsonl       a line a run, the same in both
    trajectories/row_R_run_N.json    the conversation of a run, as ATIF has it
    logs.txt                         what runs that did not pass have printed

Further suites of the session, and the one of a baseline model, have a folder each, below. A run
that counts in no figure (an endpoint failed it) is `skipped`, so that the lines add up to the same
figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path, PurePath
from statistics import fmean, median, pstdev
from typing import Any

from ...analysis.statistics.estimators import pass_at_k
from ...dataset.rows import safe_name
from ...outcomes import Outcome
from ...reports.formats import Conversations, Sections
from ...run_result import RunResult
from ...storage.atomic_write import write_whole
from ...suite_results import EvalResult, SuiteResult
from .atif import rollout_id_of, trajectory

_PRIVATE = 0o600
_ROLLOUTS = "rollouts"
_STATUSES: Mapping[Outcome, str] = {
    "passed": "success",
    "below": "success",
    "raised": "failed",
    "timeout": "failed",
    "error": "skipped",
}


def write(
    result: EvalResult,
    path: Path,
    sections: Sections,
    *,
    conversations: Conversations | None,
    name: str | None = None,
) -> None:
    """Write `path`, and the other files beside it; OSError where one cannot be written.

    `name` is that of the evaluation, which has the name of the folder where it is None.
    """
    for position, suite in enumerate(result.with_companions):
        folder = path.parent / safe_name(suite.info.name) if position else path.parent
        folder.mkdir(parents=True, exist_ok=True)
        own = name if name and not position else folder.resolve().name
        _write_suite(suite, own, folder / path.name, sections, conversations)


def _write_suite(
    suite: SuiteResult,
    name: str,
    path: Path,
    sections: Sections,
    conversations: Conversations | None,
) -> None:
    runs = sorted(
        (run for run in suite.runs if run.outcome in _STATUSES),
        key=lambda run: (run.row_index, run.run_index),
    )
    folder = path.parent
    trajectories = folder / "trajectories"
    trajectories.mkdir(mode=0o700, exist_ok=True)
    for stale in trajectories.glob("row_*_run_*.json"):
        stale.unlink()
    lines = []
    for run in runs:
        record = None if conversations is None else conversations(run.run_id)
        line = _index_line(run, _reward(run, suite))
        if record is not None and record.messages:
            document = trajectory(run, record, reward=line.get("reward"))
            file = trajectories / f"row_{run.row_index}_run_{run.run_index}.json"
            line["trajectory_filename"] = f"{trajectories.name}/{file.name}"
            _write_json(file, document)
        lines.append(line)
    index = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()
    for file_name in ("index.jsonl", "summary.jsonl"):
        write_whole(folder / file_name, index, mode=_PRIVATE)
    log = "".join(_printed(runs, sections)).encode("utf-8", "backslashreplace")
    write_whole(folder / "logs.txt", log, mode=_PRIVATE)
    document = {"eval_run": _described(suite, name, runs), "summary": _figures(suite, runs)}
    _write_json(path, document)


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    write_whole(path, f"{text}\n".encode("utf-8", "backslashreplace"), mode=_PRIVATE)


def _reward(run: RunResult, suite: SuiteResult) -> float | None:
    """Return the score of the first eval function; 0 where the agent gave nothing to score."""
    if run.outcome in ("raised", "timeout"):
        return 0.0
    return run.scores.get(suite.info.eval_fns[0])


def _index_line(run: RunResult, reward: float | None) -> dict[str, Any]:
    line = {
        "row_index": run.row_index,
        "run_index": run.run_index,
        "rollout_id": rollout_id_of(run),
        "status": _STATUSES[run.outcome],
        "reward": reward,
        "scores": dict(run.scores) if len(run.scores) > 1 else None,
        "tokens": run.tokens,
        "duration_ms": run.duration_ms,
        "error_type": run.error_kind or run.error_type,
        "resumed": run.cached or None,
    }
    return {name: value for name, value in line.items() if value is not None}


def _described(suite: SuiteResult, name: str, runs: Iterable[RunResult]) -> dict[str, Any]:
    """Return what was evaluated, by the names that config files have for it."""
    info = suite.info
    parts = PurePath(info.agent.partition(":")[0]).parts
    rollout = parts[parts.index(_ROLLOUTS) + 1] if _ROLLOUTS in parts[:-1] else info.agent
    started = [run.started_at for run in runs if run.started_at]
    ended = [run.started_at + run.duration_ms / 1000 for run in runs if run.started_at]
    described = {
        "id": name,
        "status": "completed" if suite.complete else "stopped",
        "name": name,
        "dataset_name": PurePath(info.data).name.partition(".")[0],
        "model_name": info.model,
        "rollout_name": rollout,
        "duration_ms": round(1000 * (max(ended, default=0) - min(started, default=0))),
        "started_at": _moment(min(started, default=None)),
        "completed_at": _moment(max(ended, default=None)),
    }
    return {name: value for name, value in described.items() if value is not None}


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def _figures(suite: SuiteResult, runs: list[RunResult]) -> dict[str, Any]:
    """Return the figures; a run passes as it does in every other report."""
    counted = [run for run in runs if run.outcome != "error"]
    rewards = [reward for run in counted if (reward := _reward(run, suite)) is not None]
    passed = sum(run.outcome == "passed" for run in counted)
    figures: dict[str, Any] = {
        "total_samples": len(runs),
        "completed_samples": len(counted),
        "graded": len(rewards),
        "passed": passed,
        "failed": sum(_STATUSES[run.outcome] == "failed" for run in counted),
        "skipped": len(runs) - len(counted),
        "pass_rate": passed / len(counted) if counted else 0,
        "pass_threshold": suite.info.pass_threshold,
        "tokens_used": sum(run.tokens or 0 for run in runs),
    }
    if rewards:
        figures["reward_stats"] = {
            "mean": fmean(rewards),
            "median": median(rewards),
            "std": pstdev(rewards),
            "min": min(rewards),
            "max": max(rewards),
        }
    if suite.info.n > 1:
        figures["n_runs"] = suite.info.n
        points = list(_pass_at_k(counted, suite.info.n))
        if len(points) > 1:
            figures["pass_at_k"] = points
    return figures


def _pass_at_k(runs: Iterable[RunResult], n: int) -> Iterator[dict[str, Any]]:
    """Yield pass@k for the powers of two up to n, over the rows with k runs that count."""
    by_row: dict[int, list[bool]] = {}
    for run in runs:
        by_row.setdefault(run.row_index, []).append(run.outcome == "passed")
    k = 1
    while k <= n:
        values = [pass_at_k(len(row), sum(row), k) for row in by_row.values() if len(row) >= k]
        if values:
            yield {"k": k, "value": fmean(values)}
        k *= 2


def _printed(runs: Iterable[RunResult], sections: Sections) -> Iterator[str]:
    for run in runs:
        section = None if run.outcome == "passed" else sections(run.run_id)
        yield f"row {run.row_index} run {run.run_index}: {run.outcome}\n"
        if section:
            yield f"{section.rstrip()}\n\n"
