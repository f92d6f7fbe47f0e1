"""The import path that existing projects use; the code is in `osmosis_ai.agents.testing`."""

from __future__ import annotations

from ..agents.testing import (
    ScriptedModel,
    SeenRequest,
    ToolCall,
    Turn,
    arollout,
    call,
    context,
    request,
    rollout,
)

__all__ = [
    "ScriptedModel",
    "SeenRequest",
    "ToolCall",
    "Turn",
    "arollout",
    "call",
    "context",
    "request",
    "rollout",
]
