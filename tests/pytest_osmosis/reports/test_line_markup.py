"""Where the lines of sections are broken in a narrow terminal."""

from __future__ import annotations

import pytest

from pytest_osmosis.reports.line_markup import hanging

ANSWER = "eight words that are too long for it"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        (
            f"  assistant  {ANSWER}",
            ["  assistant  eight words that are", f"{'':13}too long for it"],
        ),
        (f"{'':13}{ANSWER}", [f"{'':13}eight words that are", f"{'':13}too long for it"]),
        (f"    return {ANSWER}", [f"    return {ANSWER}"]),
        (f"{'':25}^^^^^^^^^^", [f"{'':25}^^^^^^^^^^"]),
        (f"{'':25}~~~~~^^^^^", [f"{'':25}~~~~~^^^^^"]),
    ],
)
def test_conversations_are_broken_between_words_and_code_is_not(line: str, lines: list[str]):
    assert hanging(line, 33) == lines
