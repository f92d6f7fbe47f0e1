"""Anthropic's Messages API as the bridge speaks it: for agents with a client of that kind.

Translates to chat completions and back, so that one model and one trajectory stand behind both.
Knows the wire format alone: neither keys nor who answers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..agents.results import CompletionsResult
from ..http_server import Response, event_stream
from ..models.base import ChatCompletion
from ..models.errors import ProviderError
from ..models.other_apis import OtherRequest
from ..models.parsing import read_usage
from .openai import NO_RETRY, BadRequest, OtherCall, check_tools, provider_status, read_object

_AS_THEY_ARE = ("max_tokens", "temperature", "top_p", "top_k")
_TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}

_TRANSLATED = ("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking")
"""Types of blocks that chat completions have too, or, as thoughts, do without."""

Block = Mapping[str, Any]


def read_message_call(body: bytes) -> OtherCall:
    """Return the call in a request's body; raise BadRequest for any other.

    It goes out as it is where the model has this API, else as a chat completion.
    """
    request = read_object(body)
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a non-empty array")
    params = {name: request[name] for name in _AS_THEY_ARE if request.get(name) is not None}
    if request.get("stop_sequences"):
        params["stop"] = request["stop_sequences"]
    check_tools(request)
    if request.get("tools"):
        params["tools"] = [_tool(tool) for tool in request["tools"]]
    if request.get("tool_choice"):
        params["tool_choice"] = _tool_choice(request["tool_choice"])
    history = [*_system(request.get("system"))]
    for message in messages:
        history.extend(_translated(message))
    fields = {name: value for name, value in request.items() if name not in ("model", "stream")}
    other = OtherRequest(
        "/messages",
        "Messages API",
        fields,
        read_message,
        may_translate=True,
        lost=sorted({*_lost(messages), *_lost_tools(request.get("tools") or ())}),
    )
    return OtherCall(other, history, params, stream=bool(request.get("stream")))


def message(result: CompletionsResult, *, model: str, stream: bool) -> Response:
    """Return the reply to a call, as a stream if that was asked for: each block in one piece."""
    document = result.document
    if document is None:
        document = {**_frame(result, model), "content": list(_content(result))}
    return event_stream(b"".join(_events(document))) if stream else Response(200, document)


def read_message(document: Mapping[str, Any]) -> ChatCompletion:
    """Return the answer in a reply; raise LookupError, TypeError or BadRequest without one."""
    usage, cost = read_usage(document.get("usage"))
    return ChatCompletion(
        message=assistant(document["content"]),
        finish_reason=document.get("stop_reason"),
        usage=usage,
        model=document.get("model"),
        cost_usd=cost,
    )


def message_refused(status: int, text: str) -> Response:
    """Return an error that no other try would change."""
    kind = _ERROR_TYPES.get(status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": text}}
    return Response(status, body, headers=NO_RETRY)


def message_provider_refused(error: ProviderError) -> Response:
    """Return the provider's failure, with its own status where it had one."""
    return message_refused(provider_status(error), str(error))


# ---- what is asked


def _system(system: Any) -> Iterator[dict[str, Any]]:
    if system:
        yield {"role": "system", "content": system if isinstance(system, str) else _text(system)}


def _translated(message: Any) -> Iterator[dict[str, Any]]:
    """One message as one of OpenAI's, or, with tool results, as several."""
    role = message.get("role") if isinstance(message, dict) else None
    if role not in ("user", "assistant"):
        raise BadRequest("each of 'messages' must be an object with the role user or assistant")
    content = message.get("content")
    if isinstance(content, str):
        yield {"role": role, "content": content}
        return
    blocks = _blocks(content)
    if role == "assistant":
        yield assistant(blocks)
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block.get("tool_use_id"),
                "content": _text(block.get("content")),
            }
    parts = [part for block in blocks if (part := _part(block)) is not None]
    if parts:
        texts = [part["text"] for part in parts if part["type"] == "text"]
        yield {"role": "user", "content": "".join(texts) if len(texts) == len(parts) else parts}


def assistant(blocks: Iterable[Block]) -> dict[str, Any]:
    """Return what an assistant said as one of OpenAI's messages."""
    blocks = list(blocks)
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {
                "name": block.get("name"),
                "arguments": json.dumps(block.get("input") or {}),
            },
        }
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    message = {"role": "assistant", "content": _text(blocks) or None}
    return {**message, "tool_calls": calls} if calls else message


def _lost(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what chat completions cannot hold of messages that have been translated."""
    for block in (block for each in messages for block in _blocks_in(each.get("content"))):
        if block.get("type") not in _TRANSLATED:
            yield f"block of type {block.get('type')!r}"
        if block.get("type") == "tool_result":
            inner = _blocks_in(block.get("content"))
            yield from (
                f"{b.get('type')} in a tool result" for b in inner if b.get("type") != "text"
            )


def _blocks_in(content: Any) -> list[Block]:
    return [] if isinstance(content, str) else _blocks(content)


def _lost_tools(tools: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    kinds = (tool.get("type") for tool in tools)
    yield from (f"tool of type {kind!r}" for kind in kinds if kind not in (None, "custom"))


def _part(block: Block) -> dict[str, Any] | None:
    if block.get("type") == "text":
        return {"type": "text", "text": _text([block])}
    if block.get("type") != "image":
        return None
    source = block.get("source")
    if not isinstance(source, dict):
        raise BadRequest("the 'source' of an image must be an object")
    url = source.get("url")
    if url is None:
        url = f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _text(content: Any) -> str:
    """Return the text of a block's content; of blocks of other kinds, none."""
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in _blocks(content) if block.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _blocks(content: Any) -> list[Block]:
    if content is None:
        return []
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return content
    raise BadRequest("'content' must be a string or an array of blocks")


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(tool.get("name"), str):
        raise BadRequest("each of 'tools' must be an object with a name")
    function = {"name": tool["name"], "parameters": tool.get("input_schema") or {}}
    if tool.get("description"):
        function["description"] = tool["description"]
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if kind not in _TOOL_CHOICES:
        raise BadRequest("'tool_choice' must be of type auto, any, tool or none")
    return _TOOL_CHOICES[kind]


# ---- what is answered


def _frame(result: CompletionsResult, model: str) -> dict[str, Any]:
    reason = "tool_calls" if result.has_tool_calls else result.finish_reason
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_reason": _STOP_REASONS.get(reason, "end_turn"),
        "stop_sequence": None,
        "usage": _usage(result),
    }


def _usage(result: CompletionsResult) -> dict[str, int]:
    """Return the usage in Anthropic's words, whose input tokens leave out those of the cache."""
    details = result.usage_details.get("prompt_tokens_details") or {}
    prompt, cached = result.usage["prompt_tokens"], details.get("cached_tokens") or 0
    cached = min(cached, prompt) if isinstance(cached, int) else 0
    return {
        "input_tokens": prompt - cached,
        "output_tokens": result.usage["completion_tokens"],
        **({"cache_read_input_tokens": cached} if cached else {}),
    }


def _content(result: CompletionsResult) -> Iterator[dict[str, Any]]:
    if result.content:
        yield {"type": "text", "text": result.content}
    for call in result.tool_calls:
        function = call.get("function") or {}
        yield {
            "type": "tool_use",
            "id": call.get("id"),
            "name": function.get("name"),
            "input": _input(function.get("arguments")),
        }


def _input(arguments: Any) -> dict[str, Any]:
    """Return a tool call's arguments as an object, even if the model wrote something else."""
    try:
        value = json.loads(arguments)
    except (TypeError, ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": arguments}


def _events(document: Mapping[str, Any]) -> Iterator[bytes]:
    ended = {name: document.get(name) for name in ("stop_reason", "stop_sequence")}
    opened = {**document, "content": [], "stop_reason": None, "stop_sequence": None}
    yield _event("message_start", message=opened)
    for index, block in enumerate(document["content"]):
        opened_block, deltas = _opened(block)
        yield _event("content_block_start", index=index, content_block=opened_block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta=ended, usage=document.get("usage"))
    yield _event("message_stop")


def _opened(block: Block) -> tuple[Block, list[dict[str, Any]]]:
    """Return a block before its content came, and the content that comes."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signature = {"type": "signature_delta", "signature": block.get("signature") or ""}
            return {**block, "thinking": "", "signature": ""}, [thought, signature]
        case "tool_use" | "server_tool_use":
            text = json.dumps(block["input"])
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": text}]
    return block, []


def _event(kind: str, **more: Any) -> bytes:
    data = json.dumps({"type": kind, **more}, ensure_ascii=True)
    return f"event: {kind}\ndata: {data}\n\n".encode("ascii")
