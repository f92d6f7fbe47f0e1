"""Texts and numbers, as they are printed."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from osmosis_ai.escaping import encodable_json
from pytest_osmosis.escaping import dollars, encodable, exact_text, percent

ANY = st.text(st.characters(exclude_categories=()) | st.characters(categories=["Cs"]))


@given(ANY)
@example("\\ud83d \\\ud83d \ud83d\ude00 \ude00\ud83d")
def test_any_text_is_one_that_every_file_can_hold(text: str):
    whole = encodable(text)
    whole.encode("utf-8")
    assert json.loads(encodable_json(json.dumps({text: [text]}))) == {whole: [whole]}


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.0, "$0.0000"), (2.5e-5, "<$0.0001"), (6e-5, "$0.0001"), (1234.5, "$1,234.5000")],
)
def test_an_amount_that_is_not_0_does_not_look_like_0(amount: float, text: str):
    assert dollars(amount) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.9099999999999999, "0.91"), (1.0, "1.0"), (1 / 3, "0.3333333333333333"), (0.5, "0.5")],
)
def test_all_digits_are_written_but_those_of_rounding(number: float, text: str):
    assert exact_text(number) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.95, "95%"), (1 - 0.05 / 3, "98.3%"), (0.9995, "99.95%"), (1.0, "100%"), (0.0, "0%"),
        (0.075, "7.5%"), (1 / 3, "33.3%"),
    ],
)  # fmt: skip
def test_a_percentage_has_three_digits_and_less_than_all_is_never_100(share: float, text: str):
    assert percent(share) == text
