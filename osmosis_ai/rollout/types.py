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
    Messages,
)
from ..workflow_server.protocol import *
from ..workflow_server.protocol import __all__ as _of_protocol

__all__ = [
    "AgentWorkflowConfig",
    "AgentWorkflowOutput",
    "BaseConfig",
    "ConcurrencyConfig",
    "GraderConfig",
    "MessageDict",
    "Messages",
    "RolloutSample",
    *_of_protocol,
]
