"""A run as pages show it: its status, how far it is, its first figure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from osmosis_ai.platform.answers import ENDED

from ..database.models import Run, now
from ..runs.kinds import EVALUATION

_TONES = {
    "passed": "good",
    "finished": "good",
    "inconclusive": "open",
    "running": "live",
    "pending": "quiet",
    "queued": "quiet",
    "stopped": "quiet",
}


@dataclass(frozen=True, slots=True)
class FigureView:
    """A share of 0 to 1 with its confidence interval, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ConfigView:
    """What runs have in common that can be compared over time."""

    rollout: str
    entrypoint: str
    model: str
    dataset: str


@dataclass(frozen=True, slots=True)
class RunView:
    """One run."""

    id: str
    name: str
    title: str
    """What people call it; empty where it has none."""
    is_evaluation: bool
    status: str
    config: ConfigView
    creator: str
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    branch: str | None
    """The one that the config names."""
    commit: str | None
    error: str | None
    total: int
    done: int
    passed: int
    tokens: int
    pass_at_1: FigureView | None
    pass_at_k: tuple[tuple[int, float], ...]
    rewards: dict[str, float]
    verdict: str | None
    """What the evaluation came to, by its gates if it has any."""
    gates: tuple[dict[str, str], ...]
    """Each with its outcome and sentence."""
    rows: tuple[tuple[int, int, int], ...]
    """While it runs: the index of each row, how many of its runs passed, and how many ended."""
    remaining_s: float | None
    """How long it is likely to continue, at the pace so far."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it changes any more."""
        return self.status in ENDED

    @property
    def outcome(self) -> str:
        """Its one word: the verdict once it has finished, else its status."""
        return self.verdict or self.status if self.status == "finished" else self.status

    @property
    def tone(self) -> str:
        """How that is coloured."""
        return _TONES.get(self.outcome, "bad")

    @property
    def seconds(self) -> float | None:
        """How long it has taken so far."""
        if self.started_at is None:
            return None
        return ((self.completed_at or now()) - self.started_at).total_seconds()


def view_of(run: Run) -> RunView:
    """Return what pages show of a run."""
    metrics, results = run.metrics or {}, run.results or {}
    overview = metrics.get("overview", {})
    config = config_of(run.submission)
    return RunView(
        id=run.id,
        name=run.name,
        title=results.get("title", ""),
        is_evaluation=run.kind == EVALUATION.name,
        status=run.status,
        config=config,
        creator=run.creator.name,
        created_at=run.created_at,
        started_at=run.started_at,
        completed_at=run.completed_at,
        branch=run.submission["experiment_config"].get("branch"),
        commit=results.get("commit_sha") or run.submission["experiment_config"].get("commit_sha"),
        error=results.get("error"),
        total=overview.get("total_samples", 0),
        done=overview.get("completed_samples", 0),
        passed=overview.get("passed", 0),
        tokens=overview.get("tokens_used", 0),
        pass_at_1=figure_of(metrics),
        pass_at_k=tuple((each["k"], each["value"]) for each in metrics.get("pass_at_k", [])),
        rewards=metrics.get("reward_stats", {}),
        verdict=metrics.get("verdict"),
        gates=tuple(metrics.get("gates", ())),
        rows=tuple(map(tuple, metrics.get("rows", ()))),
        remaining_s=metrics.get("remaining_s") if run.status == "running" else None,
    )


def config_of(submission: dict[str, Any]) -> ConfigView:
    """Return the config of a submission."""
    experiment = submission["experiment_config"]
    keys = ("rollout", "entrypoint", "model_path", "dataset")
    return ConfigView(*(experiment[key] for key in keys))


def figure_of(metrics: dict[str, Any] | None) -> FigureView | None:
    """Return pass@1 of a run's metrics; of those without an interval the value alone."""
    metrics = metrics or {}
    if found := metrics.get("pass_at_1"):
        return FigureView(found["value"], found["low"], found["high"])
    first = next((each["value"] for each in metrics.get("pass_at_k", []) if each["k"] == 1), None)
    value = metrics.get("overview", {}).get("pass_rate") if first is None else first
    return None if value is None else FigureView(value)
