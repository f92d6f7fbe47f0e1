"""Calls of clients of OpenAI and Anthropic, made alone and recorded, to be held against each other.

A call is written once, for synchronous and asynchronous clients: `done`, `each` and `entered` await
what is to be awaited. The endpoint keeps its connections open.
"""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from osmosis_ai import record
from osmosis_ai.agents.client import ModelLLM
from osmosis_ai.rollout.testing import ScriptedModel, context

from .endpoints import Ask, Endpoint, Step, reply

LATE: list[Any] = [0.02, b"0\r\n\r\n"]
"""The end of a stream that comes after its last event: the connection is open until then."""


async def done(value: Any) -> Any:
    """Return a value, awaited where it is to be."""
    return await value if inspect.isawaitable(value) else value


async def each(stream: Any) -> AsyncIterator[Any]:
    """Yield what a stream of either kind yields."""
    if hasattr(stream, "__aiter__"):
        async for one in stream:
            yield one
    else:
        for one in stream:
            yield one


@asynccontextmanager
async def entered(manager: Any) -> AsyncIterator[Any]:
    """Enter a context manager of either kind."""
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


async def models(client: Any) -> Any:
    return [one async for one in each(await done(client.models.list()))]


def plain(value: Any) -> Any:
    """Return a value as what can be compared."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


@dataclass
class Row:
    """A call, what the endpoint sends for it, and what is recorded."""

    name: str
    call: Callable[[Any], Awaitable[Any]]
    replies: Any
    """One reply, its steps, or a tuple of those: the last of them again and again."""
    tokens: tuple[int | None, int | None] | None = (10, 5)
    """Of all recorded calls; None where no call is answered."""
    calls: int = 1
    said: str | None = None
    """The answer's text, or the name of the tool that it calls."""
    failure: str | None = None
    """The kind of the last call's error."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the client."""

    def __str__(self) -> str:
        return self.name


@dataclass
class Outcome:
    """What came of a call."""

    value: Any
    error: str
    requests: int
    connections: int
    sent: list[Any]


def compare(row: Row, kind: Any, **where: Any) -> None:
    """Assert that a recorded client does what the client alone does, and that it is recorded."""
    alone, _ = made(row, kind, recorded=False, **where)
    recorded, llm = made(row, kind, recorded=True, **where)
    assert recorded == alone
    assert llm is not None and llm.under_way == []
    assert llm.num_llm_calls == (0 if row.tokens is None else row.calls)
    if row.tokens is not None:
        assert (llm.prompt_tokens, llm.response_tokens) == row.tokens
    assert (None if llm.last_error is None else llm.last_error.kind) == row.failure
    if row.said is not None:
        message = llm.last_answer or {}
        named = [call["function"]["name"] for call in message.get("tool_calls", ())]
        assert (named[0] if named else message.get("content")) == row.said


def made(row: Row, kind: Any, *, recorded: bool, **where: Any) -> tuple[Outcome, ModelLLM | None]:
    """Make the call at an endpoint of its own, as a rollout's if it is recorded."""
    given = row.replies if isinstance(row.replies, tuple) else (row.replies,)
    steps = iter([one if isinstance(one, list) else [one] for one in given])
    last: list[Any] = []

    class Scripted(Endpoint):
        def steps(self, ask: Ask) -> list[Step]:
            last[:] = next(steps, last)
            return [*last]

    with Scripted() as endpoint:
        base_url = endpoint.base_url if "v1" in str(where.pop("at", "v1")) else (
            endpoint.base_url.removesuffix("/v1")
        )  # fmt: skip
        options = {"max_retries": 0, "timeout": 5.0, **row.options}
        if callable(options.get("http_client")):
            options["http_client"] = options["http_client"](kind)
        client = kind(base_url=base_url, api_key="k", **{**options, **where})
        ctx = context(ScriptedModel([]))
        if recorded:
            client = record(client)
        value, error = _called(row, client, ctx if recorded else None)
        sent = [(ask.method, ask.path, ask.raw, _named(ask.headers)) for ask in endpoint.seen]
        error = error.replace(str(endpoint.port), "PORT")
        outcome = Outcome(value, error, endpoint.requests, endpoint.connections, sent)
    assert isinstance(ctx.llm, ModelLLM)
    return outcome, ctx.llm if recorded else None


def _called(row: Row, client: Any, ctx: Any) -> tuple[Any, str]:
    async def call() -> tuple[Any, str]:
        try:
            return plain(await row.call(client)), ""
        except Exception as error:
            cause = error.__cause__
            return None, f"{type(error).__name__}: {error}; {type(cause).__name__}: {cause}"
        finally:
            await done(client.close())

    async def in_rollout() -> tuple[Any, str]:
        if ctx is None:
            return await call()
        with ctx:
            return await call()

    if type(client).__name__.startswith("Async"):
        return asyncio.run(in_rollout())
    made = in_rollout()
    try:
        made.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("a synchronous client waited")


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    left_out = ("host", "x-stainless-read-timeout", "idempotency-key")
    return {name: value for name, value in headers.items() if name not in left_out}


# ---- replies


def events(*found: Any, named: bool = False, coded: bool = False, then: Any = b"") -> list[Step]:
    """Return a stream of events, each a chunk of the body; then what ends it."""
    texts = []
    for event in found:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        head = f"event: {event['type']}\n" if named else ""
        texts.append(f"{head}data: {text}\n\n".encode())
    headers = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    if coded:
        headers += "Content-Encoding: gzip\r\n"
        texts = [gzip.compress(b"".join(texts))]
    head = f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode()
    chunks = [f"{len(text):x}\r\n".encode() + text + b"\r\n" for text in texts]
    ended = then if isinstance(then, list) else [b"0\r\n\r\n"]
    return [head, *chunks, *ended]


def zipped(body: Any) -> bytes:
    """Return a reply whose body is compressed."""
    return reply(
        200, gzip.compress(json.dumps(body).encode()), headers={"Content-Encoding": "gzip"}
    )
