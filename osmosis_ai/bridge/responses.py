"""OpenAI's Responses API, and its embeddings, as the bridge speaks them.

They go to the endpoint as the client wrote them. What is said is read as chat messages, so that one
conversation stands behind every API. Knows the wire format alone: neither keys nor who answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..http_server import Response, event_stream
from ..models.base import ChatCompletion, Usage
from ..models.other_apis import OtherRequest
from ..models.parsing import read_usage
from .openai import BadRequest, OtherCall, read_object

_NOT_FORWARDED = ("model", "stream", "stream_options")
_SAID = (
    *(None, "message", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output"),
)
"""Types of items that are part of a conversation."""


def read_response_call(body: bytes) -> OtherCall:
    """Return the call of the Responses API in a request's body; raise BadRequest for any other."""
    request = read_object(body)
    if request.get("background"):
        raise BadRequest("'background' is not supported: leave it out, and wait for the answer")
    given = request.get("input")
    is_items = isinstance(given, list) and all(isinstance(item, dict) for item in given)
    if given is not None and not isinstance(given, str) and not is_items:
        raise BadRequest("'input' must be a string or an array of objects")
    try:
        messages = messages_asked(request)
    except (AttributeError, TypeError) as error:
        raise BadRequest(f"'input' cannot be read: {error}") from None
    fields = {name: value for name, value in request.items() if name not in _NOT_FORWARDED}
    return OtherCall(
        OtherRequest("/responses", "Responses API", fields, read_response),
        messages,
        stream=bool(request.get("stream")),
        previous=request.get("previous_response_id"),
    )


def read_embedding_call(body: bytes) -> OtherCall:
    """Return the call for embeddings in a request's body; raise BadRequest for any other.

    The client names the model: that of an agent's index is not the one that is evaluated.
    """
    request = read_object(body)
    if not request.get("input"):
        raise BadRequest("'input' must be a string or an array of strings")
    fields = {name: value for name, value in request.items() if name != "model"}
    other = OtherRequest(
        "/embeddings",
        "embeddings",
        fields,
        _read_embeddings,
        instead="give the agent's index another model",
        own_model=str(request.get("model") or "") or None,
    )
    return OtherCall(other, [], is_said=False)


def replied(document: Mapping[str, Any], *, stream: bool) -> Response:
    """Return a reply of the Responses API, as a stream if that was asked for."""
    return event_stream(b"".join(_events(document))) if stream else Response(200, document)


# ---- what is asked and answered, as messages


def messages_asked(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a request says."""
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
    system = body.get("instructions")
    head = [{"role": "system", "content": system}] if system else []
    return [*head, *_of_items(items)]


def read_response(document: Mapping[str, Any]) -> ChatCompletion:
    """Return the answer in a reply; raise LookupError, TypeError or AttributeError without one."""
    items = _of_items(document["output"])
    texts = [item["content"] for item in items if item["content"]]
    calls = [call for item in items for call in item.get("tool_calls", ())]
    refusals = [item["refusal"] for item in items if "refusal" in item]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"refusal": "".join(refusals)} if refusals else {}
    usage, cost = read_usage(document.get("usage"))
    return ChatCompletion(
        message=message,
        finish_reason=_finish_reason(document, bool(calls)),
        usage=usage,
        model=document.get("model"),
        cost_usd=cost,
    )


def _finish_reason(document: Mapping[str, Any], has_calls: bool) -> Any:
    """Return why an answer ended, in the words of chat completions."""
    status, details = document.get("status"), document.get("incomplete_details")
    if status == "incomplete" and isinstance(details, dict):
        reason = details.get("reason")
        return "length" if reason == "max_output_tokens" else reason
    return ("tool_calls" if has_calls else "stop") if status == "completed" else status


def _read_embeddings(document: Mapping[str, Any]) -> ChatCompletion:
    if not isinstance(document["data"], list):
        raise TypeError
    usage, cost = read_usage(document.get("usage"))
    counts = Usage(usage.prompt_tokens, 0, usage.prompt_tokens)
    return ChatCompletion(message={}, usage=counts, model=document.get("model"), cost_usd=cost)


def _of_items(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return items as messages: text and calls of one turn as one.

    Thoughts, and calls of the provider's own tools, are none.
    """
    messages: list[dict[str, Any]] = []
    for message in (_of_item(item) for item in items if item.get("type") in _SAID):
        before = messages[-1] if messages else {}
        if "tool_calls" in message and before.get("role") == "assistant":
            calls = [*before.get("tool_calls", ()), *message["tool_calls"]]
            messages[-1] = {**before, "tool_calls": calls}
        else:
            messages.append(message)
    return messages


def _of_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of the Responses API as a message."""
    if item.get("type") in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments", item.get("input"))
        function = {"name": item.get("name"), "arguments": arguments}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if item.get("type") in ("function_call_output", "custom_tool_call_output"):
        result = item.get("output")
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": result}
    message = {"role": item.get("role", "assistant"), "content": item.get("content")}
    if isinstance(content := message["content"], list):
        message["content"] = "".join(part.get("text") or "" for part in content)
        refusals = [part["refusal"] for part in content if part.get("refusal")]
        message |= {"refusal": "".join(refusals)} if refusals else {}
    return message


# ---- streams

_EMPTY: Mapping[str, Mapping[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
}
"""What items are before their content comes, by type."""


def _events(document: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of a reply, each part of it in one piece."""
    begun = {**document, "status": "in_progress", "output": [], "usage": None}
    ended = document.get("status")
    end = "incomplete" if ended == "incomplete" else "completed"
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *(event for place, item in enumerate(document["output"]) for event in _of(item, place)),
        {"type": f"response.{end}", "response": document},
    ]
    for number, event in enumerate(events):
        data = json.dumps({**event, "sequence_number": number}, ensure_ascii=True)
        yield f"event: {event['type']}\ndata: {data}\n\n".encode("ascii")


def _of(item: Mapping[str, Any], place: int) -> Iterator[dict[str, Any]]:
    """Yield the events of one item."""
    at = {"output_index": place, "item_id": item.get("id")}
    begun = {**item, **_EMPTY.get(str(item.get("type")), {}), "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": place, "item": begun}
    if item.get("type") == "message":
        for index, part in enumerate(item.get("content") or ()):
            yield from _of_part(part, {**at, "content_index": index})
    elif item.get("type") == "function_call":
        text = item.get("arguments") or ""
        kind = "response.function_call_arguments"
        yield {"type": f"{kind}.delta", **at, "delta": text}
        yield {"type": f"{kind}.done", **at, "arguments": text, "name": item.get("name")}
    yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _of_part(part: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    name, kind = "text", "response.output_text"
    more: dict[str, Any] = {"logprobs": part.get("logprobs") or []}
    if part.get("type") == "refusal":
        name, kind, more = "refusal", "response.refusal", {}
    text = part.get(name) or ""
    yield {"type": "response.content_part.added", **at, "part": {**part, name: ""}}
    yield {"type": f"{kind}.delta", **at, "delta": text, **more}
    yield {"type": f"{kind}.done", **at, name: text, **more}
    yield {"type": "response.content_part.done", **at, "part": part}
