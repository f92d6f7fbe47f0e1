"""Every name that osmosis-ai 0.2.14 documents does here what it says there.

The names that other modules use anyway (agent loops, contexts, requests, tools, decorators) are in
`tests/osmosis_ai/agents`; `test_names.py` there has all paths.
"""

from __future__ import annotations

import asyncio
import copy
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError as PydanticError
from starlette.applications import Starlette
from starlette.routing import Mount

import osmosis_ai
from osmosis_ai import MissingAPIKeyError, deprecation, rollout
from osmosis_ai.rollout import (
    AgentLoopNotFoundError,
    OsmosisLLMClient,
    RolloutAgentLoop,
    RolloutClientSettings,
    RolloutRequest,
    RolloutServerSettings,
    RolloutSettings,
    create_app,
)
from osmosis_ai.rollout.server import api_key
from osmosis_ai.rollout.testing import (
    RolloutCompletionTracker,
    create_mock_trainer_app,
    fake_prompt_token_ids,
    fake_token_ids,
    patch_httpx_for_mock_trainer,
)
from osmosis_ai.rollout.validator import (
    AgentLoopValidationError,
    ValidationError,
    ValidationResult,
    validate_agent_loop,
)
from osmosis_ai.rollout_server import network, serve
from osmosis_ai.rollout_server.settings import ServerSettings
from osmosis_ai.rubric_eval import DEFAULT_API_KEY_ENV, ensure_api_key_available

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it prefers a successor of httpx that few have
    from starlette.testclient import TestClient

HELLO = {"role": "user", "content": "hello"}


class Adding(RolloutAgentLoop):
    """Answers the calls of `add`, then gives the model's answer: the loop of the documentation."""

    name = "adding"

    def get_tools(self, request):
        parameters = rollout.OpenAIFunctionParametersSchema(
            properties={
                "a": rollout.OpenAIFunctionPropertySchema(type="number"),
                "b": rollout.OpenAIFunctionPropertySchema(type="number"),
            },
            required=["a", "b"],
        )
        function = rollout.OpenAIFunctionSchema(
            name="add", description="Add two numbers.", parameters=parameters
        )
        return [rollout.OpenAIFunctionToolSchema(type="function", function=function)]

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        for _ in range(ctx.request.max_turns):
            answer = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(answer.message)
            if not answer.has_tool_calls:
                return ctx.complete(messages, reward=1.0)
            messages += await rollout.execute_tool_calls(answer.tool_calls, self._add)
            ctx.record_tool_call()
        return ctx.error(error_message="too many turns", final_messages=messages)

    async def _add(self, call):
        call_id, _name, arguments = rollout.get_tool_call_info(call)
        return rollout.create_tool_result(call_id, str(arguments["a"] + arguments["b"]))


# The registry.


@pytest.fixture
def adding() -> Iterator[Adding]:
    yield Adding()
    rollout.unregister_agent_loop("adding")


def test_a_registered_agent_loop_is_found_by_its_name(adding: Adding):
    rollout.register_agent_loop(adding)
    assert rollout.get_agent_loop("adding") is adding
    assert rollout.list_agent_loops() == ["adding"]
    with pytest.raises(ValueError, match="'adding' is already registered"):
        rollout.register_agent_loop(Adding())
    with pytest.raises(AgentLoopNotFoundError, match="there are: adding") as unknown:
        rollout.get_agent_loop("other")
    assert (unknown.value.name, unknown.value.available) == ("other", ["adding"])
    assert rollout.unregister_agent_loop("adding") is True
    assert rollout.unregister_agent_loop("adding") is False


def test_a_registry_of_ones_own_keeps_the_order_and_can_be_cleared():
    registry = rollout.AgentLoopRegistry()
    registry.register(Adding())
    second = Adding()
    second.name = "a second"
    registry.register(second)
    assert registry.list_names() == ["adding", "a second"]
    assert registry.get("a second") is second and registry.get("third") is None
    registry.clear()
    assert (registry.list_names(), rollout.list_agent_loops()) == ([], [])
    known = AgentLoopNotFoundError("x", ["b", "a"])
    assert known.available == ["b", "a"]
    assert str(copy.copy(known)) == str(known) == "no agent loop is named 'x'; there are: b, a"


# Messages.


def test_message_fields_are_read_whatever_a_message_lacks():
    assert rollout.get_message_content(HELLO) == "hello"
    for content in (None, "", 123):
        assert rollout.get_message_content({"role": "user", "content": content}) == ""
    assert rollout.get_message_content({}) == ""
    assert [rollout.get_message_role(each) for each in (HELLO, {}, {"role": 1})] == [
        "user",
        "unknown",
        "unknown",
    ]
    assert rollout.is_user_message(HELLO) and not rollout.is_assistant_message(HELLO)
    assert rollout.is_assistant_message({"role": "assistant"})
    assert rollout.is_tool_message({"role": "tool"}) and not rollout.is_tool_message({})
    assert rollout.count_messages_by_role([HELLO, HELLO, {}]) == {"user": 2, "unknown": 1}
    call = {"id": "c", "function": {"name": "add"}}
    assert rollout.parse_tool_calls({"tool_calls": [call]}) == [call]
    for calls in (None, [], "text"):
        assert rollout.parse_tool_calls({"tool_calls": calls}) == []


@pytest.mark.parametrize(
    ("stop", "sent"),
    [(None, None), ("x", ["x"]), ("", [""]), ([], []), (["a", 1], ["a", "1"]), (7, None)],
)
def test_stop_is_a_list_or_nothing(stop: object, sent: object):
    assert rollout.normalize_stop(stop) == sent
    request = rollout.CompletionsRequest(messages=[HELLO], rollout_id="r", stop=stop)
    assert request.stop == sent


def test_what_a_model_call_says_of_itself_has_defaults():
    assert rollout.CompletionUsage().model_dump() == {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
    }
    with pytest.raises(PydanticError, match="not blank"):
        rollout.CompletionsRequest(messages=[HELLO], rollout_id=" ")
    assert osmosis_ai.InitResponse(rollout_id="r").tools == []
    assert rollout.MessageDict == rollout.SamplingParamsDict == dict[str, Any]


@pytest.fixture
def metadata_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from osmosis_ai.agents import request

    monkeypatch.setattr(request, "_metadata_limit", None)


def test_the_limit_of_metadata_can_be_set(metadata_limit: None):
    assert rollout.get_max_metadata_size_bytes() == rollout.DEFAULT_MAX_METADATA_SIZE_BYTES
    rollout.set_max_metadata_size_bytes(20)
    with pytest.raises(PydanticError, match="at most 20"):
        RolloutRequest(rollout_id="r", server_url="http://a", messages=[], metadata={"x": "y" * 20})
    with pytest.raises(ValueError, match="from 1 on"):
        rollout.set_max_metadata_size_bytes(0)


# Settings.


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    rollout.reset_settings()
    yield lambda name, value: monkeypatch.setenv(f"OSMOSIS_ROLLOUT_{name}", value)
    rollout.reset_settings()


def test_settings_have_the_documented_defaults_and_variables(settings: Callable[..., None]):
    found = rollout.get_settings()
    assert (found.client.timeout_seconds, found.client.max_retries) == (300.0, 3)
    assert (found.client.retry_base_delay, found.client.max_keepalive_connections) == (1.0, 20)
    assert (found.server.max_concurrent_rollouts, found.server.record_ttl_seconds) == (100, 3600.0)
    assert (found.server.request_timeout_seconds, found.max_metadata_size_bytes) == (600, 1048576)
    settings("CLIENT_TIMEOUT_SECONDS", "120")
    settings("SERVER_MAX_CONCURRENT_ROLLOUTS", "200")
    settings("MAX_METADATA_SIZE_BYTES", "2048")
    assert rollout.get_settings() is found
    rollout.reset_settings()
    found = rollout.get_settings()
    assert (found.client.timeout_seconds, found.server.max_concurrent_rollouts) == (120.0, 200)
    assert rollout.get_max_metadata_size_bytes() == 2048
    options = create_app(Adding()).options.settings
    assert (options.max_concurrent, options.request_timeout_s) == (200, 120.0)
    assert create_app(Adding(), max_concurrent=7).options.settings.max_concurrent == 7


def test_settings_may_be_given_in_the_program(settings: Callable[..., None]):
    chosen = RolloutSettings(
        client=RolloutClientSettings(timeout_seconds=120.0, max_retries=5),
        server=RolloutServerSettings(max_concurrent_rollouts=3),
    )
    assert create_app(Adding(), settings=chosen).options.settings.max_concurrent == 3
    rollout.configure(chosen)
    assert rollout.get_settings() is chosen
    assert OsmosisLLMClient("http://trainer", "r").max_retries == 5


def test_a_setting_out_of_range_names_itself(settings: Callable[..., None]):
    for wrong in (0.5, float("nan"), True, "300"):
        with pytest.raises(ValueError, match="timeout_seconds must be from 1 to 3600"):
            RolloutClientSettings(timeout_seconds=wrong)
    settings("CLIENT_MAX_RETRIES", "many")
    with pytest.raises(ValueError, match=r"^OSMOSIS_ROLLOUT_CLIENT_MAX_RETRIES must be a whole"):
        rollout.get_settings()


# Validation.


def tool(**function: object) -> dict[str, object]:
    return {"type": "function", "function": function}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (ValueError("no tools"), "GET_TOOLS_EXCEPTION"),
        (SystemExit(3), "GET_TOOLS_EXCEPTION"),
        (None, "GET_TOOLS_RETURNS_NONE"),
        ({}, "GET_TOOLS_NOT_LIST"),
        (["text"], "INVALID_TOOL"),
        ([{"function": {"name": "a", "description": "b"}}], "MISSING_TOOL_TYPE"),
        ([{"type": "function"}], "MISSING_FUNCTION"),
        ([tool(description="b")], "MISSING_FUNCTION_NAME"),
        ([tool(name="a b", description="b")], "INVALID_TOOL"),
        ([tool(name="a", description="b")] * 2, "INVALID_TOOL"),
    ],
)
def test_what_is_wrong_with_tools_has_a_code(given: object, code: str):
    class Agent(Adding):
        def get_tools(self, request):
            if isinstance(given, BaseException):
                raise given
            return given

    result = validate_agent_loop(Agent())
    assert not result and [error.code for error in result.errors] == [code]
    with pytest.raises(AgentLoopValidationError, match=r"1 error\(s\)") as refused:
        result.raise_if_invalid()
    assert refused.value.errors == result.errors


def test_a_valid_agent_loop_is_described_and_warned_about(caplog: pytest.LogCaptureFixture):
    result = rollout.validate_and_report(Adding(), verbose=True)
    assert (bool(result), result.agent_name, result.tool_count) == (True, "adding", 1)
    assert (result.errors, result.warnings) == ([], [])
    result.raise_if_invalid()
    assert "agent 'adding' is valid" in caplog.text

    class Terse(Adding):
        def get_tools(self, request):
            assert request.metadata == {"custom": True}
            return [tool(name="a")]

        def run(self, ctx):
            raise NotImplementedError

    request = RolloutRequest(
        rollout_id="r", server_url="http://a", messages=[HELLO], metadata={"custom": True}
    )
    result = validate_agent_loop(Terse(), request=request)
    assert [each.code for each in result.warnings] == ["MISSING_FUNCTION_DESCRIPTION"]
    assert [each.code for each in result.errors] == ["RUN_NOT_ASYNC"]
    rollout.validate_and_report(Adding.__new__(type("Nameless", (Adding,), {"name": "x"})))
    assert str(ValidationError("CODE", "wrong")) == "[CODE] wrong"
    assert str(ValidationError("CODE", "wrong", field="a")) == "[CODE] a: wrong"
    assert ValidationResult(valid=True).errors == []


# Keys, addresses, serving.


def test_a_generated_key_is_random_and_compared_whole():
    keys = {api_key.generate_api_key() for _ in range(20)}
    assert len(keys) == 20
    for key in keys:
        assert key.startswith(api_key.API_KEY_PREFIX)
        assert len(key) >= len(api_key.API_KEY_PREFIX) + 40
        assert set(key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
    assert rollout.validate_api_key(key, key) is True
    for wrong in (None, "", key[:-1], key + "x", key.swapcase()):
        assert rollout.validate_api_key(wrong, key) is False
    assert rollout.validate_api_key(None, "") is False


def test_addresses_are_distinguished():
    assert rollout.validate_ipv4("10.0.0.1") and not rollout.validate_ipv4("10.0.0.256")
    assert [rollout.is_private_ip(text) for text in ("127.0.0.1", "10.1.2.3", "::1")] == [True] * 3
    assert [rollout.is_private_ip(text) for text in ("8.8.8.8", "example.com", "")] == [False] * 3
    for name in ("trainer", "a-b.example.com", "8.8.8.8", "::1"):
        assert rollout.is_valid_hostname_or_ip(name), name
    for name in ("", "a b", "-a", "a..b", "1.2.3", "x" * 64, "http://a"):
        assert not rollout.is_valid_hostname_or_ip(name), name


class Probe:
    """A datagram socket on a machine with one address."""

    def __init__(self, address: str | None) -> None:
        self.address = address

    def __enter__(self) -> Probe:
        return self

    def __exit__(self, *args: object) -> None: ...

    def connect(self, where: object) -> None:
        if self.address is None:
            raise OSError(101, "Network is unreachable")

    def getsockname(self) -> tuple[str, int]:
        return str(self.address), 1


def test_the_public_address_is_this_machines_own_or_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(network.socket, "socket", lambda *kind: Probe("8.8.8.8"))
    assert rollout.detect_public_ip() == "8.8.8.8"
    for address, said in (("10.0.0.7", "address is 10.0.0.7"), (None, "Network is unreachable")):
        monkeypatch.setattr(network.socket, "socket", lambda *kind, own=address: Probe(own))
        with pytest.raises(rollout.PublicIPDetectionError, match=said):
            rollout.detect_public_ip()


def test_serve_agent_loop_serves_what_create_app_makes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    apps: list[object] = []
    monkeypatch.setattr(serve, "_run", lambda app, bound: apps.append(app.options))
    rollout.serve_agent_loop(Adding(), host="127.0.0.1", port=0, skip_register=True)
    rollout.serve_agent_loop(Adding(), port=0, local_debug=True, validate=False)
    keyed, local = apps
    printed = capsys.readouterr().out
    assert f"API key: {keyed.api_key.reveal()}" in printed
    assert f"serving adding on 127.0.0.1:{local.port}" in printed
    assert (local.api_key, local.host, local.settings.local) == (None, "127.0.0.1", True)
    assert (keyed.login, keyed.settings.local) == (None, False)
    assert (rollout.DEFAULT_HOST, rollout.DEFAULT_PORT) == ("0.0.0.0", 9000)


def test_serve_agent_loop_refuses_what_cannot_be():
    class Toolless(Adding):
        def get_tools(self, request):
            return None

    for options, said in (
        ({}, "needs a login"),
        ({"local_debug": True, "host": "0.0.0.0"}, "listens on loopback"),
        ({"skip_register": True, "reload": True}, "osmosis serve -m module:attribute --reload"),
        (
            {"skip_register": True, "host": "203.0.113.250", "api_key": "a-key-1234"},
            "cannot listen",
        ),
    ):
        with pytest.raises(rollout.ServeError, match=said):
            rollout.serve_agent_loop(Adding(), port=0, **options)
    with pytest.raises(AgentLoopValidationError, match="GET_TOOLS_RETURNS_NONE"):
        rollout.serve_agent_loop(Toolless(), skip_register=True)


# The mock trainer.


def test_fake_tokens_are_counted():
    assert (fake_token_ids(""), fake_token_ids("hello")) == ([], [0, 1, 2, 3, 4])
    assert [len(fake_prompt_token_ids([HELLO] * n)) for n in (0, 1, 3)] == [10, 10, 30]


def test_a_mock_trainer_answers_as_its_documentation_says():
    client = TestClient(create_mock_trainer_app())
    assert client.get("/health").json() == {"status": "healthy", "service": "mock-trainer"}

    def ask(*messages: dict[str, object]) -> dict[str, object]:
        body = {"rollout_id": "r", "messages": messages}
        return client.post("/v1/chat/completions", json=body).json()

    plain, sums = ask(HELLO), ask({"role": "user", "content": "Please calculate 5 + 3"})
    assert (plain["id"], len(plain["choices"])) == ("r", 1)
    assert "tool_calls" not in plain["choices"][0]["message"]
    [call] = sums["choices"][0]["message"]["tool_calls"]
    assert (call["function"]["name"], sums["choices"][0]["finish_reason"]) == ("add", "tool_calls")
    assert json.loads(call["function"]["arguments"]) == {"a": 5, "b": 3}
    done = ask(HELLO, {"role": "tool", "content": "8", "tool_call_id": "c"})
    assert done["choices"][0]["message"]["content"] == "The calculation is complete."
    assert len(plain["token_ids"]) == len(plain["logprobs"]) > 0 < len(plain["prompt_token_ids"])
    assert rollout.CompletionsResponse(**plain).usage.prompt_tokens == 10
    assert client.post("/v1/chat/completions", json={}).status_code == 422
    assert client.get("/nothing").status_code == 404


def test_a_mock_trainer_keeps_results_and_tells_its_tracker():
    tracker = RolloutCompletionTracker()
    assert (tracker.responses, tracker.wait(timeout=0.001)) == ([], False)
    client = TestClient(create_mock_trainer_app(tracker=tracker))
    result = {"rollout_id": "r/1", "status": "COMPLETED", "final_messages": []}
    assert client.post("/v1/rollout/completed", json=result).json() == {"status": "ok"}
    assert client.get("/v1/rollout/completed/r%2F1").json() == result
    assert client.get("/v1/rollout/completed/other").json() == {}
    assert (tracker.responses, tracker.wait(timeout=0.001)) == ([result], True)
    tracker.clear()
    assert (tracker.responses, tracker.event.is_set()) == ([], False)


def test_a_whole_rollout_runs_against_the_mock_trainer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    tracker = RolloutCompletionTracker()
    patch_httpx_for_mock_trainer(TestClient(create_mock_trainer_app(tracker=tracker)), monkeypatch)
    app = create_app(Adding(), settings=ServerSettings(drain_s=5.0), debug_dir=tmp_path)
    body = {
        "rollout_id": "test-123",
        "server_url": "http://localhost:8080",
        "messages": [{"role": "user", "content": "What is 17 + 25?"}],
        "completion_params": {"temperature": 0.7},
    }
    with TestClient(app) as client:
        assert client.get("/health").json()["status"] == "healthy"
        accepted = client.post("/v1/rollout/init", json=body)
        assert accepted.status_code == 202
        assert accepted.json()["tools"][0]["function"]["name"] == "add"
        assert tracker.wait(timeout=30.0)
    [response] = tracker.responses
    assert (response["status"], response["reward"]) == ("COMPLETED", 1.0)
    roles = [message["role"] for message in response["final_messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert response["final_messages"][2]["content"] == "42.0"
    assert response["metrics"]["num_llm_calls"] == 2
    assert list(tmp_path.glob("*/test-123.jsonl"))


def test_an_agents_own_httpx_client_is_answered_by_the_mock_trainer_too(
    monkeypatch: pytest.MonkeyPatch,
):
    tracker = RolloutCompletionTracker()
    patch_httpx_for_mock_trainer(TestClient(create_mock_trainer_app(tracker=tracker)), monkeypatch)
    messages = [{"role": "user", "content": "Please calculate 5 + 3"}]

    async def ask() -> tuple[Any, Any]:
        elsewhere = httpx.MockTransport(lambda request: httpx.Response(418))
        async with httpx.AsyncClient(base_url="http://trainer:8080", transport=elsewhere) as client:
            body = {"rollout_id": "r", "messages": messages}
            answer = await client.post("/v1/chat/completions", json=body)
            done = {"rollout_id": "r", "status": "COMPLETED"}
            (await client.post("/v1/rollout/completed", json=done)).raise_for_status()
            return answer.raise_for_status().json(), await client.get("/v1/chat/completions")

    answer, other = asyncio.run(ask())
    [call] = answer["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"a": 5, "b": 3}
    assert [each["rollout_id"] for each in tracker.responses] == ["r"]
    assert other.status_code == 418


@pytest.mark.parametrize("place", ["/", "/agent"])
def test_an_application_can_be_mounted_in_another(place: str):
    outer = Starlette(routes=[Mount(place, create_app(Adding()))])
    client = TestClient(outer)
    base = place.rstrip("/")
    assert client.get(f"{base}/health").json()["agent_loop"] == "adding"
    assert (
        client.get(f"{base}/rollout/none").json()["error"] == "no rollout of that id is remembered"
    )
    assert client.get(f"{base}/nothing").status_code == 404


def test_ones_own_generator_of_tool_calls_is_asked_with_the_last_message(
    monkeypatch: pytest.MonkeyPatch,
):
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    app = create_mock_trainer_app(
        tool_call_generator=lambda message: [call] if "weather" in message["content"] else None
    )
    patch_httpx_for_mock_trainer(TestClient(app), monkeypatch)

    async def ask(content: str) -> list[str]:
        async with OsmosisLLMClient("http://trainer:8080", "r") as client:
            answer = await client.chat_completions([{"role": "user", "content": content}])
            return [each["function"]["name"] for each in answer.tool_calls]

    assert asyncio.run(ask("How is the weather?")) == ["weather"]
    assert asyncio.run(ask("Hello there")) == []


# Rubrics, and what is deprecated.


def test_the_keys_of_judges_are_looked_for_under_their_documented_names(
    monkeypatch: pytest.MonkeyPatch,
):
    assert DEFAULT_API_KEY_ENV["openai"] == "OPENAI_API_KEY"
    assert DEFAULT_API_KEY_ENV["gemini"] == "GEMINI_API_KEY"
    for provider, variable in DEFAULT_API_KEY_ENV.items():
        monkeypatch.delenv(variable, raising=False)
        info: osmosis_ai.rubric_types.ModelInfo = {"provider": provider, "model": "m"}
        monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
        with pytest.raises(MissingAPIKeyError, match=f'export {variable}="..."'):
            ensure_api_key_available(info)
        monkeypatch.setenv(variable, "sk-0123456789")
        ensure_api_key_available(info)


@pytest.fixture
def not_warned_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecation, "_warned", set())


@pytest.mark.usefixtures("not_warned_yet")
def test_a_deprecated_path_warns_once_and_names_the_new_one():
    from osmosis_ai import utils

    vars(utils).pop("osmosis_reward", None)
    with pytest.warns(DeprecationWarning, match="from osmosis_ai import osmosis_reward") as seen:
        assert utils.osmosis_reward is osmosis_ai.osmosis_reward
        assert utils.osmosis_reward is osmosis_ai.osmosis_reward
    assert len(seen) == 1
    with pytest.raises(AttributeError, match="no attribute 'nix'"):
        assert utils.nix
