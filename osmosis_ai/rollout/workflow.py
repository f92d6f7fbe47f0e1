"""The import path that existing projects use; the code is in `osmosis_ai.agents.workflow`."""

from __future__ import annotations

from ..agents.workflow import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    AgentWorkflowOutput,
    ConcurrencyConfig,
    run_workflow,
)

__all__ = [
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "ConcurrencyConfig",
    "run_workflow",
]
