"""Gemini's `generateContent` as chat messages: what is asked, and what is answered.

Knows the wire format alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from .models.base import ChatCompletion
from .models.parsing import read_usage

_REASONS = {"STOP": "stop", "MAX_TOKENS": "length"}
Part = Mapping[str, Any]


def messages_asked(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a request says; raise AttributeError or TypeError for one of another shape."""
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    text = _text(system.get("parts") or ())
    messages: list[dict[str, Any]] = [{"role": "system", "content": text}] if text else []
    for content in body.get("contents") or ():
        parts = content.get("parts") or ()
        if content.get("role") == "model":
            messages.append(_assistant(parts))
            continue
        for part in parts:
            if result := part.get("functionResponse"):
                messages.append(
                    {
                        "role": "tool",
                        "tool_call_id": result.get("id") or result.get("name"),
                        "content": json.dumps(result.get("response"), ensure_ascii=False),
                    }
                )
        if not any("functionResponse" in part for part in parts) or _text(parts):
            messages.append({"role": "user", "content": _text(parts)})
    return messages


def read_answer(document: Mapping[str, Any]) -> ChatCompletion:
    """Return the answer in a reply; raise LookupError, TypeError or AttributeError without one.

    A prompt that was refused has none: its answer is empty, and filtered.
    """
    candidates = document.get("candidates")
    if not candidates and not (document.get("promptFeedback") or {}).get("blockReason"):
        raise LookupError("candidates")
    first: Mapping[str, Any] = {"finishReason": "content_filter"}
    if candidates:
        first = candidates[0]
    reason = first.get("finishReason")
    counts = document.get("usageMetadata") or {}
    usage, _ = read_usage(
        {
            "prompt_tokens": _sum(counts, "promptTokenCount", "toolUsePromptTokenCount"),
            "completion_tokens": _sum(counts, "candidatesTokenCount", "thoughtsTokenCount"),
            "total_tokens": counts.get("totalTokenCount"),
            "cached_tokens": counts.get("cachedContentTokenCount"),
            "reasoning_tokens": counts.get("thoughtsTokenCount"),
        }
    )
    return ChatCompletion(
        message=_assistant((first.get("content") or {}).get("parts") or ()),
        finish_reason=None if reason is None else _REASONS.get(reason, str(reason).lower()),
        usage=usage,
        model=document.get("modelVersion"),
    )


def joined(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reply that the events of a stream make up, as far as it came."""
    whole: dict[str, Any] = {}
    parts: list[Part] = []
    reason = None
    for event in events:
        whole |= {name: value for name, value in event.items() if name != "candidates"}
        for candidate in (event.get("candidates") or ())[:1]:
            parts += (candidate.get("content") or {}).get("parts") or ()
            reason = candidate.get("finishReason") or reason
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": reason}
    return {**whole, "candidates": [candidate] if parts or reason else []}


def _sum(counts: Mapping[str, Any], *names: str) -> int | None:
    known = [counts[name] for name in names if counts.get(name) is not None]
    return sum(known) if known else None


def _assistant(parts: Iterable[Part]) -> dict[str, Any]:
    """Return what the model said as one message, without its thoughts."""
    parts = [part for part in parts if not part.get("thought")]
    calls = [
        {
            "id": call.get("id") or call.get("name"),
            "type": "function",
            "function": {
                "name": call.get("name"),
                "arguments": json.dumps(call.get("args") or {}, ensure_ascii=False),
            },
        }
        for part in parts
        if (call := part.get("functionCall"))
    ]
    message = {"role": "assistant", "content": _text(parts) or None}
    return {**message, "tool_calls": calls} if calls else message


def _text(parts: Iterable[Part]) -> str:
    return "".join(part.get("text") or "" for part in parts)
