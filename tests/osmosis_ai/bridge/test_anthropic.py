"""The bridge as clients of Anthropic's Messages API see it, over HTTP."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from osmosis_ai.bridge import Account
from tests.support.endpoints import Endpoint, completion, error_reply, tool_call

from .conftest import HTTP

ASKED: dict[str, Any] = {
    "model": "claude",
    "max_tokens": 100,
    "system": "Answer.",
    "messages": [{"role": "user", "content": "What is 6 x 7?"}],
}


def posted(account: Account, body: Any, *, path: str = "/messages") -> httpx.Response:
    return HTTP.post(account.url + path, json=body, headers={"x-api-key": account.key.reveal()})


def test_a_message_is_answered_by_the_evaluated_model(endpoint: Endpoint, account: Account):
    for path in ("/messages", "/v1/messages"):
        found = posted(account, ASKED, path=path).json()
        assert found["content"] == [{"type": "text", "text": "42"}]
        assert (found["type"], found["role"], found["model"]) == (
            "message",
            "assistant",
            "evaluated",
        )
        assert found["stop_reason"] == "end_turn"
        assert found["usage"] == {"input_tokens": 10, "output_tokens": 5}
    assert endpoint.seen[0].body == {
        "model": "evaluated",
        "max_tokens": 100,
        "messages": [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": "What is 6 x 7?"},
        ],
    }
    assert account.llm.total_tokens == 30


def test_tools_are_called_and_their_results_handed_back(endpoint: Endpoint, account: Account):
    endpoint.answers = completion(tool_call("add", '{"a": 1}'), finish_reason="tool_calls")
    tool = {"name": "add", "description": "adds", "input_schema": {"type": "object"}}
    asked = {**ASKED, "tools": [tool], "tool_choice": {"type": "any"}, "stop_sequences": ["END"]}
    found = posted(account, asked).json()
    [use] = found["content"]
    assert use == {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}}
    assert found["stop_reason"] == "tool_use"
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "3"}
    turn = [
        *ASKED["messages"],
        {"role": "assistant", "content": [{"type": "text", "text": "let me see"}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "and now?"}]},
    ]
    posted(account, {**asked, "messages": turn})
    first, second = (ask.body for ask in endpoint.seen)
    assert first["tool_choice"] == "required" and first["stop"] == ["END"]
    assert first["tools"] == [
        {
            "type": "function",
            "function": {"name": "add", "description": "adds", "parameters": {"type": "object"}},
        }
    ]
    assistant, tool_message, user = second["messages"][2:]
    assert assistant["content"] == "let me see"
    assert assistant["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert tool_message == {"role": "tool", "tool_call_id": "call_1", "content": "3"}
    assert user == {"role": "user", "content": "and now?"}


def test_pictures_are_handed_on_and_arguments_that_are_no_object_are_still_one(
    endpoint: Endpoint, account: Account
):
    endpoint.answers = completion(tool_call("add", "{broken"), finish_reason="tool_calls")
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "what is it?"}]
    asked = {**ASKED, "messages": [{"role": "user", "content": content}]}
    [use] = posted(account, asked).json()["content"]
    assert use["input"] == {"arguments": "{broken"}
    assert endpoint.seen[0].messages[-1]["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "what is it?"},
    ]


def test_a_stream_has_every_event_of_its_kind(endpoint: Endpoint, account: Account):
    both = {**tool_call("add", '{"a": 1}'), "content": "let me see"}
    endpoint.answers = completion(both, finish_reason="tool_calls")
    reply = posted(account, {**ASKED, "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data:")]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert [event["type"] for event in events] == [
        "message_start",
        *block,
        *block,
        "message_delta",
        "message_stop",
    ]
    assert events[2]["delta"] == {"type": "text_delta", "text": "let me see"}
    assert events[5]["delta"] == {"type": "input_json_delta", "partial_json": '{"a": 1}'}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "'messages' must be a non-empty array"),
        ({"messages": ["hi"]}, "with the role user or assistant"),
        ({"messages": [{"role": "system", "content": "x"}]}, "with the role user or assistant"),
        ({"messages": [{"role": "user", "content": 7}]}, "a string or an array of blocks"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": 5}]}]},
            "the 'source' of an image must be an object",
        ),
        ({**ASKED, "tools": 5}, "'tools' must be an array of objects"),
        ({**ASKED, "tools": [{}]}, "each of 'tools' must be an object with a name"),
        ({**ASKED, "tool_choice": {"type": "x"}}, "'tool_choice' must be of type"),
    ],
)
def test_a_request_that_is_none_is_refused_with_the_reason(account: Account, body: Any, said: str):
    reply = posted(account, body)
    assert reply.status_code == 400
    assert reply.json()["type"] == "error"
    assert reply.json()["error"]["type"] == "invalid_request_error"
    assert said in reply.json()["error"]["message"]


def test_refusals_have_the_clients_own_shape(endpoint: Endpoint, account: Account):
    other = HTTP.post(f"{account.url}/messages", json=ASKED, headers={"x-api-key": "guess"})
    assert (other.status_code, other.json()["error"]["type"]) == (401, "authentication_error")
    endpoint.answers = lambda ask: [error_reply(429, "slow down")]
    refused = posted(account, ASKED)
    assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error")
    assert refused.headers["x-should-retry"] == "false"
    assert account.llm.last_error is not None
