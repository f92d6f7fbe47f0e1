"""Streamed chat completions, joined to whole ones. Knows the events of a stream, and no HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def events_in(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a stream's events; ValueError: one is no JSON."""
    for line in body.splitlines():  # of bytes: a text may hold other ends of lines than these
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data in (b"", b"[DONE]"):
            continue
        event = json.loads(data)
        if isinstance(event, dict):
            yield event


def joined_chunks(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the completion that the chunks of a stream make up, as if it had come whole."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    completion: dict[str, Any] = {}
    reason = None
    for event in events:
        completion |= {name: event[name] for name in ("usage", "model", "error") if event.get(name)}
        for choice in (event.get("choices") or ())[:1]:
            completion |= {"error": choice["error"]} if choice.get("error") else {}
            delta = choice.get("delta") or {}
            for name in ("content", "refusal", "reasoning_content"):
                if delta.get(name):
                    message[name] = (message.get(name) or "") + delta[name]
            for place, piece in enumerate(delta.get("tool_calls") or ()):
                empty = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece.get("index", place), empty)
                call["id"] = call["id"] or piece.get("id")
                for name, text in (piece.get("function") or {}).items():
                    call["function"][name] = call["function"].get(name, "") + (text or "")
            reason = choice.get("finish_reason") or reason
    if calls:
        message["tool_calls"] = list(calls.values())
    return {**completion, "choices": [{"message": message, "finish_reason": reason}]}
