"""The `ChatCompletion` in the body of a 200, also of endpoints that follow the API loosely.

An empty answer is an answer; unknown token counts stay unknown; text parts are joined; lone
surrogates become U+FFFD. A body that cannot be an answer raises `CallFault`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .base import INVALID_TEXT, ChatCompletion, Usage
from .errors import CallFault
from .faults import failure_in
from .retry import RetryPolicy
from .transport.exchange import EVENT_STREAM, Reply

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""The escape of half a character, of a pair or alone."""
_SHOWN_CHARS = 200
_MAX_TOKENS = 2**53


def _no_number(name: str) -> None:
    """NaN and Infinity are no JSON: they become null and travel no further."""


_decode = json.JSONDecoder(parse_constant=_no_number).decode


def parse_completion(reply: Reply, *, model: str, policy: RetryPolicy) -> ChatCompletion:
    """Return the completion in `reply`; raise CallFault where there is none."""
    data = _load_stream(reply) if EVENT_STREAM in reply.content_type else load_object(reply)
    failure = failure_in(data, model=model, policy=policy)
    if failure is not None:
        raise failure
    choice = _first_choice(data)
    message = _message(choice)
    usage, cost = read_usage(data.get("usage"))
    reason = choice.get("finish_reason")
    named, ids = data.get("model"), choice.get("token_ids") or data.get("token_ids")
    return ChatCompletion(
        message=message,
        finish_reason=reason if isinstance(reason, str) else None,
        usage=usage,
        token_ids=None if ids is None else _token_ids(ids),
        logprobs=choice.get("logprobs", data.get("logprobs")),
        further=_further(data["choices"]) if len(data["choices"]) > 1 else (),
        model=named if isinstance(named, str) else None,
        cost_usd=cost,
        notes=(INVALID_TEXT,) if _HALF.search(reply.body) and _was_invalid(message) else (),
    )


def _was_invalid(message: Mapping[str, Any]) -> bool:
    """Return whether a message held half a character, in the place of which is U+FFFD now."""
    return "\\ufffd" in json.dumps(message)


def load_object(reply: Reply) -> dict[str, Any]:
    """Return the JSON object in the body; raise CallFault when it holds anything else."""
    body = reply.body
    try:
        text = body.decode("utf-8")
        data: Any = _decode(text.lstrip("\ufeff"))
    except UnicodeDecodeError:
        raise _not_json(reply, "is not UTF-8") from None
    except RecursionError:
        raise _not_json(reply, "is nested too deeply") from None
    except ValueError:  # also a number of too many digits
        raise _not_json(reply, "is not JSON") from None
    if not isinstance(data, dict):
        what = f"a {reply.status} whose JSON is {_type(data)}, no object"
        raise CallFault("protocol", summary=what)
    if _HALF.search(body):
        return {key: _without_surrogates(value) for key, value in data.items()}
    return data


def _load_stream(reply: Reply) -> dict[str, Any]:
    """Return the completion that a stream makes up; raise CallFault for what is none."""
    from .chunks import events_in, joined_chunks  # few endpoints stream to us

    try:
        document = joined_chunks(events_in(reply.body))
        reasons = [choice["finish_reason"] for choice in document["choices"]]
        if not any(reasons) and b"[DONE]" not in reply.body and "error" not in document:
            raise CallFault("connection", "a stream that ends before its answer", retried=True)
        return {name: _without_surrogates(value) for name, value in document.items()}
    except (ValueError, RecursionError, TypeError, AttributeError):
        raise _not_json(reply, "is no stream of completions") from None


def _not_json(reply: Reply, what: str) -> CallFault:
    if not reply.body:
        return CallFault("protocol", summary=f"a {reply.status} with an empty body", retried=True)
    # Redaction needs whole secrets, so the text is cut to its length after it.
    shown = reply.body[: 8 * _SHOWN_CHARS].decode("utf-8", "replace")
    summary = f"a {reply.status} that {what} ({reply.content_type or 'no content type'})"
    return CallFault("protocol", shown, summary=summary, retried=True)


def _first_choice(data: Mapping[str, Any]) -> dict[str, Any]:
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise CallFault("protocol", summary="an answer without choices", retried=True)
    return choice


def _further(choices: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    """Return the choices beyond the first, their messages as that of the first is read."""
    return [{**each, "message": _message(each)} for each in choices[1:] if isinstance(each, dict)]


def _message(choice: Mapping[str, Any]) -> dict[str, Any]:
    message = choice.get("message")
    if not isinstance(message, dict):
        raise CallFault("protocol", summary="an answer without a message", retried=True)
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = _joined(content)
    elif content is not None and not isinstance(content, str):
        raise CallFault("protocol", summary=f"an answer whose content is {_type(content)}, no text")
    if "content" not in message:
        message["content"] = None
    if "role" not in message:
        message["role"] = "assistant"
    calls = message.get("tool_calls")
    if calls and not _are_calls(calls):  # SGLang sends null, others an empty list
        raise CallFault("protocol", summary="an answer whose tool_calls is no list of calls")
    return message


def _joined(parts: list[Any]) -> str:
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _are_calls(calls: object) -> bool:
    return isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
    )


def read_usage(usage: object) -> tuple[Usage, float | None]:
    """Return the counts in a reply's `usage`, and the price that some endpoints put there.

    Read as chat completions, responses and Anthropic's messages have them. Prompt tokens include
    those of caches, completion tokens all that `total_tokens` has beyond the prompt: thoughts that
    an endpoint counts apart are billed.
    """
    if not isinstance(usage, dict):
        return _UNKNOWN, None
    details = {name: usage[name] for name in _DETAILS if isinstance(usage.get(name), dict)}
    cached = _first(usage, _CACHED, "prompt_tokens_details", "input_tokens_details")
    reasoning = _first(
        usage, ("reasoning_tokens",), "completion_tokens_details", "output_tokens_details"
    )
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if "input_tokens" in usage and prompt is None:
        prompt = _count(usage["input_tokens"])
        if prompt is not None and "input_tokens_details" not in usage:  # Anthropic's
            prompt += sum(_count(usage.get(name)) or 0 for name in _BESIDE_INPUT)
    if completion is None:
        completion = _count(usage.get("output_tokens"))
    total = _count(usage.get("total_tokens"))
    if prompt is not None and completion is not None:
        total = max(total or 0, prompt + completion)
        completion = total - prompt
    cost = usage.get("cost")
    counts = Usage(prompt, completion, total, cached, reasoning, details)
    return counts, None if cost is None else _price(cost)


_UNKNOWN = Usage()
_DETAILS = (
    *("prompt_tokens_details", "completion_tokens_details"),
    *("input_tokens_details", "output_tokens_details"),
)
_CACHED = (
    *("cached_tokens", "cache_read_input_tokens"),
    "prompt_cache_hit_tokens",  # DeepSeek's
)
_BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")


def _first(usage: Mapping[str, Any], names: Sequence[str], *places: str) -> int | None:
    """Return the first count of these names, in the details or beside them."""
    parts = [part for place in places if isinstance(part := usage.get(place), dict)]
    for part in (*parts, usage):
        for name in names:
            if name in part and (count := _count(part[name])) is not None:
                return count
    return None


def _count(value: object) -> int | None:
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def _price(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value < _MAX_TOKENS else None
    return None


def _token_ids(ids: object) -> list[int] | None:
    """Return the ids in a choice, or, as trainers send them, in the answer itself."""
    if isinstance(ids, list) and all(type(token) is int for token in ids):
        return ids
    return None


def _type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value
