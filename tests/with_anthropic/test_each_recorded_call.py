"""Each kind of call of Anthropic's clients, recorded: it does what the client alone does."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from tests.support.client_calls import (
    LATE,
    Row,
    compare,
    done,
    each,
    entered,
    events,
    models,
    zipped,
)
from tests.support.endpoints import reply

ASKED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "6 x 7?"}],
}
USED = {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}


def message(*blocks: dict[str, Any]) -> dict[str, Any]:
    content = list(blocks) or [{"type": "text", "text": "42"}]
    return {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip


def said(*texts: str, block: dict[str, Any] | None = None) -> list[Any]:
    first = block or {"type": "text", "text": ""}
    kind, name = ("input_json_delta", "partial_json") if block else ("text_delta", "text")
    opened = {**message(), "content": [], "stop_reason": None}
    opened["usage"] = {"input_tokens": 10, "output_tokens": 1}
    return [
        {"type": "message_start", "message": opened},
        {"type": "content_block_start", "index": 0, "content_block": first},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": kind, name: text}}
          for text in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]  # fmt: skip


def error(status: int, kind: str, said: str = "boom", **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"type": "error", "error": {"type": kind, "message": said}}
    return reply(status, body, headers=named)


async def create(client: Any) -> Any:
    return await done(client.messages.create(**ASKED))


async def stream(client: Any) -> Any:
    opened = await done(client.messages.create(**ASKED, stream=True))
    return [one async for one in each(opened)]


async def stream_left(client: Any) -> Any:
    opened = await done(client.messages.create(**ASKED, stream=True))
    found = []
    async for one in each(opened):
        found.append(one)
        if one.type == "content_block_delta":
            break
    await done(opened.close())
    return found


async def helper(client: Any) -> Any:
    async with entered(client.messages.stream(**ASKED)) as opened:
        texts = [text async for text in each(opened.text_stream)]
        return [texts, await done(opened.get_final_message())]


async def helper_left(client: Any) -> Any:
    async with entered(client.messages.stream(**ASKED)):
        return "left"


async def streams_in_turn(client: Any) -> Any:
    return [await helper(client), await stream(client), await create(client)]


async def raw(client: Any) -> Any:
    found = await done(client.messages.with_raw_response.create(**ASKED))
    parsed = await done(found.parse())
    return [found.status_code, found.headers.get("content-type"), parsed]


async def raw_stream(client: Any) -> Any:
    found = await done(client.messages.with_raw_response.create(**ASKED, stream=True))
    return [one async for one in each(await done(found.parse()))]


async def streamed_whole(client: Any) -> Any:
    async with entered(client.messages.with_streaming_response.create(**ASKED)) as found:
        return json.loads(await done(found.read()))


async def count(client: Any) -> Any:
    asked = {name: ASKED[name] for name in ("model", "messages")}
    return await done(client.messages.count_tokens(**asked))


async def with_options(client: Any) -> Any:
    return await create(client.with_options(timeout=20, max_retries=1))


async def copied(client: Any) -> Any:
    return [await create(client.copy()), await create(client.copy(default_headers={"x-a": "1"}))]


async def managed(client: Any) -> Any:
    async with entered(client) as same:
        found = await create(same)
    return [found, client.is_closed()]


async def system_blocks(client: Any) -> Any:
    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    image = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    history = [
        {"role": "user", "content": [{"type": "image", "source": image}]},
        {"role": "assistant", "content": [USED]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "1"}]},
    ]
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    asked = {**ASKED, "system": blocks, "tools": tools, "messages": history}
    return await done(client.messages.create(**asked))


async def odd_request(client: Any) -> Any:
    """A request that our reading does not know: the endpoint may."""
    return await done(client.messages.create(**{**ASKED, "messages": [{"role": "system"}]}))


ANSWER = reply(200, message())
MODEL = {"id": "m", "type": "model", "display_name": "M", "created_at": "2025-01-01T00:00:00Z"}
LISTED = {"data": [MODEL], "has_more": False, "first_id": "m", "last_id": "m"}
BUSY = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
AGAIN = error(529, "overloaded_error", "busy", retry_after_ms="1")


def streamed(*found: Any, **more: Any) -> list[Any]:
    return events(*found, named=True, **more)


ROWS = [
    Row("create", create, ANSWER, said="42"),
    Row("create, compressed", create, zipped(message()), said="42"),
    Row("create, a call of a tool", create, reply(200, message(USED)), said="look"),
    Row("create, with blocks of each kind", system_blocks, ANSWER, said="42"),
    Row("create, of a role that is not known", odd_request, ANSWER, said="42"),
    Row("stream", stream, streamed(*said("4", "2")), said="42"),
    Row("stream, its end comes later", stream, streamed(*said("4", "2"), then=LATE), said="42"),
    Row("stream, cut behind its end", stream, streamed(*said("42"), then=["close"]), said="42"),
    Row("stream, compressed", stream, streamed(*said("42"), coded=True, then=LATE), said="42"),
    Row("stream, separators of lines in a text", stream, streamed(*said("4\u2028\x852")),
        said="4\u2028\x852"),
    Row("stream, left after its first text", stream_left,
        streamed(*said("4", "2")[:4], then=["hang"]), tokens=(10, 1), said="4"),
    Row("stream()", helper, streamed(*said("4", "2"), then=LATE), said="42"),
    Row("stream(), a call of a tool", helper,
        streamed(*said('{"a"', ": 1}", block={**USED, "input": {}}), then=LATE), said="look"),
    Row("stream(), left at once", helper_left, streamed(*said("42"), then=LATE), tokens=None),
    Row("streams in turn", streams_in_turn,
        (streamed(*said("4", "2"), then=LATE), streamed(*said("42"), then=LATE), ANSWER),
        tokens=(30, 15), calls=3, said="42"),
    Row("with_raw_response", raw, ANSWER, said="42"),
    Row("with_raw_response, stream", raw_stream, streamed(*said("42"), then=LATE), said="42"),
    Row("with_streaming_response", streamed_whole, ANSWER, said="42"),
    Row("count_tokens", count, reply(200, {"input_tokens": 3}), tokens=None),
    Row("models", models, reply(200, LISTED), tokens=None),
    Row("with_options", with_options, (AGAIN, ANSWER), said="42"),
    Row("copy", copied, ANSWER, tokens=(20, 10), calls=2),
    Row("as a context manager", managed, ANSWER),
    Row("headers of the client", create, ANSWER, options={"default_headers": {"x-a": "1"}}),
    Row("400, too long", create, error(400, "invalid_request_error", "prompt is too long"),
        tokens=None, failure="bad_request"),
    Row("401", create, error(401, "authentication_error"), tokens=None, failure="auth"),
    Row("404", create, error(404, "not_found_error", "model: m"), tokens=None,
        failure="model_not_found"),
    Row("429", stream, error(429, "rate_limit_error"), tokens=None, failure="rate_limited"),
    Row("529, tried again", create, AGAIN, tokens=None, failure="overloaded",
        options={"max_retries": 1}),
    Row("529, with_streaming_response", streamed_whole, AGAIN, tokens=None, failure="overloaded"),
    Row("a reset connection", create, ["reset"], tokens=None, failure="connection"),
    Row("no reply in time", create, ["hang"], tokens=None, failure="timeout",
        options={"timeout": 0.2}),
    Row("an error within a stream", stream, streamed(*said("4", "2")[:4], BUSY), tokens=None,
        failure="overloaded"),
    Row("a stream that is cut", stream, streamed(*said("4", "2")[:4], then=["close"]), tokens=None,
        failure="connection"),
    Row("a stream that stalls", stream, streamed(*said("4", "2")[:4], then=["hang"]), tokens=None,
        failure="timeout", options={"timeout": 0.2}),
]  # fmt: skip


@pytest.mark.parametrize("kind", [anthropic.Anthropic, anthropic.AsyncAnthropic])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_recorded_client_does_what_the_client_alone_does(row: Row, kind: Any):
    compare(row, kind, at="root")
