"""`record(client)`: the model calls of a user's own OpenAI or Anthropic client, in the rollout.

The copy that it returns sends requests through the client's own HTTP client, and reads what goes
over it: chat completions, responses and messages, also streamed ones. Neither endpoint nor key nor
model is changed. Outside a rollout nothing is read.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .agents.client import ModelLLM
from .agents.context import get_rollout_context
from .blocking import in_daemon_thread, run_blocking
from .bridge import anthropic
from .bridge.session import Trajectory
from .models.base import ChatCompletion, price
from .models.errors import CallFault
from .models.parsing import read_usage
from .models.transport import cassettes
from .models.transport.exchange import Reply

if TYPE_CHECKING:
    from .agents.context import RolloutContext

Client = TypeVar("Client")
_ENDS = (b"data: [DONE]", b"event: message_stop", b"event: response.completed")
"""What the last event of a stream holds: clients read no further."""
_HOSTS = {"api.openai.com": "openai", "api.anthropic.com": "anthropic"}
"""Where the prices that LiteLLM knows hold."""


def record(client: Client) -> Client:
    """Return the client, its calls recorded where a rollout is running.

    `client` is an OpenAI, AsyncOpenAI, Anthropic or AsyncAnthropic.

    Raises:
        TypeError: for anything else.
    """
    inner: Any = getattr(client, "_client", None)
    copy: Any = getattr(client, "copy", None)
    http = _http_library(inner)
    if http is None or not callable(copy):
        raise TypeError(
            "record takes a client of OpenAI or Anthropic (OpenAI, AsyncOpenAI, Anthropic, "
            f"AsyncAnthropic), not {type(client).__name__}"
        )
    is_sync = isinstance(inner, http.Client)
    kind = http.Client if is_sync else http.AsyncClient
    sync, twin = (_Transport, http.BaseTransport), (_AsyncTransport, http.AsyncBaseTransport)
    transport = type("Recording", sync if is_sync else twin, {})
    outer = kind(transport=transport(http, inner), timeout=inner.timeout, trust_env=False)
    recorded: Client = copy(http_client=outer)
    return recorded


def _http_library(inner: object) -> Any:
    """Return the module whose HTTP client this is: httpx, or httpx2, which has the same names."""
    for base in type(inner).__mro__:
        module = base.__module__.partition(".")[0]
        if module in ("httpx", "httpx2"):
            return sys.modules[module]
    return None


class RecordedCalls:
    """The calls of one rollout, in the order in which they began; from any thread."""

    def __init__(self, llm: ModelLLM) -> None:
        self._llm = llm
        self._lock = threading.Lock()
        self._calls: list[tuple[list[dict[str, Any]], dict[str, Any] | None]] = []

    def begin(self, messages: list[dict[str, Any]]) -> int:
        """Note that a call has begun; return its place."""
        with self._lock:
            self._llm.last_asked, self._llm.last_answer = messages, None
            self._calls.append((messages, None))
            return len(self._calls) - 1

    def end(self, place: int, completion: ChatCompletion) -> None:
        """Note the answer to a call, and what it took."""
        with self._lock:
            self._llm.note_answer(completion)
            self._llm.llm_latency_ms += completion.latency_ms
            self._calls[place] = (self._calls[place][0], completion.message)

    def conversation(self) -> list[dict[str, Any]]:
        """Return what was said in all answered calls, each message once."""
        trajectory = Trajectory()
        with self._lock:
            for messages, answer in self._calls:
                if answer is not None:
                    trajectory.note(messages, answer)
        return trajectory.all()


class _Call:
    """One request that is on its way, and the reading of its reply."""

    def __init__(self, ctx: RolloutContext, request: Any, body: Mapping[str, Any]) -> None:
        self._pace = ctx.rate_limit
        self._prices = ctx.price_per_mtok
        self._host = request.url.host
        self._path = request.url.path
        self._model = str(body.get("model"))
        if ctx.recorded is None:
            ctx.recorded = RecordedCalls(ctx.llm)  # type: ignore[arg-type]
        self._calls: RecordedCalls = ctx.recorded
        self._place = self._calls.begin(_read_request(self._path, body))
        self._request = request
        self._caller = cassettes.current.get()
        self._began = time.monotonic()

    async def wait(self) -> None:
        """Wait where the endpoint has asked for a pause."""
        if self._pace is not None:
            await self._pace.acquire()

    def note_status(self, response: Any) -> None:
        """Tell the shared pace how the endpoint answered."""
        if self._pace is None:
            return
        outcomes: Any = {429: "rate_limited", 503: "overloaded", 529: "overloaded"}
        usual = "ok" if response.status_code < 400 else "failed"
        try:
            seconds = float(response.headers.get("retry-after") or 0.0)
        except ValueError:  # a date
            seconds = 0.0
        self._pace.record_response(outcomes.get(response.status_code, usual), max(0.0, seconds))

    def replayed(self, http: Any) -> Any:
        """Return the response of the session's cassette, None to send the request.

        One that is not recorded is a refusal, which clients do not try again.
        """
        cassette, request = cassettes.inserted, self._request
        if cassette is None:
            return None
        try:
            reply = cassette.answer(request.method, self._path, request.content)
        except CallFault as fault:
            refusal = {"error": {"message": str(fault), "type": fault.kind}}
            headers = {"x-should-retry": "false"}
            return http.Response(400, headers=headers, json=refusal, request=request)
        if reply is None:
            return None
        headers = {"content-type": reply.content_type}
        response = http.Response(reply.status, headers=headers, content=reply.body)
        self.read(response, reply.body)
        return response

    def end(self, response: Any, raw: bytes, *, is_whole: bool) -> None:
        """Record the reply, also in the session's cassette unless its reader left it early."""
        cassette, kind = cassettes.inserted, response.headers.get("content-type", "")
        if cassette is not None:
            content = _decoded(response, raw)
            if is_whole or any(mark in content for mark in _ENDS):
                cassettes.current.set(self._caller)
                reply = Reply(response.status_code, {"content-type": kind}, content)
                cassette.keep(self._request.method, self._path, self._request.content, reply)
        self.read(response, raw)

    def read(self, response: Any, raw: bytes) -> None:
        """Record the reply; one that is no whole answer leaves the call without one."""
        if response.status_code >= 400:
            return
        content = _decoded(response, raw)
        is_stream = "event-stream" in response.headers.get("content-type", "")
        try:
            data = _joined_events(content) if is_stream else json.loads(content)
            completion = _completion(self._path, data)
        except (ValueError, LookupError, TypeError, AttributeError):
            return
        completion.latency_ms = (time.monotonic() - self._began) * 1000.0
        completion.model = completion.model or self._model
        if self._prices is not None:
            price(completion, self._prices)
        if completion.cost_usd is None:
            completion.cost_usd = _price(self._host, completion)
        self._calls.end(self._place, completion)


def _decoded(response: Any, raw: bytes) -> bytes:
    found: bytes = type(response)(200, headers=response.headers, content=raw).content
    return found


def _call_of(request: Any) -> _Call | None:
    """Return the call that a request is; None outside a rollout, and for any other request."""
    ctx = get_rollout_context()
    if ctx is None or not ctx.has_llm or not request.url.path.endswith(tuple(_READERS)):
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):
        return None
    return _Call(ctx, request, body) if isinstance(body, dict) else None


class _Sender:
    """Sends through another client, which keeps its own settings."""

    def __init__(self, http: Any, inner: Any) -> None:
        self._http = http
        self._inner = inner


class _Transport(_Sender):
    def handle_request(self, request: Any) -> Any:
        call = _call_of(request)
        if call is None:
            return self._inner.send(request, stream=True)
        if (replayed := call.replayed(self._http)) is not None:
            return replayed
        run_blocking(call.wait())
        response = self._inner.send(request, stream=True)
        call.note_status(response)
        return _reply(response, _Stream, self._http.SyncByteStream, call)

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport(_Sender):
    async def handle_async_request(self, request: Any) -> Any:
        call = _call_of(request)
        if call is None:
            return await self._inner.send(request, stream=True)
        if (replayed := call.replayed(self._http)) is not None:
            return replayed
        await call.wait()
        response = await self._inner.send(request, stream=True)
        call.note_status(response)
        return _reply(response, _AsyncStream, self._http.AsyncByteStream, call)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _reply(response: Any, recording: type, stream: type, call: _Call) -> Any:
    """Return the response again, with a stream that records what is read of it."""
    return type(response)(
        response.status_code,
        headers=response.headers,
        stream=type("Recorded", (recording, stream), {})(response, call),
        extensions=response.extensions,
    )


class _Body:
    """A reply's body on its way, read when it is whole, or is left."""

    def __init__(self, response: Any, call: _Call) -> None:
        self._response = response
        self._call = call
        self._raw: list[bytes] = []
        self._is_whole = False


class _Stream(_Body):
    def __iter__(self) -> Iterator[bytes]:
        whole = self._response.is_stream_consumed  # of a transport in a user's tests
        for piece in [self._response.content] if whole else self._response.iter_raw():
            self._raw.append(piece)
            yield piece
        self._is_whole = True

    def close(self) -> None:
        self._response.close()
        self._call.end(self._response, b"".join(self._raw), is_whole=self._is_whole)


class _AsyncStream(_Body):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:
            self._raw.append(self._response.content)
            self._is_whole = True
            yield self._response.content
            return
        async for piece in self._response.aiter_raw():
            self._raw.append(piece)
            yield piece
        self._is_whole = True

    async def aclose(self) -> None:
        await self._response.aclose()
        raw = b"".join(self._raw)
        await in_daemon_thread(self._call.end, self._response, raw, is_whole=self._is_whole)


# ---- what is said


def _read_request(path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request, in OpenAI's form."""
    if path.endswith("/messages"):
        return anthropic.read_message_call(json.dumps(body).encode()).messages
    if path.endswith("/responses"):
        return _of_items(body)
    messages = body.get("messages")
    return (
        [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    )


def _of_items(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    system = body.get("instructions")
    head = [{"role": "system", "content": system}] if system else []
    return [*head, *_of_output(items)]


def _of_output(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return items as messages: text and calls of one turn as one, thoughts as none."""
    found: list[dict[str, Any]] = []
    for message in (_of_item(item) for item in items if item.get("type") != "reasoning"):
        before = found[-1] if found else {}
        if "tool_calls" in message and before.get("role") == "assistant":
            calls = [*before.get("tool_calls", ()), *message["tool_calls"]]
            found[-1] = {**before, "tool_calls": calls}
        else:
            found.append(message)
    return found


def _of_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of the Responses API as a message."""
    if item.get("type") == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if item.get("type") == "function_call_output":
        result = item.get("output")
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": result}
    content = item.get("content")
    if isinstance(content, list):
        content = "".join(part.get("text") or "" for part in content)
    return {"role": item.get("role", "assistant"), "content": content}


def _chat(data: Mapping[str, Any]) -> ChatCompletion:
    choice = data["choices"][0]
    usage, cost = read_usage(data.get("usage"))
    return ChatCompletion(
        message=dict(choice["message"]),
        finish_reason=choice.get("finish_reason"),
        usage=usage,
        model=data.get("model"),
        cost_usd=cost,
    )


def _message(data: Mapping[str, Any]) -> ChatCompletion:
    usage = data.get("usage") or {}
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return ChatCompletion(
        message=anthropic.assistant(data["content"]),
        finish_reason=data.get("stop_reason"),
        usage=_usage(sum(usage.get(name) or 0 for name in names), usage.get("output_tokens")),
        model=data.get("model"),
    )


def _response(data: Mapping[str, Any]) -> ChatCompletion:
    items = _of_output(data["output"])
    texts = [item["content"] for item in items if item["content"]]
    calls = [call for item in items for call in item.get("tool_calls", ())]
    message = {"role": "assistant", "content": "".join(texts) or None}
    usage = data.get("usage") or {}
    return ChatCompletion(
        message={**message, "tool_calls": calls} if calls else message,
        finish_reason=data.get("status"),
        usage=_usage(usage.get("input_tokens"), usage.get("output_tokens")),
        model=data.get("model"),
    )


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ChatCompletion]] = {
    "/chat/completions": _chat,
    "/responses": _response,
    "/messages": _message,
}
"""What reads a reply, by the end of the path."""


def _completion(path: str, data: Mapping[str, Any]) -> ChatCompletion:
    return next(read for end, read in _READERS.items() if path.endswith(end))(data)


def _usage(prompt: int | None, completion: int | None) -> Any:
    return read_usage({"prompt_tokens": prompt, "completion_tokens": completion})[0]


# ---- streams


def _joined_events(content: bytes) -> dict[str, Any]:
    """Return the whole reply that the events of a stream make up."""
    events = [
        json.loads(line.removeprefix("data:"))
        for line in content.decode("utf-8").splitlines()
        if line.startswith("data:") and line.strip() != "data: [DONE]"
    ]
    for event in events:
        if event.get("type") == "response.completed":
            return dict(event["response"])
    if events and events[0].get("type") == "message_start":
        return _joined_message(events)
    return _joined_chat(events)


def _joined_chat(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    found: dict[str, Any] = {}
    reason = None
    for event in events:
        found |= {name: event[name] for name in ("usage", "model") if event.get(name)}
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            if delta.get("content"):
                message["content"] = (message["content"] or "") + delta["content"]
            for piece in delta.get("tool_calls") or ():
                empty = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece["index"], empty)
                call["id"] = piece.get("id") or call["id"]
                for name, text in (piece.get("function") or {}).items():
                    call["function"][name] += text or ""
            reason = choice.get("finish_reason") or reason
    if calls:
        message["tool_calls"] = list(calls.values())
    return {**found, "choices": [{"message": message, "finish_reason": reason}]}


def _joined_message(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    texts: dict[int, str] = {}
    for event in events:
        if event["type"] == "message_start":
            found = dict(event["message"])
        elif event["type"] == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, index = event["delta"], event["index"]
            texts[index] = texts.get(index, "") + (
                delta.get("text") or delta.get("partial_json") or ""
            )
        elif event["type"] == "message_delta":
            found |= event["delta"]
            found["usage"] = {**found.get("usage", {}), **(event.get("usage") or {})}
    for index, text in texts.items():
        block = blocks[index]
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
        else:
            block["text"] = block.get("text", "") + text
    return {**found, "content": list(blocks.values())}


def _price(host: str, completion: ChatCompletion) -> float | None:
    """Return what a call cost, where the provider is one whose prices LiteLLM knows."""
    provider, usage = _HOSTS.get(host), completion.usage
    if provider is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    from .models.litellm.library import price_of

    return price_of(f"{provider}/{completion.model}", usage.prompt_tokens, usage.completion_tokens)
