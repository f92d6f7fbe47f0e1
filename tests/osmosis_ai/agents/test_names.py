from __future__ import annotations

import ast
import importlib
import inspect

import pytest

import osmosis_ai
import osmosis_ai.rollout

# The names that existing projects import, with the place they import them from.
CONTRACT = {
    "osmosis_ai": (
        "osmosis_reward osmosis_rubric evaluate_rubric aevaluate_rubric MissingAPIKeyError "
        "ProviderRequestError ModelNotFoundError RolloutAgentLoop RolloutContext RolloutResult "
        "RolloutRequest InitResponse create_app get_agent_loop list_agent_loops "
        "register_agent_loop RewardRubricRunResult RubricResult"
    ),
    "osmosis_ai.rollout": (
        "RolloutAgentLoop RolloutContext RolloutResult RolloutRequest create_app AgentWorkflow "
        "AgentWorkflowConfig AgentWorkflowContext AgentWorkflowOutput Grader GraderConfig "
        "GraderContext RolloutSample get_rollout_context CompletionsResult OsmosisLLMClient "
        # Everything that 0.2.14 exports there.
        "DEFAULT_HOST DEFAULT_MAX_METADATA_SIZE_BYTES DEFAULT_PORT AgentLoopNotFoundError "
        "AgentLoopRegistry AgentLoopValidationError CompletionUsage CompletionsChoice "
        "CompletionsRequest CompletionsResponse InitResponse LLMClientProtocol MessageDict "
        "OpenAIFunctionCallSchema OpenAIFunctionParametersSchema OpenAIFunctionParsedSchema "
        "OpenAIFunctionPropertySchema OpenAIFunctionSchema OpenAIFunctionToolCall "
        "OpenAIFunctionToolSchema OsmosisRolloutError OsmosisServerError OsmosisTimeoutError "
        "OsmosisTransportError OsmosisValidationError PublicIPDetectionError "
        "RolloutClientSettings RolloutMetrics RolloutResponse RolloutServerSettings "
        "RolloutSettings RolloutStatus SamplingParamsDict ServeError ToolArgumentError "
        "ToolExecutionError ToolResponse ValidationError ValidationResult configure "
        "count_messages_by_role create_tool_error_result create_tool_result detect_public_ip "
        "execute_tool_calls get_agent_loop get_max_metadata_size_bytes get_message_content "
        "get_message_role get_settings get_tool_call_info is_assistant_message is_private_ip "
        "is_tool_message is_user_message is_valid_hostname_or_ip list_agent_loops normalize_stop "
        "parse_tool_arguments parse_tool_calls register_agent_loop reset_settings "
        "serialize_tool_result serve_agent_loop set_max_metadata_size_bytes "
        "unregister_agent_loop validate_agent_loop validate_and_report validate_ipv4 "
        # What 0.3 has there besides.
        "BaseConfig ConcurrencyConfig ExecutionBackend GraderCompleteRequest GraderStatus "
        "LocalBackend RolloutCompleteRequest RolloutErrorCategory RolloutInitRequest "
        "SampleSource"
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
    "osmosis_ai.rollout.testing": (
        "ScriptedModel rollout context request call Turn create_mock_trainer_app "
        "RolloutCompletionTracker patch_httpx_for_mock_trainer fake_token_ids fake_prompt_token_ids"
    ),
    "osmosis_ai.rollout.server": (
        "create_app serve_agent_loop validate_and_report ServeError DEFAULT_HOST DEFAULT_PORT "
        "generate_api_key validate_api_key ControllerAuth create_rollout_server"
    ),
    "osmosis_ai.rollout.server.app": "create_app",
    "osmosis_ai.rollout.server.serve": "serve_agent_loop ServeError DEFAULT_HOST DEFAULT_PORT",
    "osmosis_ai.rollout.server.api_key": "generate_api_key validate_api_key API_KEY_PREFIX",
    "osmosis_ai.rollout.client": "OsmosisLLMClient CompletionsResult",
    "osmosis_ai.rollout.config": (
        "RolloutSettings RolloutClientSettings RolloutServerSettings configure get_settings "
        "reset_settings"
    ),
    "osmosis_ai.rollout.core": (
        "RolloutAgentLoop RolloutContext RolloutResult LLMClientProtocol OsmosisRolloutError "
        "RolloutRequest InitResponse DEFAULT_MAX_METADATA_SIZE_BYTES MessageDict "
        "SamplingParamsDict get_max_metadata_size_bytes set_max_metadata_size_bytes"
    ),
    "osmosis_ai.rollout.core.llm_client": "LLMClientProtocol",
    "osmosis_ai.rollout.network": (
        "PublicIPDetectionError detect_public_ip is_private_ip is_valid_hostname_or_ip "
        "validate_ipv4"
    ),
    "osmosis_ai.rollout.registry": (
        "AgentLoopRegistry register_agent_loop unregister_agent_loop get_agent_loop "
        "list_agent_loops"
    ),
    "osmosis_ai.rollout.utils": (
        "count_messages_by_role get_message_content get_message_role is_assistant_message "
        "is_tool_message is_user_message normalize_stop parse_tool_calls"
    ),
    "osmosis_ai.rollout.validator": (
        "AgentLoopValidationError ValidationError ValidationResult validate_agent_loop"
    ),
    "osmosis_ai.rubric_eval": (
        "evaluate_rubric aevaluate_rubric DEFAULT_API_KEY_ENV DEFAULT_REQUEST_TIMEOUT_SECONDS "
        "ensure_api_key_available MissingAPIKeyError ModelInfo RewardRubricRunResult"
    ),
    "osmosis_ai.rubric_types": (
        "ModelInfo RewardRubricRunResult MissingAPIKeyError ProviderRequestError ModelNotFoundError"
    ),
    "osmosis_ai.rollout.tools": (
        "create_tool_result create_tool_error_result serialize_tool_result parse_tool_arguments "
        "get_tool_call_info execute_tool_calls"
    ),
    # Of workspaces of osmosis-ai 0.3.
    "osmosis_ai.rollout.agent_workflow": "AgentWorkflow AgentWorkflowConfig AgentWorkflowContext",
    "osmosis_ai.rollout.backend": "ExecutionBackend LocalBackend",
    "osmosis_ai.rollout.backend.local": "LocalBackend",
    "osmosis_ai.rollout.context": (
        "AgentWorkflowContext GraderContext RolloutContext SampleSource get_rollout_context"
    ),
    "osmosis_ai.rollout.types": (
        "AgentWorkflowConfig AgentWorkflowOutput BaseConfig CancelRolloutsRequest "
        "CancelRolloutsResponse ConcurrencyConfig ExecutionRequest ExecutionResult "
        "GraderCompleteRequest GraderConfig GraderInitRequest GraderStatus MessageDict Messages "
        "RolloutCompleteRequest RolloutErrorCategory "
        "RolloutInitRequest RolloutSample RolloutStatus RolloutStatusResponse"
    ),
}
OTHERS = {("osmosis_ai.rollout.types", "RolloutStatus")}
"""Names that mean something else there."""


def test_each_contracted_name_is_the_same_object_at_every_path():
    found = {}
    for path, names in CONTRACT.items():
        module = importlib.import_module(path)
        assert path == "osmosis_ai.rubric_eval" or set(names.split()) <= set(module.__all__), path
        for name in names.split():
            value = getattr(module, name)
            if (path, name) not in OTHERS:
                assert found.setdefault(name, value) is value, f"{path}.{name}"


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("rollout.backend.harbor", "may start a container"),
        ("rollout.controller", "osmosis eval CONFIG"),
        ("rollout.driver", "osmosis eval CONFIG"),
        ("rollout.http_driver", "osmosis serve"),
        ("rollout.trajectory", "--osmosis-trajectories"),
        ("rollout.eval", "osmosis test"),
        ("cli_services", "osmosis eval-rubric"),
    ],
)
def test_a_module_of_osmosis_ai_that_is_not_here_says_what_takes_its_place(name, instead):
    with pytest.raises(ImportError, match=instead):
        importlib.import_module(f"osmosis_ai.{name}")


@pytest.mark.parametrize("package", [osmosis_ai, osmosis_ai.rollout])
def test_every_lazy_name_is_declared_and_listed(package):
    assert set(package.__all__) - {"__version__"} == set(package._HOME)
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is getattr(package, name)


@pytest.mark.parametrize("package", [osmosis_ai, osmosis_ai.rollout])
def test_type_checkers_may_take_every_name_from_the_package(package):
    """`mypy --strict` takes what is imported with a star, or as itself, for re-exported."""
    declared = next(
        node
        for node in ast.parse(inspect.getsource(package)).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    for statement in declared.body:
        assert isinstance(statement, ast.ImportFrom)
        if statement.level:  # from the package itself
            assert all(each.name in ("*", each.asname) for each in statement.names)


def test_an_unknown_name_is_an_attribute_error_that_names_the_package():
    with pytest.raises(AttributeError, match=r"module 'osmosis_ai.rollout' has no attribute 'Nix'"):
        assert osmosis_ai.rollout.Nix
