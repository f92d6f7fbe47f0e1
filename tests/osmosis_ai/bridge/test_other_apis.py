"""The bridge's other APIs: responses, embeddings, several answers; mostly with OpenAI's client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from osmosis_ai.bridge import Account, Bridge
from osmosis_ai.models.litellm.model import LiteLLMModel
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.secret import Secret
from tests.support.endpoints import Endpoint, completion

from .conftest import HTTP, PROVIDER_KEY

if TYPE_CHECKING:
    import openai

ASKED = "What is 6 x 7?"


def text(said: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": said, "annotations": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [part]}  # fmt: skip


CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "add",
        "arguments": '{"a": 1}', "status": "completed"}  # fmt: skip
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": []}


def response(*output: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "output_tokens_details": {"reasoning_tokens": 3},
             "input_tokens_details": {"cached_tokens": 4}}  # fmt: skip
    return {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed",
            "model": "evaluated-2", "output": list(output), "usage": usage, "tools": [],
            "parallel_tool_calls": True, "tool_choice": "auto", **more}  # fmt: skip


@pytest.fixture
def client(account: Account) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=account.url, api_key=account.key.reveal()) as client:
        yield client


def said(account: Account) -> list[str]:
    """Roles and texts of the conversation, calls as their names."""
    return [
        f"{each['role']}: {each.get('content') or each['tool_calls'][0]['function']['name']}"
        for each in account.trajectory.all()
    ]


def test_a_response_goes_to_the_endpoint_as_it_is_with_the_sampling_by_its_names(
    endpoint: Endpoint, bridge: Bridge
):
    import openai

    endpoint.routes = {"/responses": response(THOUGHT, text("42"))}
    account = bridge.open_account(params={"max_tokens": 9, "temperature": 0.5}, record=True)
    with openai.OpenAI(base_url=account.url, api_key=account.key.reveal()) as client:
        found = client.responses.create(
            model="other", instructions="Short.", input=ASKED, temperature=0.1, store=False
        )
    assert found.output_text == "42"
    [ask] = endpoint.seen
    assert ask.body == {
        "model": "evaluated", "instructions": "Short.", "input": ASKED, "temperature": 0.1,
        "store": False, "max_output_tokens": 9,
    }  # fmt: skip
    assert ask.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert said(account) == ["system: Short.", f"user: {ASKED}", "assistant: 42"]
    llm = account.llm
    assert (llm.num_llm_calls, llm.total_tokens) == (1, 15)
    assert (llm.cached_tokens, llm.reasoning_tokens) == (4, 3)
    assert (llm.finish_reason, llm.answer_kind) == ("stop", None)


@pytest.mark.parametrize("by_id", [False, True])
def test_tool_calls_stand_in_one_conversation_whether_it_is_sent_back_or_named(
    endpoint: Endpoint, account: Account, client: openai.OpenAI, by_id: bool
):
    answers = iter([response(THOUGHT, CALL), response(text("42"), number=2)])
    endpoint.routes = {"/responses": lambda ask: next(answers)}
    first = client.responses.create(model="m", instructions="Add.", input=ASKED)
    result: Any = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
    given: Any = [{"role": "user", "content": ASKED}, *first.output, result]
    more: Any = {"previous_response_id": first.id} if by_id else {}
    client.responses.create(
        model="m", instructions="Add.", input=[result] if by_id else given, **more
    )
    assert said(account) == [
        "system: Add.", f"user: {ASKED}", "assistant: add", "tool: 3", "assistant: 42",
    ]  # fmt: skip
    [call] = account.trajectory.all()[2]["tool_calls"]
    assert call["function"] == {"name": "add", "arguments": '{"a": 1}'}


def test_a_streamed_response_has_the_events_that_the_client_puts_together(
    endpoint: Endpoint, client: openai.OpenAI
):
    refusal = {**text(""), "id": "msg_2", "content": [{"type": "refusal", "refusal": "No."}]}
    endpoint.routes = {"/responses": response(THOUGHT, CALL, text("42"), refusal)}
    with client.responses.stream(model="m", input=ASKED) as stream:
        kinds = [event.type for event in stream]
        found = stream.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert {"response.output_text.delta", "response.function_call_arguments.done"} <= {*kinds}
    assert kinds[-1] == "response.completed"
    assert found.output_text == "42"
    assert [item.type for item in found.output] == [
        "reasoning", "function_call", "message", "message",
    ]  # fmt: skip
    assert "stream" not in endpoint.seen[0].body


def test_a_cut_or_refused_response_is_named_so(
    endpoint: Endpoint, account: Account, client: openai.OpenAI
):
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    endpoint.routes = {"/responses": response(text("4"), **cut)}
    events = client.responses.create(model="m", input=ASKED, stream=True)
    assert [event.type for event in events][-1] == "response.incomplete"
    assert account.llm.answer_kind == "cut"
    refusal = {**text(""), "content": [{"type": "refusal", "refusal": "No."}]}
    endpoint.routes = {"/responses": response(refusal)}
    client.responses.create(model="m", input=ASKED)
    assert account.llm.answer_kind == "refused"


@pytest.mark.parametrize(
    ("document", "status", "kind"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, 429, "rate_limited"),
        (response(status="failed", error={"code": "server_error", "message": "broke"}), 502,
         "overloaded"),
        ({"object": "response"}, 502, "protocol"),
        ({"error": "Unexpected endpoint or method. (POST /v1/responses)"}, 400, "bad_request"),
    ],
)  # fmt: skip
def test_a_failure_within_a_200_is_one(
    endpoint: Endpoint, account: Account, document: Any, status: int, kind: str
):
    endpoint.routes = {"/responses": document}
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    found = HTTP.post(f"{account.url}/responses", headers=headers, json={"input": ASKED})
    assert (found.status_code, account.llm.num_llm_calls) == (status, 0), found.text
    assert account.llm.last_error is not None and account.llm.last_error.kind == kind


@pytest.mark.parametrize(
    ("path", "body", "shown"),
    [
        ("/responses", {"input": ASKED, "background": True}, "'background' is not supported"),
        ("/responses", {"input": 5}, "'input' must be a string or an array of objects"),
        ("/responses", {"input": [{"content": [5]}]}, "'input' cannot be read"),
        ("/embeddings", {"model": "e"}, "'input' must be a string or an array of strings"),
        ("/responses", {"input": ASKED}, "/v1/responses (404: \"Not Found\"): the endpoint has no "
         "Responses API, which the agent's client asks for: have it use chat completions"),
        ("/embeddings", {"input": "a"}, "the endpoint has no embeddings"),
    ],
)  # fmt: skip
def test_what_cannot_be_forwarded_is_said(account: Account, path: str, body: Any, shown: str):
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    found = HTTP.post(account.url + path, headers=headers, json=body)
    assert found.status_code in (400, 404)
    assert shown in found.json()["error"]["message"]
    assert account.llm.num_llm_calls == 0


def test_embeddings_are_of_the_model_that_the_client_names_and_say_nothing(
    endpoint: Endpoint, account: Account, client: openai.OpenAI
):
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
    endpoint.routes = {
        "/embeddings": {"object": "list", "data": data, "model": "small", "usage": usage}
    }
    found = client.embeddings.create(model="small", input=["a"], dimensions=2)
    assert found.data[0].embedding == [0.5, 0.25]
    assert endpoint.seen[0].body["model"] == "small"
    llm = account.llm
    assert (llm.prompt_tokens, llm.response_tokens, llm.total_tokens) == (3, 0, 3)
    assert not account.trajectory and (llm.answer_kind, llm.last_answer) == (None, None)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": ASKED}])
    assert llm.total_tokens == 18


@pytest.mark.parametrize("stream", [False, True])
def test_several_answers_with_their_logprobs_are_handed_on(
    endpoint: Endpoint, account: Account, stream: bool
):
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    both = completion("41", usage=usage)
    logprobs = {"content": [{"token": "4", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    both["choices"][0]["logprobs"] = logprobs
    both["choices"].append(
        {"index": 1, "message": {"role": "assistant", "content": "42"}, "finish_reason": "stop",
         "logprobs": logprobs}
    )  # fmt: skip
    endpoint.answers = both
    asked = [{"role": "user", "content": ASKED}]
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
    body = {"messages": asked, "n": 2, "logprobs": True, "response_format": schema,
            "stream": stream}  # fmt: skip
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    found = HTTP.post(f"{account.url}/chat/completions", headers=headers, json=body)
    if stream:
        lines = [
            json.loads(line[6:]) for line in found.text.splitlines() if line.startswith("data: {")
        ]
        choices = [choice for line in lines for choice in line["choices"]]
    else:
        choices = found.json()["choices"]
    said = [(each["index"], each["delta" if stream else "message"]["content"]) for each in choices]
    assert said == [(0, "41"), (1, "42")]
    assert [each["logprobs"] for each in choices] == [logprobs, logprobs]
    sent = endpoint.seen[0].body
    assert (sent["n"], sent["logprobs"], sent["response_format"]) == (2, True, schema)
    assert account.llm.total_tokens == 14
    # The one that the agent goes on with is continued, the other one stands beside it.
    chosen = {"role": "assistant", "content": "41"}
    more = [*asked, chosen, {"role": "user", "content": "sure?"}]
    endpoint.answers = "yes"
    HTTP.post(f"{account.url}/chat/completions", headers=headers, json={"messages": more})
    texts = [each["content"] for each in account.trajectory.all()]
    assert texts == [ASKED, "42", ASKED, "41", "sure?", "yes"]


# ---- through LiteLLM


MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-2",
    "content": [{"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "42"}],
    "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 4},
}  # fmt: skip


@pytest.fixture
def through_litellm(endpoint: Endpoint, request: Any) -> Iterator[Account]:
    provider, model = request.param.split("/")
    base = endpoint.base_url if provider != "anthropic" else endpoint.base_url.removesuffix("/v1")

    def opened() -> LiteLLMModel:
        return LiteLLMModel(
            model=f"{provider}/{model}",
            api_key=Secret(PROVIDER_KEY, "PROVIDER_KEY"),
            api_base=base,
            retry=RetryPolicy(max_tries=1),
        )

    bridge = Bridge(opened)
    yield bridge.open_account(params={"max_tokens": 20}, record=True)
    bridge.close()


@pytest.mark.slow
@pytest.mark.parametrize("through_litellm", ["openai/gpt-4o"], indirect=True)
def test_litellm_sends_responses_and_embeddings_where_the_provider_has_them(
    endpoint: Endpoint, through_litellm: Account
):
    account = through_litellm
    data = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
    usage = {"prompt_tokens": 3, "total_tokens": 3}
    endpoint.routes = {
        "/responses": response(text("42")),
        "/embeddings": {"object": "list", "data": data, "model": "small", "usage": usage},
    }
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    body = {"input": ASKED, "model": "x", "base_url": "http://127.0.0.1:9", "verbosity": "low"}
    found = HTTP.post(f"{account.url}/responses", headers=headers, timeout=60, json=body)
    assert found.json()["output"] == [text("42")], found.text
    [ask] = endpoint.seen
    assert (ask.path, ask.body["model"], ask.body["max_output_tokens"]) == (
        "/v1/responses", "gpt-4o", 20,
    )  # fmt: skip
    assert (ask.body["base_url"], ask.body["verbosity"]) == ("http://127.0.0.1:9", "low")
    assert ask.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert (account.llm.total_tokens, said(account)[-1]) == (15, "assistant: 42")
    assert account.llm.cost_usd is not None and account.llm.cost_usd > 0
    body = {"input": ["a"], "model": "text-embedding-3-small", "encoding_format": "base64"}
    found = HTTP.post(f"{account.url}/embeddings", headers=headers, timeout=60, json=body)
    assert found.json()["data"] == data, found.text
    assert endpoint.seen[1].body["model"] == "text-embedding-3-small"
    assert account.llm.total_tokens == 18


@pytest.mark.slow
@pytest.mark.parametrize("through_litellm", ["anthropic/claude-sonnet-4-5"], indirect=True)
def test_messages_go_to_anthropic_as_they_are(endpoint: Endpoint, through_litellm: Account):
    account = through_litellm
    endpoint.routes = {"/messages": MESSAGE}
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain",
                                               "data": "six"}}  # fmt: skip
    body = {
        "model": "m", "max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024},
        "messages": [{"role": "user", "content": [document, {"type": "text", "text": ASKED}]}],
    }  # fmt: skip
    headers = {"x-api-key": account.key.reveal()}
    found = HTTP.post(f"{account.url}/messages", headers=headers, timeout=60, json=body)
    assert found.json() == MESSAGE, found.text
    [ask] = endpoint.seen
    assert ask.path == "/v1/messages"
    assert ask.body == {**body, "model": "claude-sonnet-4-5", "stream": False}
    assert ask.headers["x-api-key"] == PROVIDER_KEY
    assert said(account) == [f"user: {ASKED}", "assistant: 42"]
    assert (account.llm.total_tokens, account.llm.cached_tokens) == (19, 4)
    found = HTTP.post(
        f"{account.url}/messages", headers=headers, timeout=60, json={**body, "stream": True}
    )
    deltas = [
        json.loads(line[6:]).get("delta")
        for line in found.text.splitlines()
        if line[:6] == "data: "
    ]
    assert [each["type"] for each in deltas if each and "type" in each] == [
        "thinking_delta", "signature_delta", "text_delta",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("through_litellm", ["deepinfra/x"], indirect=True)
def test_a_provider_without_an_api_is_named(endpoint: Endpoint, through_litellm: Account):
    headers = {"Authorization": f"Bearer {through_litellm.key.reveal()}"}
    found = HTTP.post(
        f"{through_litellm.url}/responses", headers=headers, timeout=60, json={"input": ASKED}
    )
    assert found.status_code == 400 and endpoint.requests == 0
    assert found.json()["error"]["message"] == (
        "deepinfra has no Responses API, which the agent's client asks for: have it use chat "
        "completions"
    )
    error = through_litellm.llm.last_error
    assert error is not None and error.fatal


def test_what_a_chat_completion_cannot_hold_of_a_message_is_refused(account: Account):
    headers = {"x-api-key": account.key.reveal()}
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [picture]}
    asked = [{"role": "user", "content": [{"type": "document", "source": {}}, result]}]
    body = {
        "max_tokens": 5,
        "messages": asked,
        "tools": [{"type": "bash_20250124", "name": "bash"}],
    }
    found = HTTP.post(f"{account.url}/messages", headers=headers, timeout=60, json=body)
    assert found.status_code == 400
    said = found.json()["error"]["message"]
    assert (
        "chat completions, which have no block of type 'document', image in a tool result, tool of "
        "type 'bash_20250124': leave that out, or evaluate a model of a provider that has the "
        "Messages API"
    ) in said
