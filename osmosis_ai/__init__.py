"""What user code imports: reward and rubric decorators, rubric judging, agents.

Each name is imported when it is first used, so that `import osmosis_ai` stays cheap.
PYTEST_DONT_REWRITE: the `osmosis` command imports it before the pytest session that it starts.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` itself costs 8 ms

if TYPE_CHECKING:
    from typing import Any

    from .decorators import *
    from .eval.rubric import RubricResult as RubricResult
    from .reasoning import without_reasoning as without_reasoning
    from .recording import record as record
    from .rollout import *
    from .rubric import *
    from .rubric.errors import *
    from .rubric.judge import RewardRubricRunResult as RewardRubricRunResult

__version__ = "0.1.0"

_MODULES = {
    ".decorators": "osmosis_reward osmosis_rubric",
    ".eval.rubric": "RubricResult",
    ".reasoning": "without_reasoning",
    ".recording": "record",
    ".rubric": "aevaluate_rubric evaluate_rubric",
    ".rubric.judge": "RewardRubricRunResult",
    ".rubric.errors": "MissingAPIKeyError ModelNotFoundError ProviderRequestError",
    ".rollout": (
        "AgentLoopNotFoundError AgentWorkflow AgentWorkflowConfig AgentWorkflowContext "
        "AgentWorkflowOutput CompletionsResult Grader GraderConfig GraderContext "
        "InitResponse OpenAIFunctionToolSchema OsmosisLLMClient OsmosisRolloutError "
        "OsmosisServerError "
        "OsmosisTimeoutError OsmosisTransportError OsmosisValidationError RolloutAgentLoop "
        "RolloutContext RolloutMetrics RolloutRequest RolloutResponse RolloutResult RolloutSample "
        "RolloutStatus ToolArgumentError ToolExecutionError create_app get_agent_loop "
        "get_rollout_context list_agent_loops register_agent_loop"
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

if not TYPE_CHECKING:
    __all__ = ["__version__", *_HOME]  # type checkers take what is imported above


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
