"""An arithmetic problem as a list of steps on exact fractions.

It knows neither the words that a problem was posed in nor the tools that may work it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Operator = Literal["add", "subtract", "multiply", "divide"]


@dataclass(frozen=True, slots=True)
class Earlier:
    """An operand that is the result of an earlier step."""

    index: int


Operand = Fraction | Earlier


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on two operands."""

    operator: Operator
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Problem:
    """Steps in an order in which they can be worked, and the operand that is the answer."""

    steps: tuple[Step, ...]
    answer: Operand

    @property
    def difficulty(self) -> float:
        """One for each step, and a quarter for each digit beyond the first of its numbers."""
        return sum(1.0 + 0.25 * (_digits(step.left) + _digits(step.right)) for step in self.steps)

    def solution(self) -> Fraction | None:
        """The exact value, or None where it is undefined."""
        values: list[Fraction | None] = []
        for step in self.steps:
            left, right = _value(step.left, values), _value(step.right, values)
            values.append(apply(step.operator, left, right))
        return _value(self.answer, values)


def apply(operator: Operator, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    """One operation; None (undefined) for a division by zero, an undefined or a huge operand."""
    if left is None or right is None or _is_huge(left) or _is_huge(right):
        return None
    if operator == "add":
        return left + right
    if operator == "subtract":
        return left - right
    if operator == "multiply":
        return left * right
    return left / right if right else None


def _is_huge(number: Fraction) -> bool:
    """So large that a result of it might not fit a float ("it times it, then it times it …")."""
    return number.numerator.bit_length() + number.denominator.bit_length() > 512


def _value(operand: Operand, values: Sequence[Fraction | None]) -> Fraction | None:
    return values[operand.index] if isinstance(operand, Earlier) else operand


def _digits(operand: Operand) -> int:
    if isinstance(operand, Earlier):
        return 0
    return len(str(abs(operand.numerator))) - 1 + (operand.denominator != 1)
