"""The import path that workspaces use; the code is in `osmosis_ai`'s rooms.

`RolloutStatus` here is that of a server of workflows; `osmosis_ai.rollout` has the trainer's.
"""

from ..agents.grader import GraderConfig
from ..agents.schemas import MessageDict, RolloutSample
from ..agents.workflow import (
    AgentWorkflowConfig,
    AgentWorkflowOutput,
    BaseConfig,
    ConcurrencyConfig,
)
from ..workflow_server.protocol import (
    ExecutionRequest,
    ExecutionResult,
    GraderCompleteRequest,
    GraderStatus,
    RolloutCompleteRequest,
    RolloutErrorCategory,
    RolloutInitRequest,
    RolloutInitResponse,
    RolloutStatus,
)

__all__ = [
    "AgentWorkflowConfig",
    "AgentWorkflowOutput",
    "BaseConfig",
    "ConcurrencyConfig",
    "ExecutionRequest",
    "ExecutionResult",
    "GraderCompleteRequest",
    "GraderConfig",
    "GraderStatus",
    "MessageDict",
    "RolloutCompleteRequest",
    "RolloutErrorCategory",
    "RolloutInitRequest",
    "RolloutInitResponse",
    "RolloutSample",
    "RolloutStatus",
]
