"""`record(client)`: the model calls of a user's own OpenAI or Anthropic client, in the rollout.

The copy that it returns sends requests through the client's own HTTP client, and reads what goes
over it: chat completions, responses and messages, also streamed ones. Neither endpoint nor key nor
model is changed. Outside a rollout nothing is read.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import gemini_messages
from .agents.client import ModelLLM
from .agents.context import get_rollout_context
from .blocking import in_daemon_thread, run_blocking
from .bridge import anthropic, responses
from .bridge.openai import BadRequest
from .bridge.session import Trajectory
from .models.base import CallOutcome, ChatCompletion, price
from .models.chunks import events_in, joined_chunks
from .models.client_exceptions import no_reply, provider_error, refusal
from .models.errors import CallFault, ProviderError
from .models.faults import failure_in
from .models.parsing import read_usage
from .models.progress import CallProgress
from .models.retry import parse_retry_after
from .models.transport import cassettes
from .models.transport.exchange import Reply

if TYPE_CHECKING:
    from .agents.context import RolloutContext

Client = TypeVar("Client")
_END = re.compile(
    rb"data: ?\[DONE\]|event: ?(?:message_stop|response\.(?:completed|incomplete|failed|cancelled))"
)
"""What the last event of a stream holds: clients read no further."""
_GEMINI = re.compile(r"/models/([^/]+):(?:stream)?[gG]enerateContent$")
_HOSTS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
}
"""Where the prices that LiteLLM knows hold."""


def record(client: Client) -> Client:
    """Return the client, its calls recorded where a rollout is running.

    `client` is an OpenAI, AsyncOpenAI, Anthropic or AsyncAnthropic, or a chat model of LangChain
    over one of them: a copy is returned. A `google.genai.Client` and the module `litellm` are
    changed themselves.

    Raises:
        TypeError: for anything else.
    """
    found: Any = client
    if getattr(client, "__name__", None) == "litellm":
        from .recording_litellm import record_litellm

        record_litellm(client)
        return client
    if hasattr(client, "root_client") and hasattr(client, "root_async_client"):
        return cast("Client", _recorded_langchain(client))
    if any(kind.__name__ == "ChatAnthropic" for kind in type(client).__mro__):
        found = found.model_copy()
        # Made by the model when they are first used, and kept here.
        vars(found).update(_client=record(found._client), _async_client=record(found._async_client))
        return cast("Client", found)
    if type(client).__module__.startswith("google.genai") and hasattr(client, "_api_client"):
        _record_genai(found._api_client)
        return client
    inner: Any = getattr(client, "_client", None)
    copy: Any = getattr(client, "copy", None)
    if _http_library(inner) is None or not callable(copy):
        raise TypeError(
            "record takes a client of OpenAI or Anthropic (OpenAI, AsyncOpenAI, Anthropic, "
            "AsyncAnthropic), a chat model of LangChain over one of these (ChatOpenAI, "
            "ChatAnthropic: before bind_tools), google.genai.Client, or the module litellm, not "
            f"{type(client).__name__}"
        )
    if _is_recorded(inner):
        return client  # recorded already: its calls count once
    recorded: Client = copy(http_client=_recording(inner))
    return recorded


def _recorded_langchain(model: Any) -> Any:
    """Return a copy of a model of LangChain whose OpenAI clients are recorded."""
    sync, twin = model.root_client, model.root_async_client
    clients: dict[str, Any] = {}
    if sync is not None:
        sync = clients["root_client"] = record(sync)
        clients["client"] = sync.chat.completions
    if twin is not None:
        twin = clients["root_async_client"] = record(twin)
        clients["async_client"] = twin.chat.completions
    if not clients:
        raise TypeError(f"record: {type(model).__name__} has no client of OpenAI to be recorded")
    return model.model_copy(update=clients)


def _record_genai(api: Any) -> None:
    """Have a client of google.genai send by the recorded HTTP clients, and not by aiohttp."""
    if api.vertexai and not api.api_key:
        raise TypeError(
            "record takes a google.genai.Client with an API key: Vertex AI's credentials send by "
            "another library, whose calls are not seen"
        )
    if not _is_recorded(api._httpx_client):
        api._httpx_client = _recording(api._httpx_client)
    twin = api._async_httpx_client
    if twin is not None and not _is_recorded(twin):
        api._async_httpx_client = api._http_options.httpx_async_client = _recording(twin)


def _is_recorded(client: Any) -> bool:
    return isinstance(getattr(client, "_transport", None), _Sender)


def _recording(inner: Any) -> Any:
    """Return an HTTP client that sends through another, and records."""
    http = _http_library(inner)
    is_sync = isinstance(inner, http.Client)
    kind = http.Client if is_sync else http.AsyncClient
    sync, twin = (_Transport, http.BaseTransport), (_AsyncTransport, http.AsyncBaseTransport)
    transport = type("Recording", sync if is_sync else twin, {})
    return kind(
        transport=transport(http, inner),
        trust_env=False,
        timeout=inner.timeout,
        headers=inner.headers,
        params=inner.params,
        cookies=inner.cookies,
    )


def _http_library(inner: object) -> Any:
    """Return the module whose HTTP client this is: httpx, or httpx2, which has the same names."""
    for base in type(inner).__mro__:
        module = base.__module__.partition(".")[0]
        if module in ("httpx", "httpx2"):
            return import_module(module)
    return None


class RecordedCalls:
    """The calls of one rollout, in the order in which they began; from any thread."""

    def __init__(self, llm: ModelLLM) -> None:
        self._llm = llm
        self._lock = threading.Lock()
        self._calls: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = []
        """What each call asks, and its answer once there is one."""

    @property
    def succeeded(self) -> bool:
        """Whether a call was answered."""
        return self._llm.num_llm_calls > 0

    def begin(
        self, messages: list[dict[str, Any]], progress: CallProgress, *, is_retry: bool
    ) -> list[dict[str, Any]]:
        """Note that a call has begun, or is tried again; return the place of its answer."""
        answers: list[dict[str, Any]] = []
        with self._lock:
            self._llm.last_asked, self._llm.last_answer = messages, None
            self._llm.under_way.append(progress)
            self._llm.retries += is_retry
            self._calls.append((messages, answers))
        return answers

    def answered(self, answers: list[dict[str, Any]], completion: ChatCompletion) -> None:
        """Note the answer to a call."""
        with self._lock:
            self._llm.note_answer(completion)
            answers.append(completion.message)

    def failed(self, error: ProviderError) -> None:
        """Note that the endpoint gave no answer."""
        with self._lock:
            self._llm.note_error(error)

    def end(self, progress: CallProgress) -> None:
        """Note that a call is over, whatever it brought."""
        with self._lock:
            if progress in self._llm.under_way:
                self._llm.under_way.remove(progress)
                self._llm.llm_latency_ms += progress.waited_s * 1000.0

    def conversation(self) -> list[dict[str, Any]]:
        """Return what was said in all answered calls, each message once."""
        trajectory = Trajectory()
        with self._lock:
            for messages, answers in self._calls:
                for answer in answers:
                    trajectory.note(messages, answer)
        return trajectory.all()


def calls_of(ctx: RolloutContext) -> RecordedCalls:
    """Return the recorded calls of a rollout."""
    if ctx.recorded is None:
        ctx.recorded = RecordedCalls(ctx.llm)  # type: ignore[arg-type]
    calls: RecordedCalls = ctx.recorded
    return calls


class _Call:
    """One request that is on its way, and the reading of its reply."""

    def __init__(self, ctx: RolloutContext, request: Any, body: Mapping[str, Any]) -> None:
        self._pace = ctx.rate_limit
        self._prices = ctx.price_per_mtok
        self._path = request.url.path
        in_path = _GEMINI.search(self._path)  # Gemini's model stands there
        self._model = str(body.get("model")) if in_path is None else in_path[1]
        self._calls = calls_of(ctx)
        self.progress = CallProgress(request.url.netloc.decode("ascii", "replace"), None)
        self.progress.is_streamed = bool(body.get("stream")) or "stream" in self._path
        is_retry = request.headers.get("x-stainless-retry-count", "0") != "0"
        self._answers = self._calls.begin(
            _read_request(self._path, body), self.progress, is_retry=is_retry
        )
        self._request = request
        self._caller = cassettes.current.get()

    async def wait(self) -> None:
        """Wait where the endpoint has asked for a pause."""
        if self._pace is not None:
            await self._pace.acquire()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Note why there is no reply, where there is none."""
        try:
            yield
        except BaseException as error:
            if self._pace is not None:
                self._pace.record_response("failed", 0.0)
            self._broken(error)
            self._calls.end(self.progress)
            raise

    def _broken(self, error: BaseException) -> None:
        failure = no_reply(self._request.url, error, model=self._model)
        if failure is not None and isinstance(error, Exception):
            self._calls.failed(failure)

    def note_status(self, response: Any) -> None:
        """Tell the shared pace how the endpoint answered."""
        if self._pace is None:
            return
        status: int = response.status_code
        outcome: CallOutcome = "ok" if status < 400 else "failed"
        if status == 429:
            outcome = "rate_limited"
        elif status >= 500:
            outcome = "overloaded"
        self._pace.record_response(outcome, parse_retry_after(response.headers) or 0.0)

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
            self._calls.failed(ProviderError(str(fault), kind=fault.kind))
            self._calls.end(self.progress)
            refusal = {"error": {"message": str(fault), "type": fault.kind}}
            headers = {"x-should-retry": "false"}
            return http.Response(400, headers=headers, json=refusal, request=request)
        if reply is None:
            return None
        headers = {"content-type": reply.content_type}
        response = http.Response(reply.status, headers=headers, content=reply.body)
        self._read(response, reply.body, is_whole=True)
        self._calls.end(self.progress)
        return response

    def end(
        self,
        response: Any,
        content: bytes,
        *,
        is_whole: bool = True,
        broken: BaseException | None = None,
    ) -> None:
        """Record the reply, also in the session's cassette unless its reader left it early."""
        is_whole = is_whole or _END.search(content) is not None
        try:
            if broken is not None and not is_whole:
                self._broken(broken)
                return
            cassette, kind = cassettes.inserted, response.headers.get("content-type", "")
            if cassette is not None and is_whole:
                cassettes.current.set(self._caller)
                reply = Reply(response.status_code, {"content-type": kind}, content)
                cassette.keep(self._request.method, self._path, self._request.content, reply)
            self._read(response, content, is_whole=is_whole)
        finally:
            self._calls.end(self.progress)

    def _read(self, response: Any, content: bytes, *, is_whole: bool) -> None:
        """Record the answer, or the endpoint's failure; a part of an answer that was left, too."""
        url, status = self._request.url, response.status_code
        if status >= 400:
            self._calls.failed(
                refusal(
                    url,
                    status,
                    content,
                    headers=response.headers,
                    model=self._model,
                    succeeded=self._calls.succeeded,
                )
            )
            return
        is_stream = "event-stream" in response.headers.get("content-type", "")
        try:
            events = [*events_in(content)] if is_stream else [json.loads(content)]
            for event in events:
                if (fault := failure_in(event, model=self._model)) is not None:
                    self._fail(fault, is_silent=not (is_stream and event.get("error")))
                    return
            completion = _completion(self._path, _joined(events) if is_stream else events[0])
        except (ValueError, LookupError, TypeError, AttributeError):
            if is_whole:
                fault = CallFault("protocol", content[:800].decode("utf-8", "replace"))
                self._fail(fault, is_silent=True)
            return
        completion.latency_ms = self.progress.waited_s * 1000.0
        completion.model = completion.model or self._model
        if self._prices is not None:
            price(completion, self._prices)
        if completion.cost_usd is None:
            completion.cost_usd = _price(url.host, completion)
        self._calls.answered(self._answers, completion)

    def _fail(self, fault: CallFault, *, is_silent: bool) -> None:
        """Record what the endpoint told inside a 200; few clients raise it."""
        error = provider_error(
            fault, self._request.url, model=self._model, succeeded=self._calls.succeeded
        )
        error.is_silent = is_silent
        self._calls.failed(error)


def _decoded(response: Any, raw: bytes) -> bytes:
    """Return a body without its content encoding; nothing of one that was cut within it."""
    try:
        content: bytes = type(response)(200, headers=response.headers, content=raw).content
    except _http_library(response).DecodingError:
        return b""
    return content


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

    def _begun(self, request: Any) -> tuple[_Call | None, Any]:
        """Return the call that a request is, and its response where a cassette has one."""
        call = _call_of(request)
        return call, None if call is None else call.replayed(self._http)


class _Transport(_Sender):
    def handle_request(self, request: Any) -> Any:
        call, response = self._begun(request)
        if call is None:
            return self._inner.send(request, stream=True)
        if response is not None:
            return response
        run_blocking(call.wait())
        with call.sending():
            response = self._inner.send(request, stream=True)
        call.note_status(response)
        if response.is_stream_consumed:  # by a hook, or a transport of a user's tests
            call.end(response, response.content)
        else:
            stream: Any = type("Recorded", (_Stream, self._http.SyncByteStream), {})
            response.stream = stream(response, call)
        return response

    def close(self) -> None:
        self._inner.close()


class _AsyncTransport(_Sender):
    async def handle_async_request(self, request: Any) -> Any:
        call, response = self._begun(request)
        if call is None:
            return await self._inner.send(request, stream=True)
        if response is not None:
            return response
        await call.wait()
        with call.sending():
            response = await self._inner.send(request, stream=True)
        call.note_status(response)
        if response.is_stream_consumed:
            await in_daemon_thread(call.end, response, response.content)
        else:
            stream: Any = type("Recorded", (_AsyncStream, self._http.AsyncByteStream), {})
            response.stream = stream(response, call)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body:
    """A reply's body on its way, read when it is whole, or is left.

    It does what the stream that it stands for does, also when it is read on after its last event.
    """

    def __init__(self, response: Any, call: _Call) -> None:
        self._response = response
        self._stream = response.stream
        self._call = call
        self._raw: list[bytes] = []
        self._is_whole = False
        self._has_ended = False

    def _take(self, piece: bytes) -> None:
        self._raw.append(piece)
        self._call.progress.is_arriving = True

    def _end(self, broken: Exception | None = None) -> None:
        """Record it, once: some clients leave a stream that broke without closing it."""
        if not self._has_ended:
            self._has_ended = True
            content = _decoded(self._response, b"".join(self._raw))
            self._call.end(self._response, content, is_whole=self._is_whole, broken=broken)


class _Stream(_Body):
    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._stream:
                self._take(piece)
                yield piece
        except Exception as error:
            self._end(error)
            raise
        self._is_whole = True

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._end()


class _AsyncStream(_Body):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._stream.__aiter__()
        try:
            async for piece in pieces:
                self._take(piece)
                yield piece
        except Exception as error:
            await in_daemon_thread(self._end, error)
            raise
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        self._is_whole = True

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            await in_daemon_thread(self._end)


# ---- what is said


def _read_request(path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request, in OpenAI's form; as they are where we do not know it."""
    try:
        if path.endswith("/messages"):
            return anthropic.read_message_call(json.dumps(body).encode()).messages
        if path.endswith("/responses"):
            return responses.messages_asked(body)
        if path.endswith("enerateContent"):
            return gemini_messages.messages_asked(body)
    except (BadRequest, AttributeError, TypeError):
        pass
    messages = body.get("messages", body.get("input"))
    given = messages if isinstance(messages, list) else []
    return [message for message in given if isinstance(message, dict)]


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


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ChatCompletion]] = {
    "/chat/completions": _chat,
    "/responses": responses.read_response,
    "/messages": anthropic.read_message,
    ":generateContent": gemini_messages.read_answer,
    ":streamGenerateContent": gemini_messages.read_answer,
}
"""What reads the answer in a reply, by the end of the path."""


def _completion(path: str, data: Mapping[str, Any]) -> ChatCompletion:
    return next(read for end, read in _READERS.items() if path.endswith(end))(data)


# ---- streams


def _joined(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reply that the events of a stream make up; without an end, as far as it came."""
    first, last = events[0], events[-1]
    if str(first.get("type")).startswith("response."):
        texts = (e["delta"] for e in events if e["type"] == "response.output_text.delta")
        partial = {"output": [{"type": "message", "content": "".join(texts)}]}
        return dict(last.get("response") or partial)
    if "candidates" in first or "usageMetadata" in first:
        return gemini_messages.joined(events)
    if first.get("type") == "message_start":
        return _joined_message(events)
    return joined_chunks(events)


def _joined_message(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    texts: dict[int, str] = {}
    for event in events:
        if event["type"] == "message_start":
            message = dict(event["message"])
        elif event["type"] == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif event["type"] == "content_block_delta":
            delta, index = event["delta"], event["index"]
            texts[index] = texts.get(index, "") + (
                delta.get("text") or delta.get("partial_json") or ""
            )
        elif event["type"] == "message_delta":
            message |= event["delta"]
            message["usage"] = {**message.get("usage", {}), **(event.get("usage") or {})}
    for index, text in texts.items():
        block = blocks[index]
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
        else:
            block["text"] = block.get("text", "") + text
    return {**message, "content": list(blocks.values())}


def _price(host: str, completion: ChatCompletion) -> float | None:
    """Return what a call cost, where the provider is one whose prices LiteLLM knows."""
    provider, usage = _HOSTS.get(host), completion.usage
    if provider is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    from .models.litellm.library import price_of

    return price_of(f"{provider}/{completion.model}", usage)
