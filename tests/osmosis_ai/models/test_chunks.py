"""Streams of chunks, joined to whole completions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from osmosis_ai.models.base import ChatCompletion
from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.parsing import parse_completion
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.models.transport.exchange import Reply


def parse(*events: Any) -> ChatCompletion:
    lines = [each if isinstance(each, str) else f"data: {json.dumps(each)}" for each in events]
    body = "\n\n".join([": keep-alive", *lines, "data: [DONE]", ""]).encode()
    reply = Reply(200, {"content-type": "text/event-stream; charset=utf-8"}, body)
    return parse_completion(reply, model="m", policy=RetryPolicy())


def test_a_text_may_hold_the_line_separators_of_unicode():
    text = json.dumps(chunk({"content": "4\u2028 2"}), ensure_ascii=False)
    assert parse(f"data: {text}").message["content"] == "4\u2028 2"


def chunk(delta: Any = None, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **choice}], "model": "m-1", "usage": None}


def test_texts_calls_and_usage_are_those_of_all_chunks():
    answer = parse(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "4"}),
        chunk({"content": "2", "reasoning_content": "six"}),
        chunk(
            {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]}
        ),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}),
        chunk({}, finish_reason="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
    )
    assert (answer.message["content"], answer.message["reasoning_content"]) == ("42", "six")
    (call,) = answer.message["tool_calls"]
    assert (call["id"], call["function"]) == ("a", {"name": "f", "arguments": '{"x": 1}'})
    assert (answer.finish_reason, answer.model, answer.usage.total_tokens) == (
        "tool_calls", "m-1", 5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"code": 429, "message": "slow down"}}, "rate_limited"),
        (chunk({}, error={"code": 502, "message": "upstream failed"}), "overloaded"),
        (chunk({}, finish_reason="error"), "overloaded"),
        ("data: {", "protocol"),
        (chunk("no delta"), "protocol"),
    ],
)
def test_a_stream_that_breaks_is_a_failure(event: Any, kind: str):
    with pytest.raises(CallFault) as caught:
        parse(chunk({"content": "4"}), event)
    assert (caught.value.kind, caught.value.retried) == (kind, True)
