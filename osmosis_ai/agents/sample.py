"""`RolloutSample`: the one conversation that a workflow's rollout yields, with its reward.

Knows neither who recorded it nor who grades it.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator


class RolloutSample(BaseModel):
    """What a workflow did in one rollout, and what a grader made of it."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    messages: list[dict[str, Any]] = Field(default_factory=list)
    """The conversation, in the form of the agent's own framework."""
    trajectory_messages: list[dict[str, Any]] | None = None
    """The model calls' messages as the endpoint saw them, where they were recorded."""
    label: str | None = None
    """The row's ground truth."""
    reward: float | None = None
    remove_sample: bool = False
    """Whether a trainer is to leave this sample out."""
    metrics: dict[str, float] = Field(default_factory=dict)
    extra_fields: dict[str, Any] = Field(default_factory=dict)

    @field_validator("reward", mode="before")
    @classmethod
    def _finite_reward(cls, value: Any) -> float | None:
        return None if value is None else finite_number(value, "reward")


def finite_number(value: Any, what: str) -> float:
    """`value` (a number, a bool or a numpy scalar) as a finite float, else ValueError."""
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r}")
    return number
