"""Texts and numbers, as they are printed."""

from __future__ import annotations

import pytest

from pytest_osmosis.escaping import dollars


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.0, "$0.0000"), (2.5e-5, "<$0.0001"), (6e-5, "$0.0001"), (1234.5, "$1,234.5000")],
)
def test_an_amount_that_is_not_0_does_not_look_like_0(amount: float, text: str):
    assert dollars(amount) == text
