"""Whatever a 200 holds: a completion, or one class of error."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.models.base import ChatCompletion
from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.parsing import parse_completion
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.models.transport.exchange import Reply
from tests.support.endpoints import completion


def parse(body: bytes) -> ChatCompletion:
    reply = Reply(200, {"content-type": "application/json"}, body)
    return parse_completion(reply, model="m", policy=RetryPolicy())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    ("choices",),
    ("choices", 0),
    ("choices", 0, "message"),
    ("choices", 0, "message", "content"),
    ("choices", 0, "message", "tool_calls"),
    ("choices", 0, "finish_reason"),
    ("choices", 0, "logprobs"),
    ("choices", 0, "token_ids"),
    ("usage",),
    ("usage", "prompt_tokens"),
    ("usage", "cost"),
    ("error",),
    ("model",),
)


@given(field=st.sampled_from(FIELDS), value=JSON)
def test_anything_anywhere_is_a_completion_or_a_fault(
    field: tuple[str | int, ...], value: Any
) -> None:
    body = completion("42", usage={"prompt_tokens": 1, "completion_tokens": 2})
    place: Any = body
    for step in field[:-1]:
        place = place[step]
    place[field[-1]] = value
    try:
        answer = parse(json.dumps(body).encode())
    except CallFault:
        return
    assert answer.message["content"] is None or isinstance(answer.message["content"], str)
    json.dumps([answer.message, answer.usage.prompt_tokens, answer.cost_usd]).encode("utf-8")
    counts = (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens)
    assert all(count is None or (type(count) is int and count >= 0) for count in counts)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_completion_or_a_fault(body: bytes) -> None:
    try:
        parse(body)
    except CallFault as fault:
        assert fault.kind == "protocol"


def test_parts_without_text_are_left_out() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "4"}, "2", 7, None]
    assert parse(json.dumps(completion({"content": parts})).encode()).message == {
        "role": "assistant",
        "content": "42",
    }


def test_a_pair_of_surrogates_is_one_character() -> None:
    body = json.dumps(completion("a")).replace('"a"', r'"\ud83d\ude00 \uD83D \\ud83d"')
    assert parse(body.encode()).message["content"] == "\U0001f600 \ufffd \\ud83d"


def test_numbers_that_are_no_numbers_become_null() -> None:
    body = completion("42")
    body["choices"][0]["logprobs"] = {"content": [{"logprob": float("-inf")}]}
    assert parse(json.dumps(body).encode()).logprobs == {"content": [{"logprob": None}]}
