"""`record(client)` with OpenAI's own library: what is recorded, and what is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from osmosis_ai import record
from osmosis_ai.agents.client import ModelLLM
from osmosis_ai.agents.plain_callable import CallableAgent
from osmosis_ai.bridge import Bridge
from osmosis_ai.rollout.testing import ScriptedModel, context, rollout
from tests.support.endpoints import Ask, Endpoint

Opened = list[openai.OpenAI]
LOOKUP = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"a": 1}'}}
USER = {"role": "user", "content": "6 x 7?"}


@pytest.fixture
def url() -> Iterator[str]:
    """An endpoint that calls a tool where one is given, and answers otherwise."""

    def answer(messages: list[dict[str, Any]]) -> Any:
        if messages[-1]["role"] == "tool" or "tool" not in str(messages[-1]["content"]):
            return f"It is {messages[-1]['content']}"
        return {"content": None, "tool_calls": [CALL]}

    bridge = Bridge(lambda: ScriptedModel(answer))
    account = bridge.open_account()
    yield f"{account.url} {account.key.reveal()}"
    bridge.close()


@pytest.fixture
def opened() -> Iterator[list[openai.OpenAI]]:
    """The clients that a test opens."""
    clients: list[openai.OpenAI] = []
    yield clients
    for client in clients:
        client.close()


def client_of(kind: Any, url: str, opened: list[openai.OpenAI]) -> Any:
    base_url, key = url.split()
    client = record(kind(base_url=base_url, api_key=key, max_retries=0))
    if kind is openai.OpenAI:
        opened.append(client)
    return client


def ran(function: Any) -> Any:
    """One rollout of a function: its result."""
    return rollout(CallableAgent(function), ScriptedModel([]), messages=[USER])


def test_the_conversation_has_the_tool_calls_and_the_answer_once(
    url: str, opened: list[openai.OpenAI]
):
    client = client_of(openai.OpenAI, url, opened)

    def agent(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": f"{question} tool"}]
        first = client.chat.completions.create(model="m", messages=messages, tools=[LOOKUP])
        messages.append(first.choices[0].message.model_dump(exclude_none=True))
        messages.append({"role": "tool", "tool_call_id": "c1", "content": "42"})
        last = client.chat.completions.create(model="m", messages=messages)
        return str(last.choices[0].message.content)

    result = ran(agent)
    assert [each["role"] for each in result.final_messages] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert result.final_messages[1]["tool_calls"][0]["function"]["name"] == "lookup"
    assert result.metrics.num_llm_calls == 2 and result.metrics.num_tool_calls == 1
    assert result.metrics.prompt_tokens > 0


def test_streams_are_recorded_when_they_end(url: str, opened: Opened):
    client = client_of(openai.OpenAI, url, opened)

    def agent(question: str) -> str:
        with client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "6"}], stream=True
        ) as stream:
            parts = [part.choices[0].delta.content for part in stream if part.choices]
        return "".join(filter(None, parts))

    result = ran(agent)
    assert result.final_messages == [
        {"role": "user", "content": "6"}, {"role": "assistant", "content": "It is 6"},
    ]  # fmt: skip


def test_concurrent_calls_stand_in_the_order_in_which_they_began(
    url: str, opened: list[openai.OpenAI]
):
    client = client_of(openai.AsyncOpenAI, url, opened)

    async def ask(text: str) -> str:
        messages = [{"role": "user", "content": text}]
        answer = await client.chat.completions.create(model="m", messages=messages)
        return str(answer.choices[0].message.content)

    async def agent(question: str) -> str:
        async with client:
            return " and ".join(await asyncio.gather(ask("a"), ask("b")))

    said = [each["content"] for each in ran(agent).final_messages]
    assert said == ["a", "It is a", "b", "It is b", "It is a and It is b"]


def test_an_answer_of_the_responses_api_is_a_message():
    call = {"type": "function_call", "call_id": "c1", "name": "lookup", "arguments": "{}"}
    text = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "42", "annotations": []}]}  # fmt: skip
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    body = {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed",
            "output": [call, text], "usage": usage}  # fmt: skip

    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=body))
    own = httpx.Client(transport=transport)
    client = record(openai.OpenAI(base_url="http://127.0.0.1:9", api_key="k", http_client=own))
    result = ran(lambda q: client.responses.create(model="m", input=q).output_text)
    assert result.final_messages[0] == USER
    assert result.final_messages[1]["content"] == "42"
    assert result.final_messages[1]["tool_calls"][0]["id"] == "c1"
    assert result.metrics.prompt_tokens == 5 and result.metrics.response_tokens == 2


def test_the_items_of_one_turn_are_one_message():
    thought = {"type": "reasoning", "id": "t", "summary": []}
    text = {"type": "output_text", "text": "a", "annotations": []}
    said = {"type": "message", "role": "assistant", "content": [text]}
    calls = [{"type": "function_call", "call_id": n, "name": n, "arguments": "{}"} for n in "xy"]
    result = {"type": "function_call_output", "call_id": "x", "output": "1"}
    body = {"output": [thought, said], "usage": {}}
    own = httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json=body)))
    client: Any = record(openai.OpenAI(base_url="http://127.0.0.1:9", api_key="k", http_client=own))
    given = [{"role": "user", "content": "q"}, thought, said, *calls, result]
    messages = ran(lambda q: client.responses.create(model="m", input=given).output_text)
    roles = [each["role"] for each in messages.final_messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    turn = messages.final_messages[1]
    assert turn["content"] == "a" and [call["id"] for call in turn["tool_calls"]] == ["x", "y"]


def test_the_price_that_the_user_gives_holds_for_its_calls(url: str, opened: Opened):
    client = client_of(openai.OpenAI, url, opened)
    ctx = context(ScriptedModel([]))
    ctx.price_per_mtok = (1e6, 0.0)
    with ctx:
        client.chat.completions.create(model="m", messages=[USER])
    assert isinstance(ctx.llm, ModelLLM) and ctx.llm.cost_usd == ctx.llm.prompt_tokens


def test_a_pause_that_the_endpoint_asked_for_is_shared():
    seen: list[Any] = []

    class Pace:
        async def acquire(self) -> None:
            seen.append("wait")

        def record_response(self, outcome: str, retry_after_s: float) -> None:
            seen.append((outcome, retry_after_s))

    def refuse(ask: Ask) -> bytes:
        return b"HTTP/1.1 429 Slow\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n"

    with Endpoint(refuse) as endpoint:
        client = record(openai.OpenAI(base_url=endpoint.base_url, api_key="k", max_retries=0))
        ctx = context(ScriptedModel([]))
        ctx.rate_limit = Pace()
        with ctx, pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}])
        client.close()
    assert seen == ["wait", ("rate_limited", 3.0)]
    assert isinstance(ctx.llm, ModelLLM) and ctx.llm.num_llm_calls == 0


def test_outside_of_a_rollout_it_is_the_client_alone(url: str, opened: Opened):
    client = client_of(openai.OpenAI, url, opened)
    messages = [{"role": "user", "content": "a"}]
    answer = client.chat.completions.create(model="m", messages=messages)
    assert isinstance(client, openai.OpenAI) and answer.choices[0].message.content == "It is a"


def test_a_client_that_is_recorded_twice_counts_once(url: str, opened: Opened):
    client = record(client_of(openai.OpenAI, url, opened))
    ctx = context(ScriptedModel([]))
    with ctx:
        client.chat.completions.create(model="m", messages=[USER])
    assert isinstance(ctx.llm, ModelLLM) and ctx.llm.num_llm_calls == 1


def test_anything_else_than_such_a_client_is_refused():
    with pytest.raises(TypeError, match=r"record takes a client of OpenAI or Anthropic .*not dict"):
        record({})
