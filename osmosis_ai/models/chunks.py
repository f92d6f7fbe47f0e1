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
        event = json.loads(data, parse_constant=lambda name: None)  # NaN is no JSON
        if isinstance(event, dict):
            yield event


def joined_chunks(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the completion that the chunks of a stream make up, as if it had come whole."""
    completion: dict[str, Any] = {}
    answers: dict[int, _Answer] = {}
    for event in events:
        completion |= {name: event[name] for name in ("usage", "model", "error") if event.get(name)}
        for choice in event.get("choices") or ():
            completion |= {"error": choice["error"]} if choice.get("error") else {}
            answers.setdefault(choice.get("index") or 0, _Answer()).add(choice)
    choices = [answers[index].choice(index) for index in sorted(answers)]
    return {**completion, "choices": choices or [_Answer().choice(0)]}


class _Answer:
    """One of the answers that a stream brings, as far as it came."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: dict[int, dict[str, Any]] = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._reason: Any = None

    def add(self, choice: Mapping[str, Any]) -> None:
        """Take a piece of it."""
        message, delta = self._message, choice.get("delta") or {}
        for name in ("content", "refusal", "reasoning_content"):
            if delta.get(name):
                message[name] = (message.get(name) or "") + delta[name]
        for place, piece in enumerate(delta.get("tool_calls") or ()):
            empty = {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
            call = self._calls.setdefault(piece.get("index", place), empty)
            call["id"] = call["id"] or piece.get("id")
            for name, text in (piece.get("function") or {}).items():
                call["function"][name] = call["function"].get(name, "") + (text or "")
        for name, tokens in (choice.get("logprobs") or {}).items():
            if isinstance(tokens, list):
                self._logprobs.setdefault(name, []).extend(tokens)
        self._reason = choice.get("finish_reason") or self._reason

    def choice(self, index: int) -> dict[str, Any]:
        """Return it as a completion has it."""
        if self._calls:
            self._message["tool_calls"] = list(self._calls.values())
        choice = {"index": index, "message": self._message, "finish_reason": self._reason}
        return {**choice, "logprobs": self._logprobs} if self._logprobs else choice
