"""`record` of LangChain's models, `google.genai` and `litellm`: by their shapes, and by LiteLLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from pydantic import BaseModel, ConfigDict

from osmosis_ai import record
from osmosis_ai.agents.plain_callable import CallableAgent
from osmosis_ai.rollout.testing import ScriptedModel, rollout
from tests.support.endpoints import Ask, Endpoint, completion, error_reply, tool_call

USER = {"role": "user", "content": "6 x 7?"}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint("42") as endpoint:
        yield endpoint


def ran(function: Any) -> Any:
    """One rollout of a function: its result."""
    return rollout(CallableAgent(function), ScriptedModel([]), messages=[USER])


def roles(result: Any) -> list[str]:
    return [each["role"] for each in result.final_messages]


# ---- LangChain


class FakeChatOpenAI(BaseModel):
    """What LangChain's models of OpenAI have of their clients."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    root_client: Any
    root_async_client: Any
    client: Any
    async_client: Any

    def invoke(self, text: str) -> str:
        messages: Any = [{"role": "user", "content": text}]
        answer = self.client.create(model="m", messages=messages)
        return str(answer.choices[0].message.content)

    async def ainvoke(self, text: str) -> str:
        messages: Any = [{"role": "user", "content": text}]
        answer = await self.async_client.create(model="m", messages=messages)
        return str(answer.choices[0].message.content)


def test_a_model_of_langchain_is_copied_with_recorded_clients(endpoint: Endpoint):
    given: Any = {"base_url": endpoint.base_url, "api_key": "k"}
    with openai.OpenAI(**given) as sync:
        twin = openai.AsyncOpenAI(**given)
        model = FakeChatOpenAI(
            root_client=sync,
            root_async_client=twin,
            client=sync.chat.completions,
            async_client=twin.chat.completions,
        )
        recorded = record(model)
        assert recorded is not model and model.root_client is sync
        result = ran(lambda question: recorded.invoke(f"think: {question}"))
        assert result.final_messages == [
            {"role": "user", "content": "think: 6 x 7?"}, {"role": "assistant", "content": "42"},
        ]  # fmt: skip
        assert result.metrics.prompt_tokens == 10

        async def agent(question: str) -> str:
            answer: str = await recorded.ainvoke(question)
            await twin.close()
            return answer

        assert ran(agent).metrics.num_llm_calls == 1
        assert recorded.invoke("outside") == "42"


class ChatAnthropic(BaseModel):
    """What LangChain's model of Anthropic has: clients that are made when they are used."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def __getattr__(self, name: str) -> Any:
        if name in ("_client", "_async_client"):
            return openai.OpenAI(base_url="http://127.0.0.1:9", api_key="k")
        raise AttributeError(name)


def test_that_of_anthropic_has_its_clients_made_and_recorded():
    model = ChatAnthropic()
    found = vars(record(model))
    transport = found["_client"]._client._transport
    assert type(transport).__name__ == "Recording" and "_client" not in vars(model)


def test_what_cannot_be_recorded_is_named_with_what_can():
    class RunnableBinding:
        pass

    with pytest.raises(TypeError, match=r"ChatAnthropic: before bind_tools\).*not RunnableBinding"):
        record(RunnableBinding())
    alone = FakeChatOpenAI(root_client=None, root_async_client=None, client=1, async_client=1)
    with pytest.raises(TypeError, match="FakeChatOpenAI has no client of OpenAI"):
        record(alone)


# ---- google.genai


CALL_PART = {"functionCall": {"name": "add", "args": {"a": 1}}}
COUNTS = {"promptTokenCount": 10, "candidatesTokenCount": 2, "thoughtsTokenCount": 3,
          "totalTokenCount": 15, "cachedContentTokenCount": 4}  # fmt: skip


def gemini(*parts: Any, reason: str | None = "STOP", **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [*parts]}
    return {"candidates": [{"content": content, "finishReason": reason}],
            "usageMetadata": COUNTS, "modelVersion": "gemini-9", **more}  # fmt: skip


class FakeGenai:
    """What a `google.genai.Client` has of its HTTP clients."""

    def __init__(self, base_url: str, **more: Any) -> None:
        self._url = base_url
        self._api_client = SimpleNamespace(
            vertexai=None, api_key="k", _http_options=SimpleNamespace(httpx_async_client=None),
            _httpx_client=httpx.Client(trust_env=False, timeout=60),
            _async_httpx_client=httpx.AsyncClient(trust_env=False, timeout=60), **more,
        )  # fmt: skip

    def generate(self, contents: Any, *, stream: bool = False, **more: Any) -> Any:
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        url = f"{self._url}/models/gemini-9:{method}"
        client = self._api_client._httpx_client
        reply = client.send(client.build_request("POST", url, json={"contents": contents, **more}))
        reply.raise_for_status()
        return reply.text


FakeGenai.__module__ = "google.genai.client"


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[Any]:
    client: Any = FakeGenai(endpoint.base_url)
    with client._api_client._httpx_client:
        yield client


def test_a_client_of_gemini_is_recorded_with_tools_thoughts_and_streams(
    endpoint: Endpoint, client: Any
):
    assert record(client) is client and record(client) is client
    thought = {"text": "hm", "thought": True}
    events = [gemini({"text": "4"}, reason=None), gemini({"text": "2"})]
    body = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    endpoint.routes = {
        ":generateContent": gemini(thought, CALL_PART),
        ":streamGenerateContent": [head % len(body) + body],
    }

    def agent(question: str) -> str:
        asked: list[Any] = [{"role": "user", "parts": [{"text": question}]}]
        system = {"parts": [{"text": "Add."}]}
        client.generate(asked, systemInstruction=system)
        result = {"functionResponse": {"name": "add", "response": {"sum": 42}}}
        asked += [{"role": "model", "parts": [thought, CALL_PART]},
                  {"role": "user", "parts": [result]}]  # fmt: skip
        client.generate(asked, systemInstruction=system, stream=True)
        return "42"

    result = ran(agent)
    assert roles(result) == ["system", "user", "assistant", "tool", "assistant"]
    assert result.final_messages[2]["tool_calls"][0]["function"] == {
        "name": "add", "arguments": '{"a": 1}',
    }  # fmt: skip
    assert result.final_messages[3]["content"] == '{"sum": 42}'
    metrics = result.metrics
    assert (metrics.num_llm_calls, metrics.prompt_tokens, metrics.response_tokens) == (2, 20, 10)


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": COUNTS}, "filtered"),
        (gemini({"text": "4"}, reason="MAX_TOKENS"), "cut"),
        (gemini(reason="RECITATION"), "filtered"),
        (gemini({"text": "4"}), None),
    ],
)
def test_a_refused_prompt_and_a_cut_answer_of_gemini_are_named(document: Any, kind: str | None):
    from osmosis_ai.gemini_messages import read_answer
    from osmosis_ai.models.answers import kind_of_answer

    answer = read_answer(document)
    assert kind_of_answer(answer.message, answer.finish_reason) == kind
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (10, 5, 15)
    assert (usage.cached_tokens, usage.reasoning_tokens) == (4, 3)


def test_credentials_of_vertex_are_refused(client: Any):
    client._api_client.vertexai, client._api_client.api_key = True, None
    with pytest.raises(TypeError, match=r"google\.genai\.Client with an API key: Vertex AI's"):
        record(client)


# ---- LiteLLM


@pytest.fixture
def litellm() -> Iterator[Any]:
    from osmosis_ai.models.litellm.library import load

    module = load()
    before = module.completion, module.acompletion
    yield record(module)
    module.completion, module.acompletion = before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # that LiteLLM causes where it is used directly
def test_litellm_is_recorded_where_frameworks_find_it(endpoint: Endpoint, litellm: Any):
    import litellm as found

    assert found.completion is record(litellm).completion  # once
    endpoint.answers = lambda ask: (
        completion(tool_call("add", '{"a": 1}'), finish_reason="tool_calls")
        if "tools" in ask.body
        else "42"
    )
    given: Any = {"model": "openai/m", "api_base": endpoint.base_url, "api_key": "k",
                  "max_retries": 0}  # fmt: skip
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}

    def agent(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        first = found.completion(messages=messages, tools=[tool], **given)
        messages.append(first.choices[0].message)
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": "42"})
        return str(found.completion(messages=messages, **given).choices[0].message.content)

    result = ran(agent)
    assert roles(result) == ["user", "assistant", "tool", "assistant"]
    metrics = result.metrics
    assert (metrics.num_llm_calls, metrics.prompt_tokens, metrics.response_tokens) == (2, 20, 10)

    async def asynchronous(question: str) -> str:
        answer = await found.acompletion(messages=[USER], **given)
        return str(answer.choices[0].message.content)

    assert ran(asynchronous).metrics.num_llm_calls == 1
    requests = endpoint.requests
    found.completion(messages=[USER], **given)  # outside of a rollout
    assert endpoint.requests == requests + 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # that LiteLLM causes where it is used directly
def test_its_failures_are_the_endpoints(endpoint: Endpoint, litellm: Any):
    def refuse(ask: Ask) -> Any:
        return [error_reply(429, "slow down")]

    endpoint.answers = refuse
    seen: list[Any] = []

    def agent(question: str) -> str:
        from osmosis_ai.agents.context import get_rollout_context

        ctx = get_rollout_context()
        assert ctx is not None
        try:
            litellm.completion(model="openai/m", messages=[USER], api_base=endpoint.base_url,
                               api_key="k", max_retries=0)  # fmt: skip
        except litellm.RateLimitError:
            seen.append(ctx.llm.last_error)  # type: ignore[attr-defined]
        return "caught"

    ran(agent)
    assert [error.kind for error in seen] == ["rate_limited"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # that LiteLLM causes where it is used directly
def test_its_streams_are_recorded_when_they_end_or_are_left(litellm: Any):
    given: Any = {"model": "openai/m", "messages": [USER], "mock_response": "forty two",
                  "stream": True, "stream_options": {"include_usage": True}}  # fmt: skip

    def read(question: str) -> str:
        stream = litellm.completion(**given)
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    async def awaited(question: str) -> str:
        stream = await litellm.acompletion(**given)
        parts = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        return "".join(parts)

    for agent in (read, awaited):
        result = ran(agent)
        assert result.final_messages == [USER, {"role": "assistant", "content": "forty two"}]
        assert result.metrics.num_llm_calls == 1
        assert result.metrics.response_tokens > 0

    def left(question: str) -> str:
        for chunk in litellm.completion(**given):
            return str(chunk.choices[0].delta.content)
        return ""

    result = ran(left)
    assert result.metrics.num_llm_calls == 1
    assert result.metrics.response_tokens is None  # no chunk that was read had the usage
