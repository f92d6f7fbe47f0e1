"""JSON with less ado is the JSON of the standard library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai.jsontext import compact_decoder, compact_encoder

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES.filter(lambda leaf: leaf not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
BLANKS = st.text(" \t\n\r", max_size=3)


@given(VALUES, st.booleans())
def test_what_is_written_is_what_json_writes(value: Any, ensure_ascii: bool) -> None:
    expected = json.dumps(value, ensure_ascii=ensure_ascii, separators=(",", ":"))
    assert compact_encoder(ensure_ascii=ensure_ascii)(value) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, {(1, 2): 3}])
def test_what_json_refuses_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as expected:
        json.dumps(value, allow_nan=False)
    with pytest.raises(expected.type):
        compact_encoder(ensure_ascii=True)(value)


def test_a_value_that_contains_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(RecursionError):
        compact_encoder(ensure_ascii=True)(value)


@given(VALUES, BLANKS, BLANKS)
def test_what_is_read_is_what_json_reads(value: Any, before: str, behind: str) -> None:
    text = f"{before}{json.dumps(value)}{behind}"
    assert compact_decoder()(text) == json.loads(text)


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"a":1} x', "[1,]", "nul", "1 2", "\x0b1", "1\x0b"]
)
def test_what_is_no_json_is_told_in_the_same_words(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as found:
        compact_decoder()(text)
    assert str(found.value) == str(expected.value)
