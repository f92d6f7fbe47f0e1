"""Whatever a 200 holds: a completion, or one class of error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.models.base import ChatCompletion, price
from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.parsing import parse_completion, read_usage
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
    ("choices", 0, "error"),
    ("choices", 0, "logprobs"),
    ("choices", 0, "token_ids"),
    ("usage",),
    ("usage", "prompt_tokens"),
    ("usage", "cost"),
    ("error",),
    ("model",),
)


@given(field=st.sampled_from(FIELDS), value=JSON)
def test_anything_anywhere_is_a_completion_or_a_fault(field: tuple[str | int, ...], value: Any):
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
def test_any_bytes_are_a_completion_or_a_fault(body: bytes):
    try:
        parse(body)
    except CallFault as fault:
        assert fault.kind == "protocol"


def test_parts_without_text_are_left_out():
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "4"}, "2", 7, None]
    assert parse(json.dumps(completion({"content": parts})).encode()).message == {
        "role": "assistant",
        "content": "42",
    }


def test_a_pair_of_surrogates_is_one_character():
    body = json.dumps(completion("a")).replace('"a"', r'"\ud83d\ude00 \uD83D \\ud83d"')
    assert parse(body.encode()).message["content"] == "\U0001f600 \ufffd \\ud83d"


def test_numbers_that_are_no_numbers_become_null():
    body = completion("42")
    body["choices"][0]["logprobs"] = {"content": [{"logprob": float("-inf")}]}
    assert parse(json.dumps(body).encode()).logprobs == {"content": [{"logprob": None}]}


OUTSIDE = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "total_tokens": 1110,
    "completion_tokens_details": {"reasoning_tokens": 1000},
}
CACHED = {
    "prompt_tokens": 1_000_000,
    "completion_tokens": 0,
    "total_tokens": 1_000_000,
    "prompt_tokens_details": {"cached_tokens": 900_000},
}


@pytest.mark.parametrize(
    ("usage", "prompt", "completion", "cached", "reasoning"),
    [
        (OUTSIDE, 100, 1010, None, 1000),
        (CACHED, 1_000_000, 0, 900_000, None),
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 1}, 3, 2, None, None),
        ({"prompt_tokens": 3, "total_tokens": 9}, 3, None, None, None),
        # DeepSeek, Anthropic, the Responses API.
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}, 9, 1, 8, None),
        ({"input_tokens": 2, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 5,
          "output_tokens": 7}, 15, 7, 8, None),
        ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 7,
          "output_tokens_details": {"reasoning_tokens": 6}, "total_tokens": 16}, 9, 7, 8, 6),
    ],
)  # fmt: skip
def test_every_token_is_counted_once_and_kinds_are_kept(
    usage: dict[str, Any],
    prompt: int,
    completion: int | None,
    cached: int | None,
    reasoning: int | None,
):
    found, _ = read_usage(usage)
    assert (found.prompt_tokens, found.completion_tokens) == (prompt, completion)
    assert (found.cached_tokens, found.reasoning_tokens) == (cached, reasoning)
    if completion is not None:
        assert found.total_tokens == prompt + completion


@pytest.mark.parametrize(
    ("usage", "prices", "dollars"),
    [
        (OUTSIDE, (1.0, 1000.0), 1.0101),
        (CACHED, (1.0, 2.0, 0.1), 0.19),
        (CACHED, (1.0, 2.0), 1.0),
        (OUTSIDE, (1.0, 1000.0, 0.0), 1.0101),
        ({"prompt_tokens": 3}, (1.0, 2.0), None),
    ],
)
def test_all_tokens_are_billed_and_cached_ones_at_their_price(
    usage: dict[str, Any], prices: tuple[float, ...], dollars: float | None
):
    answer = ChatCompletion(message={}, usage=read_usage(usage)[0])
    price(answer, prices)
    assert answer.cost_usd == (None if dollars is None else pytest.approx(dollars))
