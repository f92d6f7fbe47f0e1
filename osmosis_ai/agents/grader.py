"""`Grader`: scores the sample of a workflow.

`run_grader` runs one and returns the reward that it set. Knows nothing of workflows, and sets no
deadline.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from .errors import OsmosisValidationError
from .numbers import finite_number
from .schemas import RolloutSample
from .workflow import ConcurrencyConfig

__all__ = ["Grader", "GraderConfig", "GraderContext", "run_grader"]


class GraderConfig(BaseModel):
    """A grader's settings; subclass it, or hand in further keys: they are kept."""

    model_config = ConfigDict(extra="allow")

    name: str = ""
    description: str | None = None
    concurrency: ConcurrencyConfig = Field(default_factory=ConcurrencyConfig)


@dataclass(slots=True)
class GraderContext:
    """The input of a grader."""

    label: str | None = None
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
    running: Any = grader.grade(ctx)
    if not inspect.isawaitable(running):
        raise OsmosisValidationError(
            f"{type(grader).__name__}.grade is not async: declare it `async def grade`"
        )
    await running
    return None if ctx.sample is None else ctx.sample.reward
