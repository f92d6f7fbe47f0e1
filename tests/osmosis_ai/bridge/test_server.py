"""The bridge, over HTTP as agents use it: with OpenAI's client, or with bare requests."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest

from osmosis_ai.bridge import Account, Bridge
from osmosis_ai.bridge.session import Trajectory
from osmosis_ai.models.base import ChatModel
from tests.support.endpoints import Ask, Endpoint, completion, error_reply, tool_call

from .conftest import HTTP, PROVIDER_KEY, bridge_to

if TYPE_CHECKING:
    import openai

USER = {"role": "user", "content": "What is 6 x 7?"}


@pytest.fixture
def client(account: Account) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=account.url, api_key=account.key.reveal()) as client:
        yield client


def posted(account: Account, body: Any, *, path: str = "/chat/completions") -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HTTP.post(
        account.url + path,
        content=content,
        headers={"Authorization": f"Bearer {account.key.reveal()}"},
    )


@pytest.mark.slow
def test_an_openai_client_is_answered_by_the_evaluated_model(
    endpoint: Endpoint, account: Account, client: openai.OpenAI
):
    found = client.chat.completions.create(
        model="whatever-the-agent-says", messages=[USER], temperature=0.5
    )
    assert found.choices[0].message.content == "42"
    assert found.choices[0].finish_reason == "stop"
    assert found.model == "evaluated"
    assert found.usage is not None and found.usage.total_tokens == 15
    [ask] = endpoint.seen
    assert ask.body == {"model": "evaluated", "messages": [USER], "temperature": 0.5}
    assert ask.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert (account.llm.num_llm_calls, account.llm.total_tokens) == (1, 15)


def test_a_request_may_go_to_the_bare_url_and_have_its_key_in_another_header(
    account: Account,
):
    for path in ("", "/", "/chat/completions", "/chat/completions/"):
        reply = posted(account, {"messages": [USER]}, path=path)
        assert reply.json()["choices"][0]["message"] == {"role": "assistant", "content": "42"}
    assert account.llm.num_llm_calls == 4
    for name in ("x-api-key", "api-key"):  # the headers of other clients
        headers = {name: account.key.reveal()}
        assert HTTP.get(f"{account.url}/models", headers=headers).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_cached_and_reasoning_tokens_are_handed_on_and_unknown_ones_are_unknown(
    endpoint: Endpoint, account: Account, stream: bool
):
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    endpoint.answers = completion("42", usage=usage)
    body = {"messages": [USER], "stream": stream, "stream_options": {"include_usage": True}}
    reply = posted(account, body)
    if stream:
        *_, last, _done = [line[6:] for line in reply.text.splitlines() if line]
        assert json.loads(last)["usage"] == usage
    else:
        assert reply.json()["usage"] == usage
    known = account.llm.total_tokens
    endpoint.answers = completion("42", usage=None)
    assert "usage" not in posted(account, {"messages": [USER]}).json()
    assert (known, account.llm.total_tokens) == (15, None)  # unknown, where the reply does not say


def test_a_stream_is_the_whole_answer_in_one_chunk(client: openai.OpenAI):
    async def blocking() -> list[Any]:
        stream = client.chat.completions.create(
            model="m", messages=[USER], stream=True, stream_options={"include_usage": True}
        )
        return list(stream)

    answer, usage = asyncio.run(blocking())  # the agent blocks its own event loop
    assert answer.choices[0].delta.content == "42"
    assert answer.choices[0].finish_reason == "stop"
    assert usage.choices == [] and usage.usage is not None and usage.usage.total_tokens == 15
    assert [model.id for model in client.models.list()] == ["evaluated"]


def test_tool_calls_are_streamed_with_their_places(endpoint: Endpoint, client: openai.OpenAI):
    endpoint.answers = completion(tool_call("add", '{"a": 1}'), finish_reason="tool_calls")
    [chunk] = client.chat.completions.create(model="m", messages=[USER], stream=True)
    [call] = chunk.choices[0].delta.tool_calls or []
    assert call.index == 0 and call.id == "call_1"
    assert call.function is not None and call.function.arguments == '{"a": 1}'
    assert chunk.choices[0].finish_reason == "tool_calls"


def test_a_model_that_answers_whole_is_streamed_in_one_chunk(endpoint: Endpoint, account: Account):
    reply = posted(account, {"messages": [USER], "stream": True, "stream_options": None})
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in reply.text.split("\n\n") if line]
    assert [line[:6] for line in lines] == ["data: "] * 2
    assert lines[-1] == "data: [DONE]"
    assert set(endpoint.seen[0].body) == {"model", "messages", "stream", "stream_options"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer sk-osmosis-guess"},
        {"Authorization": f"Bearer {PROVIDER_KEY}"},
        {"Authorization": "Basic abc"},
        {"x-api-key": "guess"},
    ],
)
def test_another_key_is_refused_before_anything_else(
    endpoint: Endpoint, bridge: Bridge, account: Account, headers: dict[str, str]
):
    for method, path in (("POST", "/chat/completions"), ("GET", "/models"), ("GET", "/nowhere")):
        reply = HTTP.request(method, bridge.url + path, headers=headers, content=b"{")
        assert reply.status_code == 401
        assert reply.json()["error"]["code"] == "invalid_api_key"
    assert endpoint.requests == 0


@pytest.mark.parametrize("body", ["Content-Length: 60000000", "Transfer-Encoding: chunked"])
def test_a_key_is_checked_before_a_body_is_read(bridge: Bridge, body: str):
    request = "POST /v1/chat/completions HTTP/1.1\r\nHost: bridge"
    head = f"{request}\r\nAuthorization: Bearer guess\r\n{body}\r\n\r\n"
    parts = urlsplit(bridge.url)
    with socket.create_connection((parts.hostname, parts.port or 0)) as connection:
        connection.sendall(head.encode("ascii"))
        answer = connection.recv(65536)
        connection.sendall(b"x" * 1024 * 1024)  # a client that sends on finds the answer after that
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"invalid_api_key" in answer


def test_a_key_ends_with_its_rollout(bridge: Bridge, endpoint: Endpoint):
    ended, going_on = bridge.open_account(), bridge.open_account()
    assert posted(ended, {"messages": [USER]}).status_code == 200
    ended.close()
    ended.close()
    assert posted(ended, {"messages": [USER]}).status_code == 401
    assert posted(going_on, {"messages": [USER]}).status_code == 200
    assert endpoint.requests == 2
    assert ended.llm.num_llm_calls == 1


def test_it_listens_on_loopback_alone_and_shows_no_key(bridge: Bridge, account: Account):
    assert urlsplit(bridge.url).hostname == "127.0.0.1"
    address = bridge._server._socket.getsockname()
    assert address[0] == "127.0.0.1"
    shown = f"{bridge!r} {account!r} {vars(account)}"
    assert account.key.reveal() not in shown
    assert PROVIDER_KEY not in shown


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "the body is not JSON"),
        (b"[]", "the body must be a JSON object"),
        ({}, "'messages' must be a non-empty array"),
        ({"messages": []}, "'messages' must be a non-empty array"),
        ({"messages": ["hi"]}, "'messages' must be an array of objects"),
        ({"messages": [USER], "_other": 1}, "'_other'"),
        (b'{"messages": [{"role": "user", "content": NaN}]}', "is not JSON"),
        ({"messages": [USER], "tools": 5}, "'tools' must be an array of objects"),
        ({"messages": [USER], "self": 1}, "'self'"),
    ],
)
def test_a_request_that_is_none_is_refused_with_the_reason(account: Account, body: Any, said: str):
    reply = posted(account, body)
    assert reply.status_code == 400
    assert said in reply.json()["error"]["message"]
    assert account.llm.num_llm_calls == 0


def test_a_client_that_waits_before_a_long_body_is_told_to_go_on(account: Account):
    body = json.dumps({"messages": [USER]}).encode()
    head = f"POST /v1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {account.key.reveal()}"
    parts = urlsplit(account.url)
    with socket.create_connection((str(parts.hostname), parts.port or 0)) as connection:
        connection.sendall(
            f"{head}\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_other_routes_and_methods_are_distinguished(account: Account):
    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    missing = HTTP.post(f"{account.url}/images", headers=headers, json={})
    assert missing.status_code == 404
    assert "and GET .../models alone" in missing.json()["error"]["message"]
    assert HTTP.get(f"{account.url}/chat/completions", headers=headers).status_code == 405


def test_the_providers_refusal_reaches_the_client_once(
    endpoint: Endpoint, account: Account, client: openai.OpenAI
):
    endpoint.answers = lambda ask: [error_reply(503, f"busy; your key is {PROVIDER_KEY}")]
    from openai import InternalServerError

    with pytest.raises(InternalServerError) as caught:
        client.chat.completions.create(model="m", messages=[USER])
    assert caught.value.status_code == 503
    assert "busy" in str(caught.value)
    assert PROVIDER_KEY not in str(caught.value)
    assert endpoint.requests == 1
    assert account.llm.last_error is not None and account.llm.last_error.kind == "overloaded"


@pytest.mark.parametrize("path", ["/chat/completions", "/messages"])
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"error": {"code": 502, "message": "upstream"}, "finish_reason": "error"}, 502),
        ({"finish_reason": "error"}, 502),
        ({"error": {"code": 429, "message": "slow down"}}, 429),
        ({"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}}, 400),
    ],
)
def test_a_failure_inside_a_200_reaches_the_client_as_a_status(
    endpoint: Endpoint, account: Account, fields: Any, status: int, path: str
):
    broken = completion("partial 4")
    broken["choices"][0].update(fields)
    endpoint.answers = broken
    reply = posted(account, {"messages": [USER], "max_tokens": 5}, path=path)
    assert reply.status_code == status
    assert account.llm.last_error is not None and account.llm.num_llm_calls == 0


def test_an_endpoint_that_is_gone_is_a_bad_gateway():
    with Endpoint() as endpoint:
        bridge = bridge_to(endpoint)
    reply = posted(bridge.open_account(), {"messages": [USER]})
    bridge.close()
    assert reply.status_code == 502
    assert reply.json()["error"]["code"] == "unreachable"
    assert reply.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("gone", ["the rollout", "the client"])
def test_a_rollout_that_ends_and_a_client_that_hangs_up_take_their_call_with_them(
    endpoint: Endpoint, account: Account, gone: str
):
    endpoint.answers = lambda ask: ["hang"]
    url = urlsplit(account.url)
    body = json.dumps({"messages": [USER]}).encode()
    head = f"POST /v1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {account.key.reveal()}"
    with socket.create_connection((str(url.hostname), url.port or 0)) as connection:
        connection.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        assert endpoint.wait_until(lambda found: found.requests == 1)
        if gone == "the rollout":
            account.close()
            with suppress(ConnectionError):
                assert connection.recv(1) == b""
    assert endpoint.wait_until(lambda found: found.hung_up == 1)


def test_a_body_may_come_in_chunks(account: Account):
    def pieces() -> Iterator[bytes]:
        body = json.dumps({"messages": [USER]}).encode()
        yield body[:5]
        yield body[5:]

    headers = {"Authorization": f"Bearer {account.key.reveal()}"}
    for _ in range(2):
        reply = HTTP.post(f"{account.url}/chat/completions", content=pieces(), headers=headers)
        assert reply.status_code == 200


def test_the_accounts_params_go_with_every_call_that_says_nothing_else(
    endpoint: Endpoint, bridge: Bridge
):
    account = bridge.open_account(params={"temperature": 0.2, "seed": 7})
    posted(account, {"messages": [USER]})
    posted(account, {"messages": [USER], "temperature": 1.0, "seed": None})
    sent = [(ask.body.get("temperature"), ask.body.get("seed")) for ask in endpoint.seen]
    assert sent == [(0.2, 7), (1.0, None)]


@pytest.mark.slow
def test_every_account_counts_its_own_calls_and_the_sums_are_the_endpoints():
    def used(ask: Ask) -> dict[str, Any]:
        number = int(ask.row)
        usage = {"prompt_tokens": number, "completion_tokens": 1, "total_tokens": number + 1}
        return completion(str(number), usage=usage)

    async def rollout(account: Account, number: int, client: aiohttp.ClientSession) -> None:
        headers = {"Authorization": f"Bearer {account.key.reveal()}"}
        for turn in range(3):
            body = {"messages": [{"role": "user", "content": str(number + turn)}]}
            async with client.post(account.url, json=body, headers=headers) as reply:
                found = await reply.json()
            assert found["choices"][0]["message"]["content"] == str(number + turn)

    async def all_of(accounts: list[Account]) -> None:
        async with aiohttp.ClientSession() as client:
            await asyncio.gather(
                *(rollout(account, number, client) for number, account in enumerate(accounts))
            )

    with Endpoint(used) as endpoint:
        bridge = bridge_to(endpoint)
        accounts = [bridge.open_account(record=True) for _ in range(100)]
        asyncio.run(all_of(accounts))
        bridge.close()
    for number, account in enumerate(accounts):
        assert [call["prompt_tokens"] for call in account.llm.calls] == [
            number,
            number + 1,
            number + 2,
        ]
    assert sum(account.llm.num_llm_calls for account in accounts) == endpoint.requests == 300
    counted = sum(int(ask.row) + 1 for ask in endpoint.seen)
    assert sum(account.llm.total_tokens or 0 for account in accounts) == counted


def test_closing_ends_everything_and_twice_is_once(endpoint: Endpoint):
    bridge = bridge_to(endpoint)
    account = bridge.open_account()
    posted(account, {"messages": [USER]})
    assert endpoint.wait_until(lambda found: found.open_connections == 1)
    bridge.close()
    bridge.close()
    account.close()
    assert endpoint.wait_until(lambda found: found.open_connections == 0)
    with pytest.raises(httpx.ConnectError):
        posted(account, {"messages": [USER]})


def test_a_model_that_cannot_be_opened_is_the_callers_error():
    def broken() -> ChatModel:
        raise ValueError("no such model")

    with pytest.raises(ValueError, match="no such model"):
        Bridge(broken)


def said(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_a_conversation_that_goes_on_is_one_and_others_are_distinguished():
    trajectory = Trajectory()
    assert not trajectory and trajectory.last() == []
    first = [said("user", "a")]
    trajectory.note(first, said("assistant", "b"))
    helper = [said("user", "for a helper")]
    trajectory.note(helper, said("assistant", "help"))
    going_on = [*first, said("assistant", "b"), said("user", "c")]
    trajectory.note(going_on, said("assistant", "d"))
    assert trajectory.last() == [*going_on, said("assistant", "d")]
    assert trajectory.all() == [*helper, said("assistant", "help"), *trajectory.last()]


def test_asking_the_same_again_keeps_both_answers():
    trajectory = Trajectory()
    for answer in ("b", "c"):
        trajectory.note([said("user", "a")], said("assistant", answer))
    assert [message["content"] for message in trajectory.all()] == ["a", "b", "a", "c"]
    assert trajectory.last()[-1]["content"] == "c"
