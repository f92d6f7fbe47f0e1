"""Texts and numbers, as they are printed."""

from __future__ import annotations

import pytest

from pytest_osmosis.escaping import dollars, exact_text


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
def test_all_digits_are_written_but_those_of_rounding(number: float, text: str) -> None:
    assert exact_text(number) == text
