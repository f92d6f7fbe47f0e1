"""What the embedded model understands of prose, and of what tools say."""

from __future__ import annotations

from fractions import Fraction

import pytest

from osmosis_ai.embedded.arithmetic import Problem, apply, read_problem
from osmosis_ai.embedded.solver import read_number


def solution(problem: Problem | None) -> Fraction | None:
    """The value of the problem's answer, worked step by step."""
    assert problem is not None
    values: list[Fraction | None] = []
    for operator, *operands in problem.steps:
        left, right = (values[one] if isinstance(one, int) else one for one in operands)
        values.append(None if left is None or right is None else apply(operator, left, right))
    return values[-1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("What is 17 * 23?", 391),
        ("(3 + 4) times 5", 35),
        ("12 plus 5, then multiply by 3", 51),
        ("12 plus 5 times 3", 27),
        ("Start with 12. Add 5. Multiply the result by 3.", 51),
        ("What is the sum of 3, 4 and 5?", 12),
        ("Subtract 4 from 10", 6),
        ("Add 5 to 12, then take away 4", 13),
        ("the product of 25 and 16, minus 3 times 45", 265),
        ("What is half of 9 plus 2.5?", 7),
        ("the product of 0 and 4 plus 1", 1),
        ("1,234.5 + 0.5", 1235),
        ("(-3 - -4) * ((12 - 3.5) * 4 + 18 / 6)", 37),
        ("7 × 8 ÷ 2", 28),
        ("3x4", 12),
        ("10 / 0", None),
        ("Row 7 (hard): what is 3 + 4? Use the tools at most 3 times. Answer after ####.", 7),
        ("What is 17 minus 5? Use the tools add, subtract, multiply and divide.", 12),
    ],
)
def test_arithmetic_in_prose_is_understood(text: str, value: int | None):
    assert solution(read_problem(text)) == value


@pytest.mark.parametrize("text", ["", "Plan a trip for 2 people.", "(" * 500, "+ - * /", "a/b"])
def test_text_without_arithmetic_holds_no_problem(text: str):
    assert read_problem(text) is None


def test_squaring_again_and_again_ends():
    assert solution(read_problem("2 * 2. " + "Multiply it by it. " * 80)) is None


@pytest.mark.parametrize(
    ("content", "number"),
    [
        ("391", 391),
        ("391.5", Fraction("391.5")),
        ('{"result": -4}', -4),
        ("The sum of 3 and 4 is 7.", 7),
        ("Error: 3 is no number", None),
        ('{"error": "no 5"}', None),
        ("[]", None),
        ("true", None),
    ],
)
def test_a_tool_result_is_read_as_the_number_it_means(content: str, number: int | None):
    assert read_number(content) == number
