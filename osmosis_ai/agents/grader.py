"""`Grader`: scores the sample of a workflow.

`run_grader` runs one and returns the reward that it set. Knows nothing of workflows, and sets no
deadline.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..deprecation import warn_deprecated
from ..running.forked import end_forked
from .errors import OsmosisValidationError
from .results import finite_number
from .schemas import RolloutSample
from .workflow import BaseConfig

__all__ = ["Grader", "GraderConfig", "GraderContext", "run_grader"]


class GraderConfig(BaseConfig):
    """A grader's settings; subclass it, or hand in further keys: they are kept."""


@dataclass(slots=True)
class GraderContext:
    """The input of a grader."""

    label: Any = None
    """The row's ground truth."""
    sample: RolloutSample | None = None
    """The conversation of the workflow; None when there is none."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The row's extra data."""
    artifacts_dir: Path | None = None
    """The directory with the workflow's files; None when there is none."""

    def set_reward(self, reward: float) -> None:
        """Reward the sample; ValueError without one, or unless `reward` is a finite number."""
        number = finite_number(reward, "reward")
        if self.sample is None:
            raise ValueError("there is no sample to reward: the workflow left none")
        self.sample.reward = number

    def get_samples(self) -> dict[str, RolloutSample]:
        """Deprecated: `sample` is the only one."""
        warn_deprecated("GraderContext.get_samples", "a rollout has one sample, ctx.sample")
        return self._by_name()

    def set_sample_reward(self, sample_id: str, reward: float) -> None:
        """Deprecated: call `set_reward`. ValueError when there is no sample of that name."""
        warn_deprecated("GraderContext.set_sample_reward", "call ctx.set_reward(reward)")
        if sample_id not in self._by_name():
            raise ValueError(f"there is no sample {sample_id!r} to reward")
        self.set_reward(reward)

    def _by_name(self) -> dict[str, RolloutSample]:
        return {} if self.sample is None else {self.sample.name: self.sample}


class Grader(ABC):
    """A judge of workflow rollouts: subclass it and write `async def grade(self, ctx)`."""

    def __init__(self, config: GraderConfig | None = None) -> None:
        self.config = config

    @abstractmethod
    async def grade(self, ctx: GraderContext) -> Any:
        """Judge one sample, and call `ctx.set_reward(x)`."""


async def run_grader(grader: Grader, ctx: GraderContext) -> float | None:
    """Return the reward that `grader` gives; None when it set none.

    Its exceptions propagate unchanged. The return value is ignored: only `set_reward` counts.
    """
    process = os.getpid()
    try:
        running: Any = grader.grade(ctx)
        if not inspect.isawaitable(running):
            raise OsmosisValidationError(
                f"{type(grader).__name__}.grade is not async: declare it `async def grade`"
            )
        await running
    finally:
        if os.getpid() != process:
            end_forked()
    return None if ctx.sample is None else ctx.sample.reward
