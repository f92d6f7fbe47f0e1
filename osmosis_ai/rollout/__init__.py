"""Agents: the loop, the workflow and its grader, and what they are run with.

Each name is imported when it is first used: schemas need pydantic (some 60 ms), the server needs a
web framework, and a user of one small name needs neither.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` itself costs 8 ms

if TYPE_CHECKING:
    from typing import Any

    from ..agents.base import *
    from ..agents.client import *
    from ..agents.context import *
    from ..agents.errors import *
    from ..agents.grader import *
    from ..agents.results import *
    from ..agents.runner import *
    from ..agents.schemas import *
    from ..agents.tool_schemas import *
    from ..agents.tools import *
    from ..agents.workflow import *
    from ..rollout_server.app import *
    from ..rollout_server.trainer.client import *

_MODULES = {
    "..agents.base": "RolloutAgentLoop",
    "..agents.context": "RolloutContext SampleSource get_rollout_context",
    "..agents.errors": (
        "AgentLoopNotFoundError OsmosisRolloutError OsmosisServerError OsmosisTimeoutError "
        "OsmosisTransportError OsmosisValidationError ToolArgumentError ToolExecutionError"
    ),
    "..agents.tool_schemas": (
        "OpenAIFunctionCallSchema OpenAIFunctionParametersSchema OpenAIFunctionParsedSchema "
        "OpenAIFunctionPropertySchema OpenAIFunctionSchema OpenAIFunctionToolCall "
        "OpenAIFunctionToolSchema ToolResponse"
    ),
    "..agents.results": "CompletionsResult RolloutResult",
    "..agents.schemas": (
        "CompletionUsage CompletionsChoice CompletionsRequest CompletionsResponse InitResponse "
        "RolloutMetrics RolloutRequest RolloutResponse RolloutSample RolloutStatus"
    ),
    "..agents.grader": "Grader GraderConfig GraderContext",
    "..agents.client": "LLMClient ModelLLM",
    "..agents.runner": "run_rollout",
    "..rollout_server.app": "create_app",
    "..rollout_server.trainer.client": "OsmosisLLMClient",
    "..agents.tools": (
        "create_tool_error_result create_tool_result execute_tool_calls get_tool_call_info "
        "parse_tool_arguments serialize_tool_result tool_schemas"
    ),
    "..agents.workflow": (
        "AgentWorkflow AgentWorkflowConfig AgentWorkflowContext AgentWorkflowOutput "
        "ConcurrencyConfig"
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "AgentLoopNotFoundError",
    "AgentWorkflow",
    "AgentWorkflowConfig",
    "AgentWorkflowContext",
    "AgentWorkflowOutput",
    "CompletionUsage",
    "CompletionsChoice",
    "CompletionsRequest",
    "CompletionsResponse",
    "CompletionsResult",
    "ConcurrencyConfig",
    "Grader",
    "GraderConfig",
    "GraderContext",
    "InitResponse",
    "LLMClient",
    "ModelLLM",
    "OpenAIFunctionCallSchema",
    "OpenAIFunctionParametersSchema",
    "OpenAIFunctionParsedSchema",
    "OpenAIFunctionPropertySchema",
    "OpenAIFunctionSchema",
    "OpenAIFunctionToolCall",
    "OpenAIFunctionToolSchema",
    "OsmosisLLMClient",
    "OsmosisRolloutError",
    "OsmosisServerError",
    "OsmosisTimeoutError",
    "OsmosisTransportError",
    "OsmosisValidationError",
    "RolloutAgentLoop",
    "RolloutContext",
    "RolloutMetrics",
    "RolloutRequest",
    "RolloutResponse",
    "RolloutResult",
    "RolloutSample",
    "RolloutStatus",
    "SampleSource",
    "ToolArgumentError",
    "ToolExecutionError",
    "ToolResponse",
    "create_app",
    "create_tool_error_result",
    "create_tool_result",
    "execute_tool_calls",
    "get_rollout_context",
    "get_tool_call_info",
    "parse_tool_arguments",
    "run_rollout",
    "serialize_tool_result",
    "tool_schemas",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
