"""`record(client)` with Anthropic's own library: blocks become messages, also streamed ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from osmosis_ai import record
from osmosis_ai.agents.plain_callable import CallableAgent
from osmosis_ai.bridge import Bridge
from osmosis_ai.rollout.testing import ScriptedModel, call, rollout

TOOL = {"name": "lookup", "input_schema": {"type": "object"}}


@pytest.fixture
def where() -> Iterator[dict[str, str]]:
    """An endpoint that calls a tool first, and answers then."""

    def answer(messages: list[dict[str, Any]]) -> Any:
        asked = any(message["role"] == "tool" for message in messages)
        return "It is 42" if asked else call("lookup", order="A1")

    bridge = Bridge(lambda: ScriptedModel(answer))
    account = bridge.open_account()
    yield {"base_url": account.url.removesuffix("/v1"), "api_key": account.key.reveal()}
    bridge.close()


def ran(function: Any) -> Any:
    user = {"role": "user", "content": "6 x 7?"}
    return rollout(CallableAgent(function), ScriptedModel([]), messages=[user])


def check(result: Any) -> None:
    roles = [each["role"] for each in result.final_messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant"]
    function = result.final_messages[2]["tool_calls"][0]["function"]
    assert function == {"name": "lookup", "arguments": '{"order": "A1"}'}
    assert result.final_messages[-1]["content"] == "It is 42"
    assert result.metrics.num_llm_calls == 2 and result.metrics.prompt_tokens is not None


def history(question: str, answer: Any) -> list[Any]:
    used = next(block for block in answer.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": used.id, "content": "42"}
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [result]},
    ]


def test_messages_and_tool_calls_are_recorded(where: dict[str, str]):
    client = record(anthropic.Anthropic(**where))
    given: Any = {"model": "m", "max_tokens": 50, "system": "Be brief.", "tools": [TOOL]}

    def agent(question: str) -> str:
        first = client.messages.create(messages=[{"role": "user", "content": question}], **given)
        last = client.messages.create(messages=history(question, first), **given)
        return str(last.content[0].text)

    assert isinstance(client, anthropic.Anthropic)
    check(ran(agent))


def test_streams_of_the_async_client_are_recorded(where: dict[str, str]):
    client = record(anthropic.AsyncAnthropic(**where))
    given: Any = {"model": "m", "max_tokens": 50, "system": "Be brief.", "tools": [TOOL]}

    async def agent(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        async with client:
            async with client.messages.stream(messages=messages, **given) as stream:
                first = await stream.get_final_message()
            messages = history(question, first)
            async with client.messages.stream(messages=messages, **given) as stream:
                return "".join([text async for text in stream.text_stream])

    check(ran(agent))
