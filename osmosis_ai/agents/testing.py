"""Unit tests of agents without a server: a model that answers by script, and a context over it.

    from osmosis_ai.agents.testing import ScriptedModel, call, context, rollout

    def test_my_agent_adds():
        model = ScriptedModel([call("add", a=2, b=2), "The answer is 4."])
        result = rollout(MyAgent(), model, user="What is 2 + 2?")
        assert result.status == "COMPLETED"
        assert model.requests[1].messages[-1]["content"] == "4"

The agent runs as it does in an evaluation and in the RolloutServer. Nothing here uses the network,
and nothing needs a plugin of pytest.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..blocking import run_blocking
from ..models.base import ChatCompletion, ChatModel, Usage
from .base import AgentFunction, RolloutAgentLoop, as_agent
from .client import ModelLLM
from .context import RolloutContext
from .request import RolloutRequest
from .results import RolloutResult
from .runner import run_rollout
from .tools import tool_schemas

if TYPE_CHECKING:
    from ..models.other_apis import OtherRequest

__all__ = [
    "ScriptedModel",
    "SeenRequest",
    "ToolCall",
    "Turn",
    "call",
    "context",
    "request",
    "rollout",
]

Turn = str | Mapping[str, Any] | Exception | Sequence["ToolCall"]
"""One answer: text, an assistant message, an exception to raise, or tool calls."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call that a scripted model makes; build it with `call`."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """What a scripted model was asked, as it was at that moment."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    params: dict[str, Any]


def call(name: str, /, **arguments: Any) -> list[ToolCall]:
    """Return a turn that calls one tool; add turns (`call(...) + call(...)`) for several."""
    return [ToolCall(name, arguments)]


class ScriptedModel:
    """A model that gives the listed answers, one a call.

    `turns` are the answers in order, or a function from the messages to the next answer. A call
    beyond the last turn raises AssertionError. `requests` holds what was asked.
    """

    name = "scripted"
    endpoint = "script"

    def __init__(
        self, turns: Iterable[Turn] | Callable[[list[dict[str, Any]]], Turn], *, tokens: int = 1
    ) -> None:
        self._answer = turns if callable(turns) else _in_order(turns)
        self._tokens = tokens
        self.requests: list[SeenRequest] = []

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        other: OtherRequest | None = None,
    ) -> ChatCompletion:
        """Return the next answer, to Anthropic's messages too where `other` is them."""
        if other is not None and not other.is_translated():
            raise AssertionError("a scripted model answers chat completions and messages alone")
        seen = [dict(message) for message in copy.deepcopy(list(messages))]
        offered = [dict(tool) for tool in copy.deepcopy(list(tools or ()))]
        self.requests.append(SeenRequest(seen, offered, dict(params or {})))
        message = _message(self._answer(copy.deepcopy(seen)), len(self.requests))
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        usage = Usage(self._tokens, self._tokens, 2 * self._tokens)
        return ChatCompletion(message=message, finish_reason=reason, usage=usage, model=self.name)

    async def aclose(self) -> None:
        """Nothing to close."""


def request(
    user: str = "",
    *,
    system: str = "",
    messages: list[dict[str, Any]] | None = None,
    rollout_id: str = "test",
    metadata: dict[str, Any] | None = None,
    completion_params: dict[str, Any] | None = None,
    max_turns: int = 10,
) -> RolloutRequest:
    """Return a rollout's request: `messages`, or a system and a user message."""
    if messages is None:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": user})
    return RolloutRequest.for_eval(
        rollout_id=rollout_id,
        messages=messages,
        metadata=metadata,
        completion_params=completion_params,
        max_turns=max_turns,
    )


def context(
    model: ChatModel,
    agent: RolloutAgentLoop | AgentFunction | None = None,
    *,
    debug_dir: str | os.PathLike[str] | None = None,
    **request_fields: Any,
) -> RolloutContext:
    """Return a context over `model` with the agent's tools; other keywords: see `request`."""
    asked = request(**request_fields)
    tools = [] if agent is None else tool_schemas(as_agent(agent), asked)
    return RolloutContext(asked, tools, ModelLLM(model, tools=tools), debug_dir=debug_dir)


def rollout(
    agent: RolloutAgentLoop | AgentFunction, model: ChatModel, **request_fields: Any
) -> RolloutResult:
    """Run the agent once against `model`; keywords are those of `request`."""
    asked = request(**request_fields)
    loop = as_agent(agent)
    llm = ModelLLM(model, tools=tool_schemas(loop, asked))
    return run_blocking(run_rollout(loop, asked, llm))


def _in_order(turns: Iterable[Turn]) -> Callable[[list[dict[str, Any]]], Turn]:
    left = iter(turns)

    def answer(messages: list[dict[str, Any]]) -> Turn:
        for turn in left:
            return turn
        raise AssertionError(f"the script has no further turn; the history ends: {messages[-1:]}")

    return answer


def _message(turn: Turn, number: int) -> dict[str, Any]:
    if isinstance(turn, str):
        return {"role": "assistant", "content": turn}
    if isinstance(turn, Mapping):
        return {"role": "assistant", **copy.deepcopy(dict(turn))}
    if isinstance(turn, Exception):
        raise turn
    calls = [_tool_call(item, f"call_{number}_{index}") for index, item in enumerate(turn)]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _tool_call(item: ToolCall, call_id: str) -> dict[str, Any]:
    text = item.arguments if isinstance(item.arguments, str) else json.dumps(item.arguments)
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": item.name, "arguments": text},
    }
