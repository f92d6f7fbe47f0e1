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
    from ..agents.message_fields import *
    from ..agents.registry import *
    from ..agents.results import *
    from ..agents.runner import *
    from ..agents.schemas import *
    from ..agents.tools import *
    from ..agents.validation import *
    from ..agents.workflow import *
    from ..rollout_server.api_key import *
    from ..rollout_server.app import *
    from ..rollout_server.network import *
    from ..rollout_server.serve import *
    from ..rollout_server.trainer.client import *
    from ..rollout_settings import *
    from ..workflow_server.backend import *
    from .core.llm_client import *

_MODULES = {
    "..agents.base": "RolloutAgentLoop",
    "..agents.context": "RolloutContext SampleSource get_rollout_context",
    "..agents.errors": (
        "AgentLoopNotFoundError OsmosisRolloutError OsmosisServerError OsmosisTimeoutError "
        "OsmosisTransportError OsmosisValidationError ToolArgumentError ToolExecutionError"
    ),
    "..agents.results": "CompletionsResult RolloutResult",
    "..agents.schemas": (
        "OpenAIFunctionCallSchema OpenAIFunctionParametersSchema OpenAIFunctionParsedSchema "
        "OpenAIFunctionPropertySchema OpenAIFunctionSchema OpenAIFunctionToolCall "
        "OpenAIFunctionToolSchema ToolResponse "
        "CompletionUsage CompletionsChoice CompletionsRequest CompletionsResponse InitResponse "
        "RolloutMetrics RolloutRequest RolloutResponse RolloutSample RolloutStatus "
        "DEFAULT_MAX_METADATA_SIZE_BYTES MessageDict SamplingParamsDict normalize_stop "
        "get_max_metadata_size_bytes set_max_metadata_size_bytes"
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
    "..agents.registry": (
        "AgentLoopRegistry get_agent_loop list_agent_loops register_agent_loop "
        "unregister_agent_loop"
    ),
    "..agents.message_fields": (
        "count_messages_by_role get_message_content get_message_role is_assistant_message "
        "is_tool_message is_user_message parse_tool_calls"
    ),
    "..agents.validation": (
        "AgentLoopValidationError ValidationError ValidationResult validate_agent_loop "
        "validate_and_report"
    ),
    "..rollout_settings": (
        "RolloutClientSettings RolloutServerSettings RolloutSettings configure "
        "get_settings reset_settings"
    ),
    "..rollout_server.serve": "DEFAULT_HOST DEFAULT_PORT ServeError serve_agent_loop",
    "..rollout_server.api_key": "generate_api_key validate_api_key",
    "..rollout_server.network": (
        "PublicIPDetectionError detect_public_ip is_private_ip is_valid_hostname_or_ip "
        "validate_ipv4"
    ),
    ".core.llm_client": "LLMClientProtocol",
    "..agents.workflow": (
        "AgentWorkflow AgentWorkflowConfig AgentWorkflowContext AgentWorkflowOutput "
        "BaseConfig ConcurrencyConfig"
    ),
    "..workflow_server.backend": "ExecutionBackend LocalBackend",
    "..workflow_server.protocol": (
        "GraderCompleteRequest GraderStatus RolloutCompleteRequest RolloutErrorCategory "
        "RolloutInitRequest"
    ),
}
_MOVED = {
    "ControllerAuth": ".server",
    "OsmosisRolloutModel": ".integrations.agents.strands",
    "OsmosisStrandsAgent": ".integrations.agents.strands",
    "create_rollout_server": ".server",
}
"""Names that were here, and the modules that have them."""
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

if not TYPE_CHECKING:
    __all__ = [*_HOME]  # type checkers take what is imported above


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        return _moved(name, _MOVED[name])
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def _moved(name: str, module: str) -> Any:
    from ..deprecation import warn_deprecated

    warn_deprecated(f"{__name__}.{name}", f"from {__name__}{module} import {name}", stacklevel=3)
    return getattr(import_module(module, __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
