"""The import path that existing projects use; the code is in `osmosis_ai.agents.context`."""

from __future__ import annotations

from ...agents.context import (
    RolloutContext,
    SampleSource,
    get_rollout_context,
    logger,
)

__all__ = [
    "RolloutContext",
    "SampleSource",
    "get_rollout_context",
    "logger",
]
