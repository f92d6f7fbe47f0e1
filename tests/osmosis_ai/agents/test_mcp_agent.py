"""The agent loop over the tools of an MCP server, with sessions that a test makes itself."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from osmosis_ai.agents.mcp_agent import McpAgent
from osmosis_ai.rollout.testing import ScriptedModel, call, rollout

NUMBERS = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}


class Version2(SimpleNamespace):
    """A tool or a result of version 2 of the SDK, where reading a name of version 1 warns."""

    def __getattr__(self, name: str) -> Any:
        if name in ("inputSchema", "isError", "structuredContent"):
            warnings.warn(f"Accessing {name} is deprecated", DeprecationWarning, stacklevel=2)
        raise AttributeError(name)


class Server:
    """Names of fields as in version 2 of the SDK, or in version 1."""

    def __init__(self, *, version: int = 2) -> None:
        self.schema, self.failed, self.made = "input_schema", "is_error", Version2
        if version == 1:
            self.schema, self.failed, self.made = "inputSchema", "isError", SimpleNamespace
        self.open = self.opened = 0

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Server]:
        self.open += 1
        self.opened += 1
        try:
            yield self
        finally:
            self.open -= 1

    async def list_tools(self) -> Any:
        tools = [
            self.made(name="double", description="Double a.", **{self.schema: NUMBERS}),
            self.made(name="fail", description=None, **{self.schema: None}),
        ]
        return SimpleNamespace(tools=tools)

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        if name == "double":
            content = [SimpleNamespace(type="text", text=str(arguments["a"] * 2))]
            return self.made(content=content, **{self.failed: False})
        if name == "picture":
            content = [SimpleNamespace(type="image", data="...")]
            return self.made(content=content, **{self.failed: False})
        if name == "structured":
            return self.made(content=[], structured_content={"a": 1}, **{self.failed: False})
        content = [SimpleNamespace(type="text", text="it failed")]
        return self.made(content=content, **{self.failed: True})


def run_turns(*turns: Any, version: int = 2, max_turns: int = 10) -> tuple[Any, list[str]]:
    """The result of a rollout, and what the tools returned."""
    server = Server(version=version)
    agent = McpAgent(server.connect)
    result = rollout(agent, ScriptedModel(list(turns)), user="double 4", max_turns=max_turns)
    assert server.open == 0
    messages = result.final_messages
    return result, [message["content"] for message in messages if message["role"] == "tool"]


def test_the_tools_are_offered_as_the_server_describes_them():
    for version in (1, 2):
        double, fail = McpAgent(Server(version=version).connect).get_tools(Any)  # type: ignore[arg-type]
        function = {"name": "double", "description": "Double a.", "parameters": NUMBERS}
        assert double == {"type": "function", "function": function}
        assert fail["function"]["parameters"] == {"type": "object", "properties": {}}


def test_tools_are_called_until_the_model_answers():
    for version in (1, 2):
        result, results = run_turns(call("double", a=4), "It is 8.", version=version)
        assert (result.status, results) == ("COMPLETED", ["8"])
        assert result.final_messages[-1]["content"] == "It is 8."
        assert result.metrics.num_tool_calls == 1


def test_what_a_tool_says_of_its_failure_goes_to_the_model():
    for version in (1, 2):
        _, results = run_turns(call("fail"), "Sorry.", version=version)
        assert results == ["Error: it failed"]


def test_results_without_a_text_are_reported_too():
    _, results = run_turns(call("picture"), call("structured"), "Seen.")
    assert results == ["[image]", '{"a": 1}']


def test_a_model_that_goes_on_calling_ends_with_its_turns():
    result, results = run_turns(*[call("double", a=1)] * 3, max_turns=3)
    assert (result.status, result.finish_reason, len(results)) == ("COMPLETED", "max_turns", 3)
