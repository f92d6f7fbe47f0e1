"""Each kind of call of OpenAI's clients, recorded: it does what it does with the client alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import BaseModel

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
from tests.support.endpoints import completion, error_reply, reply, tool_call

ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "6 x 7?"}]}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Product(BaseModel):
    product: int


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **more: Any) -> Any:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": choices, **more}


def said(*texts: str) -> list[Any]:
    pieces = [chunk({"role": "assistant", "content": text}) for text in texts]
    return [*pieces, chunk({}, "stop"), chunk(usage=USAGE), "[DONE]"]


def called() -> list[Any]:
    function = {"name": "look", "arguments": '{"a"'}
    first = {"index": 0, "id": "c1", "type": "function", "function": function}
    second = {"index": 0, "function": {"arguments": ": 1}"}}
    return [
        chunk({"role": "assistant", "tool_calls": [first]}),
        chunk({"tool_calls": [second]}),
        chunk({}, "tool_calls"),
        chunk(usage=USAGE),
        "[DONE]",
    ]


def response(text: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m1", "role": "assistant", "status": status}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"id": "r1", "object": "response", "created_at": 1, "model": "m", "status": status,
            "output": [{**message, "content": content}], "usage": usage, "tools": [],
            "parallel_tool_calls": True, "tool_choice": "auto", **more}  # fmt: skip


def response_events(text: str, end: str = "completed", **more: Any) -> list[Any]:
    place = {"item_id": "m1", "output_index": 0, "content_index": 0}
    opened = {"type": "message", "id": "m1", "role": "assistant", "status": "in_progress",
              "content": []}  # fmt: skip
    part = {"type": "output_text", "text": "", "annotations": []}
    found: list[Any] = [
        {"type": "response.created", "response": {**response("", "in_progress"), "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        {"type": "response.content_part.added", **place, "part": part},
        {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
        {"type": f"response.{end}", "response": response(text, end, **more)},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(found)]


async def create(client: Any) -> Any:
    return await done(client.chat.completions.create(**ASKED))


async def stream(client: Any) -> Any:
    return [one async for one in each(await done(
        client.chat.completions.create(**ASKED, stream=True)))]  # fmt: skip


async def stream_left(client: Any) -> Any:
    opened = await done(client.chat.completions.create(**ASKED, stream=True))
    async with entered(opened):
        async for one in each(opened):
            return one


async def stream_closed_unread(client: Any) -> Any:
    opened = await done(client.chat.completions.create(**ASKED, stream=True))
    await done(opened.close())
    return "closed"


async def streams_in_turn(client: Any) -> Any:
    return [await stream(client), await stream(client), await create(client)]


async def helper(client: Any) -> Any:
    async with entered(client.chat.completions.stream(**ASKED)) as opened:
        found = [one.type async for one in each(opened)]
        return [found, await done(opened.get_final_completion())]


async def helper_until_done(client: Any) -> Any:
    async with entered(client.chat.completions.stream(**ASKED)) as opened:
        await done(opened.until_done())
        return await done(opened.get_final_completion())


async def parse(client: Any) -> Any:
    return await done(client.chat.completions.parse(**ASKED, response_format=Product))


async def raw(client: Any) -> Any:
    found = await done(client.chat.completions.with_raw_response.create(**ASKED))
    parsed = await done(found.parse())
    head = [found.status_code, found.headers.get("content-type"), found.http_version]
    return [*head, found.text, found.url.path, found.is_closed, bool(found.elapsed), parsed.id]


async def raw_stream(client: Any) -> Any:
    found = await done(client.chat.completions.with_raw_response.create(**ASKED, stream=True))
    return [one async for one in each(await done(found.parse()))]


async def streamed_whole(client: Any) -> Any:
    manager = client.chat.completions.with_streaming_response.create(**ASKED)
    async with entered(manager) as found:
        return [found.status_code, plain_text(await done(found.read()))]


async def streamed_parsed(client: Any) -> Any:
    manager = client.chat.completions.with_streaming_response.create(**ASKED)
    async with entered(manager) as found:
        return await done(found.parse())


async def streamed_lines(client: Any) -> Any:
    manager = client.chat.completions.with_streaming_response.create(**ASKED, stream=True)
    async with entered(manager) as found:
        return [line async for line in each(found.iter_lines())]


async def streamed_unread(client: Any) -> Any:
    manager = client.chat.completions.with_streaming_response.create(**ASKED)
    async with entered(manager) as found:
        return found.status_code


async def respond(client: Any) -> Any:
    return await done(client.responses.create(model="m", input="6 x 7?"))


async def respond_parsed(client: Any) -> Any:
    found = await done(client.responses.parse(model="m", input="6 x 7?", text_format=Product))
    return found.output_parsed


async def respond_stream(client: Any) -> Any:
    opened = await done(client.responses.create(model="m", input="6 x 7?", stream=True))
    return [one async for one in each(opened)]


async def respond_helper(client: Any) -> Any:
    async with entered(client.responses.stream(model="m", input="6 x 7?")) as opened:
        found = [one.type async for one in each(opened)]
        return [found, await done(opened.get_final_response())]


async def embed(client: Any) -> Any:
    return await done(client.embeddings.create(model="m", input="a", encoding_format="float"))


async def with_options(client: Any) -> Any:
    return await create(client.with_options(timeout=20, max_retries=1))


async def copied(client: Any) -> Any:
    return [client.copy(default_headers={"x-a": "1"}).api_key, await create(client.copy())]


async def managed(client: Any) -> Any:
    async with entered(client) as same:
        found = await create(same)
    return [found, client.is_closed()]


async def after_close(client: Any) -> Any:
    await done(client.close())
    return await create(client)


async def two_at_once(client: Any) -> Any:
    first = await done(client.chat.completions.create(**ASKED, stream=True))
    between = await create(client)
    return [between, [one async for one in each(first)]]


def plain_text(body: bytes) -> str:
    return body.decode()


def own_http(kind: Any) -> Any:
    """An HTTP client with headers, parameters, cookies and hooks of its own."""
    http = sys.modules["httpx2" if "httpx2" in sys.modules else "httpx"]
    is_async = kind.__name__.startswith("Async")

    def read(found: Any) -> None:
        found.read()
        found.headers["x-seen"] = "1"

    async def aread(found: Any) -> None:
        await found.aread()
        found.headers["x-seen"] = "1"

    made = http.AsyncClient if is_async else http.Client
    return made(
        headers={"x-proxy": "p"},
        params={"tenant": "t"},
        cookies={"c": "d"},
        event_hooks={"response": [aread if is_async else read]},
    )


async def seen_by_hook(client: Any) -> Any:
    found = await done(client.chat.completions.with_raw_response.create(**ASKED))
    return [found.headers.get("x-seen"), found.text]


ANSWER = reply(200, completion("42"))
FLAGGED = {"error": {"message": "Your input was flagged by moderation", "code": "flagged"}}
LISTED = {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "o"}]}
VECTOR = {"object": "list", "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1},
          "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}  # fmt: skip
LONG = error_reply(400, "This model's maximum context length is 10", code="context_length_exceeded")
AGAIN = error_reply(500, "x", headers={"retry-after-ms": "1"})
CUT = events(*said("4", "2")[:1], then=["close"])
STALLED = events(*said("4", "2")[:1], then=["hang"])
IN_STREAM = {"error": {"message": "busy", "code": 502, "type": "server_error"}}

ROWS = [
    Row("create", create, ANSWER, said="42"),
    Row("create, a call of a tool", create, reply(200, completion(tool_call("look", "{}"))),
        said="look"),
    Row("create, compressed", create, zipped(completion("42")), said="42"),
    Row("parse", parse, reply(200, completion('{"product": 42}')), said='{"product": 42}'),
    Row("parse, no such object", parse, reply(200, completion("42?"))),
    Row("parse, cut", parse, reply(200, completion("4", finish_reason="length"))),
    Row("stream", stream, events(*said("4", "2")), said="42"),
    Row("stream, its end comes later", stream, events(*said("4", "2"), then=LATE), said="42"),
    Row("stream, it never ends", stream, events(*said("4", "2"), then=["hang"]), said="42"),
    Row("stream, cut behind its end", stream, events(*said("42"), then=["close"]), said="42"),
    Row("stream, a call of a tool", stream, events(*called(), then=LATE), said="look"),
    Row("stream, compressed", stream, events(*said("42"), coded=True, then=LATE), said="42"),
    Row("stream, separators of lines in a text", stream, events(*said("4\u2028\x85\x0b2")),
        said="4\u2028\x85\x0b2"),
    Row("stream, left after an event", stream_left, events(*said("4", "2")[:1], then=["hang"]),
        tokens=(None, None), said="4"),
    Row("stream, closed unread", stream_closed_unread, events(*said("42"), then=["hang"]),
        tokens=None),
    Row("streams in turn", streams_in_turn,
        (events(*said("4", "2"), then=LATE), events(*called(), then=LATE), ANSWER),
        tokens=(30, 15), calls=3, said="42"),
    Row("stream beside a call", two_at_once, (events(*said("4", "2"), then=LATE), ANSWER),
        tokens=(20, 10), calls=2),
    Row("stream()", helper, events(*said("4", "2"), then=LATE), said="42"),
    Row("stream(), a call of a tool", helper_until_done, events(*called(), then=LATE), said="look"),
    Row("with_raw_response", raw, ANSWER, said="42"),
    Row("with_raw_response, stream", raw_stream, events(*said("42"), then=LATE), said="42"),
    Row("with_streaming_response", streamed_whole, ANSWER, said="42"),
    Row("with_streaming_response, parsed", streamed_parsed, zipped(completion("42")), said="42"),
    Row("with_streaming_response, lines", streamed_lines, events(*said("42")), said="42"),
    Row("with_streaming_response, unread", streamed_unread, ANSWER, tokens=None),
    Row("responses", respond, reply(200, response("42")), said="42"),
    Row("responses.parse", respond_parsed, reply(200, response('{"product": 42}'))),
    Row("responses, stream", respond_stream, events(*response_events("42"), named=True, then=LATE),
        said="42"),
    Row("responses, stream that is cut by length", respond_stream,
        events(*response_events("42", "incomplete"), named=True, then=LATE), said="42"),
    Row("responses.stream", respond_helper, events(*response_events("42"), named=True, then=LATE),
        said="42"),
    Row("embeddings", embed, reply(200, VECTOR), tokens=None),
    Row("models", models, reply(200, LISTED), tokens=None),
    Row("with_options", with_options, (reply(503, {}, headers={"retry-after-ms": "1"}), ANSWER),
        said="42"),
    Row("copy", copied, ANSWER),
    Row("as a context manager", managed, ANSWER),
    Row("a closed client", after_close, ANSWER, tokens=None),
    Row("an HTTP client with settings", create, ANSWER, options={"http_client": own_http}),
    Row("an HTTP client with a hook that reads", seen_by_hook, zipped(completion("42")),
        options={"http_client": own_http}, said="42"),
    Row("headers of the client", create, ANSWER,
        options={"default_headers": {"x-a": "1"}, "default_query": {"q": "1"}}),
    Row("400, too long", create, LONG, tokens=None, failure="bad_request"),
    Row("400, too long, stream", stream, LONG, tokens=None, failure="bad_request"),
    Row("401", create, error_reply(401, "Incorrect API key", code="invalid_api_key"), tokens=None,
        failure="auth"),
    Row("404", create, error_reply(404, "The model `m` does not exist", code="model_not_found"),
        tokens=None, failure="model_not_found"),
    Row("429", create, error_reply(429, "slow down"), tokens=None, failure="rate_limited"),
    Row("500 always, tried again", create, AGAIN, tokens=None,
        failure="overloaded", options={"max_retries": 2}),
    Row("500 once, with_raw_response", raw, (AGAIN, ANSWER), options={"max_retries": 1}),
    Row("500, with_streaming_response", streamed_whole, error_reply(500, "x"), tokens=None,
        failure="overloaded"),
    Row("a reset connection", create, ["reset"], tokens=None, failure="connection"),
    Row("no reply in time", create, ["hang"], tokens=None, failure="timeout",
        options={"timeout": 0.2}),
    Row("an error within a stream", stream, events(*said("4")[:1], IN_STREAM), tokens=None,
        failure="overloaded"),
    Row("a stream that is cut", stream, CUT, tokens=None, failure="connection"),
    Row("a stream that stalls", stream, STALLED, tokens=None, failure="timeout",
        options={"timeout": 0.2}),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["OpenAI", "AsyncOpenAI"], ids=["sync", "async"])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_recorded_client_does_what_the_client_alone_does(row: Row, kind: str):
    import openai

    compare(row, getattr(openai, kind))
