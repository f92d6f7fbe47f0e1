"""Streams over the bridge: each part as it comes, and what becomes of those that break off."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from osmosis_ai.bridge import Account
from tests.support.endpoints import Ask, Endpoint, completion, error_reply, reply, tool_call

from .conftest import HTTP

if TYPE_CHECKING:
    import openai

USER = {"role": "user", "content": "What is 6 x 7?"}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
END = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def sent(event: Any) -> bytes:
    data = b"data: " + json.dumps({"id": "c-1", "model": "m-1", **event}).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def part(text: str, **choice: Any) -> bytes:
    return sent({"choices": [{"index": 0, "delta": {"content": text}, **choice}]})


def whole(*texts: str) -> list[Any]:
    parts = [part(text) for text in texts]
    last = part("", finish_reason="stop")
    return [HEAD, *parts, last, sent({"choices": [], "usage": USAGE}), END]


@pytest.fixture
def client(account: Account) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=account.url, api_key=account.key.reveal()) as client:
        yield client


def asked(account: Account, **more: Any) -> Any:
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    body = {"messages": [USER], "stream": True, **more}
    return HTTP.post(f"{account.url}/chat/completions", headers=headers, json=body)


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_a_part_is_there_before_the_next_one_is_sent(
    endpoint: Endpoint, account: Account, client: openai.OpenAI
):
    has_read = threading.Event()

    def slowly(ask: Ask) -> Iterator[Any]:
        yield HEAD + part("4")
        while not has_read.is_set():
            yield 0.005
        yield from whole("2")[1:]

    endpoint.answers = slowly
    found = client.chat.completions.create(
        model="x", messages=[USER], stream=True, stream_options={"include_usage": True}
    )
    first = next(found)
    assert (first.choices[0].delta.content, first.model) == ("4", "evaluated")
    [call] = account.llm.under_way
    assert call.is_streamed and call.is_arriving and account.llm.longest_wait() is None
    has_read.set()
    *_, last, usage = found
    assert last.choices[0].finish_reason == "stop" and last.usage is None
    assert usage.choices == [] and usage.usage is not None and usage.usage.total_tokens == 12
    assert account.llm.total_tokens == 12
    assert account.trajectory.all() == [USER, {"role": "assistant", "content": "42"}]
    [ask] = endpoint.seen
    assert (ask.body["stream"], ask.body["stream_options"]) == (True, {"include_usage": True})


def test_usage_that_was_not_asked_for_is_counted_and_not_sent(endpoint: Endpoint, account: Account):
    endpoint.answers = whole("42")
    *chunks, done = events(asked(account).text)
    assert [len(chunk["choices"]) for chunk in chunks] == [1, 1] and done == "[DONE]"
    assert not any("usage" in chunk for chunk in chunks)
    assert account.llm.total_tokens == 12


def test_calls_and_several_answers_are_handed_on_and_joined(endpoint: Endpoint, account: Account):
    begun = {"index": 0, "id": "a", "function": {"name": "add", "arguments": '{"a":'}}
    rest = {"index": 0, "function": {"arguments": " 1}"}}
    choices = [
        {"index": 0, "delta": {"tool_calls": [begun]}},
        {"index": 1, "delta": {"content": "no"}},
        {"index": 0, "delta": {"tool_calls": [rest]}, "finish_reason": "tool_calls"},
    ]
    endpoint.answers = [HEAD, *(sent({"choices": [each]}) for each in choices), END]
    found = events(asked(account, n=2).text)
    assert [each["choices"][0] for each in found[:-1]] == choices
    called, said = (m for m in account.trajectory.all() if m["role"] == "assistant")
    assert called["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert said["content"] == "no" and account.llm.total_tokens is None


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (["reset"], "connection"),
        ([b"0\r\n\r\n"], "connection"),
        ([sent({"error": {"code": 429, "message": "slow down"}}), END], "rate_limited"),
        ([part("", finish_reason="error"), END], "overloaded"),
        ([b"8\r\ndata: {\n\r\n", END], "protocol"),
    ],
)
def test_a_stream_that_breaks_off_is_raised_and_not_asked_for_again(
    endpoint: Endpoint, account: Account, client: openai.OpenAI, end: list[Any], kind: str
):
    import openai

    endpoint.answers = [HEAD, part("4"), *end]
    with pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(model="x", messages=[USER], stream=True))
    error = account.llm.last_error
    assert error is not None and error.kind == kind and str(error) in str(caught.value)
    assert (endpoint.requests, account.llm.num_llm_calls) == (1, 0)


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        ([HEAD, sent({"error": {"code": 429, "message": "slow down"}}), END], 429),
        ([HEAD, b"0\r\n\r\n"], 502),
        ([error_reply(400, "too long")], 400),
    ],
)
def test_a_stream_that_has_not_begun_fails_with_a_status(
    endpoint: Endpoint, account: Account, steps: list[Any], status: int
):
    endpoint.answers = steps
    assert asked(account).status_code == status


def test_an_endpoint_that_refuses_streams_is_asked_for_whole_answers(
    endpoint: Endpoint, account: Account
):
    def strict(ask: Ask) -> list[bytes]:
        if "stream_options" in ask.body:
            return [error_reply(400, "Unrecognized request argument: stream_options")]
        return [reply(200, completion(tool_call("add", "{}"), finish_reason="tool_calls"))]

    endpoint.answers = strict
    for requests in (2, 3):
        chunk, _done = events(asked(account).text)
        assert chunk["choices"][0]["delta"]["tool_calls"][0]["id"] == "call_1"
        assert endpoint.requests == requests
    assert (account.llm.num_llm_calls, account.llm.retries) == (2, 1)


def test_a_reader_that_leaves_ends_the_stream_and_what_it_had_is_of_the_run(
    endpoint: Endpoint, account: Account
):
    endpoint.answers = [HEAD, part("4"), "hang"]
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    body = {"messages": [USER], "stream": True}
    with HTTP.stream(
        "POST", f"{account.url}/chat/completions", headers=headers, json=body
    ) as found:
        assert "4" in next(found.iter_text())
    assert endpoint.wait_until(lambda seen: seen.hung_up == 1)
    HTTP.get(f"{account.url}/models", headers=headers)  # the bridge is done with it before that
    assert account.trajectory.all()[-1] == {"role": "assistant", "content": "4"}
    assert (account.llm.num_llm_calls, account.llm.total_tokens) == (1, None)
