"""The import path that existing projects use; the code is in `osmosis_ai.agents.grader`."""

from __future__ import annotations

from ..agents.grader import (
    Grader,
    GraderConfig,
    GraderContext,
    run_grader,
)

__all__ = [
    "Grader",
    "GraderConfig",
    "GraderContext",
    "run_grader",
]
