"""How numbers are written."""

from __future__ import annotations

import pytest

from pytest_osmosis.escaping import exact_text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.9099999999999999, "0.91"), (1.0, "1.0"), (1 / 3, "0.3333333333333333"), (0.5, "0.5")],
)
def test_all_digits_are_written_but_those_of_rounding(number: float, text: str) -> None:
    assert exact_text(number) == text
