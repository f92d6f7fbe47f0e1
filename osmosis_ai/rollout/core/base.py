"""The import path that existing projects use; the code is in `osmosis_ai.agents.base`."""

from __future__ import annotations

from ...agents.base import (
    RolloutAgentLoop,
    RolloutContext,
    RolloutResult,
)

__all__ = [
    "RolloutAgentLoop",
    "RolloutContext",
    "RolloutResult",
]
