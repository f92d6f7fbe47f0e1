"""A run as the API shows it: in a list, in full, its metrics and its log."""

from __future__ import annotations

from typing import Any

from ..database.models import LogLine, Run
from ..identifiers import timestamp
from .kinds import RunKind


def summary(run: Run, pages: str) -> dict[str, Any]:
    """Return what a list shows, and what submitting and stopping answer.

    `pages` is the address under which each run of the workspace has its page.
    """
    experiment = run.submission["experiment_config"]
    return {
        **_head(run, pages),
        "model": {"name": experiment["model_path"]},
        "dataset": {"name": experiment["dataset"]},
        "rollout": {"name": experiment["rollout"]},
    }


def detail(kind: RunKind, run: Run, pages: str) -> dict[str, Any]:
    """Return everything about a run."""
    experiment = run.submission["experiment_config"]
    config = {
        name: value
        for name, value in run.submission.items()
        if name not in ("env_config", "experiment_config")
    }
    return {
        kind.key: {**_head(run, pages), "interruptions": run.interruptions},
        "config": {"experiment_config": experiment, **config},
        "dataset": {"id": run.dataset_id, "name": experiment["dataset"]},
        "model": {"name": experiment["model_path"]},
        "rollout": {"id": experiment["rollout"], "name": experiment["rollout"]},
        "entrypoint": experiment["entrypoint"],
        "branch": experiment.get("branch"),
        "commit_sha": (run.results or {}).get("commit_sha") or experiment.get("commit_sha"),
        "env_config": run.submission.get("env_config", {}),
        "results": run.results,
    }


def metrics(kind: RunKind, run: Run) -> dict[str, Any]:
    """Return the figures of a run, as far as there are some."""
    known = run.metrics or {}
    return {
        f"{kind.key}_id": run.id,
        "status": run.status,
        "overview": {**_NO_OVERVIEW, **known.get("overview", {})},
        "reward_stats": {**_NO_STATS, **known.get("reward_stats", {})},
        "pass_at_k": known.get("pass_at_k", []),
        **{name: known[name] for name in ("verdict", "gates") if name in known},
    }


def log_line(line: LogLine) -> dict[str, Any]:
    """Return one line of a log."""
    return {
        "timestamp": timestamp(line.timestamp),
        "level": line.level,
        "step": line.step,
        "message": line.message,
        "details": line.details,
    }


_COUNTS = ("total_samples", "completed_samples", "graded", "passed", "failed", "skipped")
_NO_OVERVIEW: dict[str, Any] = {
    "duration_ms": None,
    **dict.fromkeys(_COUNTS, 0),
    "pass_rate": None,
    "pass_threshold": None,
    "tokens_used": 0,
}
_NO_STATS: dict[str, Any] = dict.fromkeys(("mean", "median", "std", "min", "max"))


def _head(run: Run, pages: str) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.name,
        "status": run.status,
        "created_at": timestamp(run.created_at),
        "started_at": timestamp(run.started_at),
        "completed_at": timestamp(run.completed_at),
        "creator_name": run.creator.name,
        "platform_url": f"{pages}/{run.name}",
    }
