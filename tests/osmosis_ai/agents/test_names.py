from __future__ import annotations

import importlib

import pytest

import osmosis_ai
import osmosis_ai.rollout

# The names that existing projects import, with the place they import them from.
CONTRACT = {
    "osmosis_ai": (
        "osmosis_reward osmosis_rubric evaluate_rubric aevaluate_rubric MissingAPIKeyError "
        "ProviderRequestError ModelNotFoundError RolloutAgentLoop RolloutContext RolloutResult "
        "RolloutRequest create_app"
    ),
    "osmosis_ai.rollout": (
        "RolloutAgentLoop RolloutContext RolloutResult RolloutRequest create_app AgentWorkflow "
        "AgentWorkflowConfig AgentWorkflowContext AgentWorkflowOutput Grader GraderConfig "
        "GraderContext RolloutSample get_rollout_context CompletionsResult OsmosisLLMClient"
    ),
    "osmosis_ai.rollout.core.schemas": (
        "RolloutRequest RolloutResponse InitResponse RolloutStatus RolloutMetrics "
        "CompletionsRequest CompletionsResponse CompletionsChoice CompletionUsage "
        "OpenAIFunctionToolSchema OpenAIFunctionSchema OpenAIFunctionParametersSchema "
        "OpenAIFunctionPropertySchema OpenAIFunctionParsedSchema OpenAIFunctionCallSchema "
        "OpenAIFunctionToolCall ToolResponse"
    ),
    "osmosis_ai.rollout.core.exceptions": (
        "OsmosisRolloutError OsmosisTransportError OsmosisServerError OsmosisValidationError "
        "OsmosisTimeoutError AgentLoopNotFoundError ToolExecutionError ToolArgumentError"
    ),
    "osmosis_ai.rollout.core.base": "RolloutAgentLoop RolloutContext RolloutResult",
    "osmosis_ai.rollout.core.context": "RolloutContext SampleSource get_rollout_context",
    "osmosis_ai.rollout.workflow": (
        "AgentWorkflow AgentWorkflowConfig AgentWorkflowContext AgentWorkflowOutput"
    ),
    "osmosis_ai.rollout.grader": "Grader GraderConfig GraderContext",
    "osmosis_ai.rollout.testing": "ScriptedModel arollout rollout context request call Turn",
    "osmosis_ai.rollout.server": "create_app",
    "osmosis_ai.rollout.tools": (
        "create_tool_result create_tool_error_result serialize_tool_result parse_tool_arguments "
        "get_tool_call_info execute_tool_calls"
    ),
}


@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in CONTRACT.items() for name in names.split()],
)
def test_every_contracted_name_is_importable_at_its_path(module, name):
    assert getattr(importlib.import_module(module), name) is not None


# Where each of these paths takes its names from.
HOMES = {
    "osmosis_ai.rollout.core.base": "osmosis_ai.agents.base",
    "osmosis_ai.rollout.core.context": "osmosis_ai.agents.context",
    "osmosis_ai.rollout.core.exceptions": "osmosis_ai.agents.errors",
    "osmosis_ai.rollout.core.schemas": "osmosis_ai.agents.schemas",
    "osmosis_ai.rollout.grader": "osmosis_ai.agents.grader",
    "osmosis_ai.rollout.server": "osmosis_ai.rollout_server.app",
    "osmosis_ai.rollout.testing": "osmosis_ai.agents.testing",
    "osmosis_ai.rollout.tools": "osmosis_ai.agents.tools",
    "osmosis_ai.rollout.workflow": "osmosis_ai.agents.workflow",
}


@pytest.mark.parametrize(("path", "home"), HOMES.items())
def test_a_path_of_existing_projects_gives_the_very_objects_of_its_home(path, home):
    public, own = importlib.import_module(path), importlib.import_module(home)
    assert set(CONTRACT[path].split()) <= set(public.__all__)
    for name in public.__all__:
        assert getattr(public, name) is getattr(own, name), name


def test_each_name_is_the_same_object_at_every_path():
    found = {}
    for module, names in CONTRACT.items():
        for name in names.split():
            value = getattr(importlib.import_module(module), name)
            assert found.setdefault(name, value) is value, f"{module}.{name}"


@pytest.mark.parametrize("package", [osmosis_ai, osmosis_ai.rollout])
def test_every_lazy_name_is_declared_and_listed(package):
    assert set(package.__all__) - {"__version__"} == set(package._HOME)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)


def test_an_unknown_name_is_an_attribute_error_that_names_the_package():
    with pytest.raises(AttributeError, match=r"module 'osmosis_ai.rollout' has no attribute 'Nix'"):
        assert osmosis_ai.rollout.Nix
