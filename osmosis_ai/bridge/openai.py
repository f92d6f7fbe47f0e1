"""OpenAI's chat completions as the bridge speaks them: request bodies in, replies out.

Knows the wire format alone: neither keys nor who answers.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..agents.results import CompletionsResult
from ..http_server import Response, event_stream, problem
from ..models.errors import ProviderError
from ..models.other_apis import OtherRequest

_NOT_FORWARDED = ("model", "messages", "stream", "stream_options")
_STATUS = {"timeout": 504, "rate_limited": 429, "bad_request": 400, "too_large": 413}
NO_RETRY = {"x-should-retry": "false"}
"""Every failure was retried as far as that makes sense: clients shall not try again."""


class BadRequest(Exception):
    """A request that cannot be forwarded; `str()` says why."""


@dataclass(frozen=True, slots=True)
class CompletionCall:
    """One request for a completion."""

    messages: list[dict[str, Any]]
    params: dict[str, Any]
    """All that goes to the model besides; the evaluated model's name is not the client's choice."""
    stream: bool = False
    stream_usage: bool = False
    model: str = ""
    """As the client names it."""


@dataclass(frozen=True, slots=True)
class OtherCall:
    """One request of another API."""

    other: OtherRequest
    messages: list[dict[str, Any]]
    """What it says."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the chat completion that may stand in its place, besides messages."""
    stream: bool = False
    previous: str | None = None
    """The id of the answer that it continues."""
    is_said: bool = True
    """Whether it belongs to the conversation."""


def read_call(body: bytes) -> CompletionCall:
    """Return the call in a request's body; raise BadRequest for any other."""
    request = read_object(body)
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a non-empty array")
    if not all(isinstance(message, dict) for message in messages):
        raise BadRequest("'messages' must be an array of objects")
    check_tools(request)
    options = request.get("stream_options")
    return CompletionCall(
        messages,
        {name: value for name, value in request.items() if name not in _NOT_FORWARDED},
        stream=bool(request.get("stream")),
        stream_usage=isinstance(options, dict) and bool(options.get("include_usage")),
        model=str(request.get("model") or ""),
    )


def check_tools(request: Mapping[str, Any]) -> None:
    """Raise BadRequest unless the request's `tools`, if it has any, are a list of objects."""
    tools = request.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise BadRequest("'tools' must be an array of objects")


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a request's body; raise BadRequest for any other."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise BadRequest("the body must be a JSON object")
    return request


def completion(result: CompletionsResult, *, model: str) -> Response:
    """Return the reply to a call that did not ask for a stream."""
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": None, **result.message},
        "logprobs": result.logprobs or None,
        "finish_reason": _finish_reason(result),
    }
    if result.token_ids:
        choice["token_ids"] = result.token_ids
    further = [{**each, "index": place} for place, each in enumerate(result.further, 1)]
    body = {**_frame("chat.completion", model), "choices": [choice, *further]}
    if usage := usage_of(result):
        body["usage"] = usage
    return Response(200, body)


def streamed(result: CompletionsResult, *, model: str, with_usage: bool) -> Response:
    """Return the reply to a call that asked for a stream: the whole answer in one chunk."""
    frame = _frame("chat.completion.chunk", model)
    choice = {
        "index": 0,
        "delta": _delta(result.message),
        "logprobs": result.logprobs or None,
        "finish_reason": _finish_reason(result),
    }
    choices = [choice]
    for place, each in enumerate(result.further, 1):
        rest = {name: value for name, value in each.items() if name != "message"}
        choices.append({**rest, "index": place, "delta": _delta(each["message"])})
    chunks: list[dict[str, Any]] = [{**frame, "choices": [each]} for each in choices]
    if with_usage:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({**frame, "choices": [], "usage": usage_of(result)})
    return event_stream(b"".join(_events(chunks)))


def models(name: str) -> Response:
    """Return the list of models: the evaluated one."""
    entry = {"id": name, "object": "model", "created": 0, "owned_by": "osmosis"}
    return Response(200, {"object": "list", "data": [entry]})


def refused(status: int, message: str, **more: Any) -> Response:
    """Return an error that no other try would change."""
    refusal = problem(status, message, **more)
    return Response(refusal.status, refusal.body, headers=NO_RETRY)


def provider_refused(error: ProviderError) -> Response:
    """Return the provider's failure, with its own status where it had one."""
    refusal = problem(provider_status(error), **problem_of(error))
    return Response(refusal.status, refusal.body, headers=NO_RETRY)


def problem_of(error: ProviderError) -> dict[str, Any]:
    """Return the error object of a provider's failure."""
    return {"message": str(error), "type": "provider_error", "code": error.kind}


def provider_status(error: ProviderError) -> int:
    """Return the status to hand on: the provider's own, or what a gateway says for it."""
    if error.status is not None and 400 <= error.status < 600:
        return error.status
    return _STATUS.get(error.kind, 502)


def _frame(kind: str, model: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
    }


def usage_of(result: CompletionsResult) -> dict[str, Any] | None:
    """Return the usage of an answer as its client sees it; None where none is known."""
    return {**result.usage, **result.usage_details} if any(result.usage.values()) else None


def _finish_reason(result: CompletionsResult) -> str:
    unnamed = result.finish_reason == "stop"
    return "tool_calls" if unnamed and result.has_tool_calls else result.finish_reason


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    delta = {"role": "assistant", "content": None, **message}
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)]
    return delta


def _events(chunks: list[dict[str, Any]]) -> Iterator[bytes]:
    for chunk in chunks:
        yield b"data: " + json.dumps(chunk, ensure_ascii=True).encode("ascii") + b"\n\n"
    yield b"data: [DONE]\n\n"
