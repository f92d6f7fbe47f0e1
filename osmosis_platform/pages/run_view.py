"""A run as pages show it: its status, how far it is, its first figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from osmosis_ai.platform.answers import ENDED
from osmosis_ai.platform.run_kinds import EVALUATION

from ..database.models import Run, now
from ..runs.records import is_local

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


class RunView:
    """One run."""

    def __init__(self, run: Run) -> None:
        metrics, results = run.metrics or {}, run.results or {}
        overview = metrics.get("overview", {})
        experiment = run.submission["experiment_config"]
        self.id = run.id
        self.name = run.name
        self.title: str = results.get("title", "")
        """What people call it; empty where it has none."""
        self.is_evaluation = run.kind == EVALUATION.name
        self.status = run.status
        self.config = config_of(run.submission)
        self.creator = run.creator.name
        self.created_at = run.created_at
        self.started_at = run.started_at
        self.completed_at = run.completed_at
        self.branch: str | None = experiment.get("branch")
        """The one that the config names."""
        self.commit: str | None = results.get("commit_sha") or experiment.get("commit_sha")
        self.is_local = is_local(run)
        """Whether it ran on a user's machine, and was uploaded."""
        self.error: str | None = results.get("error")
        self.total: int = overview.get("total_samples", 0)
        self.done: int = overview.get("completed_samples", 0)
        self.passed: int = overview.get("passed", 0)
        self.tokens: int = overview.get("tokens_used", 0)
        self.pass_at_1 = figure_of(metrics)
        self.pass_at_k = [(each["k"], each["value"]) for each in metrics.get("pass_at_k", [])]
        self.rewards: dict[str, float] = metrics.get("reward_stats", {})
        self.verdict: str | None = metrics.get("verdict")
        """What the evaluation came to, by its gates if it has any."""
        self.gates: list[dict[str, str]] = metrics.get("gates", [])
        """Each with its outcome and sentence."""
        self.rows: list[tuple[int, int, int]] = metrics.get("rows", [])
        """While it runs: the index of each row, how many of its runs passed, and how many ended."""
        self.remaining_s = metrics.get("remaining_s") if run.status == "running" else None
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
