"""The import path that workspaces use; the code is in `osmosis_ai.agents`."""

from ..agents.context import RolloutContext, SampleSource, get_rollout_context
from ..agents.grader import GraderContext
from ..agents.workflow import AgentWorkflowContext

__all__ = [
    "AgentWorkflowContext",
    "GraderContext",
    "RolloutContext",
    "SampleSource",
    "get_rollout_context",
]
