"""Arithmetic in a sentence: "What is (3 + 4) times 5?" -> a list of steps on exact fractions.

The grammar, over known tokens (other words are dropped; a token that starts no clause is skipped):

    text     = clause*                            a later clause may continue from the value before
    clause   = command | operator sum | sum
    command  = "add" list ["to" sum] | "subtract" sum ["from" sum]
             | ("multiply" | "divide") [sum] "by" sum | "multiply" list
    list     = sum (("," | "and")+ sum)*
    sum      = product (("+" | "-") product)*
    product  = factor (("*" | "/") factor)*
    factor   = "-" factor | number | "(" sum ")" | "it" | ("twice" | "half") factor
             | ("sum" | "difference" | "product") product (("," | "and")+ product)*

Knows nothing of models or tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Literal

Operator = Literal["add", "subtract", "multiply", "divide"]

_MAX_TOKENS = 400
_MAX_DIGITS = 40
_MAX_DEPTH = 40
_TOKEN = re.compile(
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
    r"|(?:divided|multiplied)\s+by|added\s+to|[a-z]+|[-+*/(),.;:?!\n×÷]"
)
_TOKENS = {
    **dict.fromkeys("+-*/(),", ""),
    **dict.fromkeys((".", ";", ":", "?", "!", "\n", "then"), "."),
    **dict.fromkeys(("×", "times", "multiplied", "x"), "*"),
    **dict.fromkeys(("÷", "divided"), "/"),
    **dict.fromkeys(("plus", "added"), "+"),
    **dict.fromkeys(("subtract", "take"), "subtract"),
    **dict.fromkeys(("sum", "total"), "sum"),
    **dict.fromkeys(("it", "that", "result", "answer"), "it"),
    **dict.fromkeys(("minus", "add", "multiply", "divide", "difference", "product"), ""),
    **dict.fromkeys(("twice", "half", "and", "by", "to", "from"), ""),
}
"""Words and symbols of the grammar, with the token that each stands for ("": itself)."""

_SUMS: dict[str, Operator] = {"+": "add", "-": "subtract", "minus": "subtract"}
_PRODUCTS: dict[str, Operator] = {"*": "multiply", "/": "divide"}
_NAMED: dict[str, Operator] = {"sum": "add", "difference": "subtract", "product": "multiply"}
_VERBS: dict[str, Operator] = {"multiply": "multiply", "divide": "divide"}
_HALVES: dict[str, Operator] = {"twice": "multiply", "half": "divide"}


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
        """Return the exact value, or None where it is undefined."""
        values: list[Fraction | None] = []
        for step in self.steps:
            sides = (_value(step.left, values), _value(step.right, values))
            values.append(apply(step.operator, *sides))
        return _value(self.answer, values)


def apply(operator: Operator, left: Fraction | None, right: Fraction | None) -> Fraction | None:
    """Work one step; None (undefined) for a division by zero, an undefined or a huge operand."""
    if left is None or right is None or _is_huge(left) or _is_huge(right):
        return None
    if operator == "add":
        return left + right
    if operator == "subtract":
        return left - right
    if operator == "multiply":
        return left * right
    return left / right if right else None


@lru_cache(maxsize=4096)
def read_problem(text: str) -> Problem | None:
    """Return the last problem that `text` poses, or None when it holds no arithmetic."""
    return _Parser(_tokens(text)).problem()


def _tokens(text: str) -> list[str]:
    """Return numbers without commas, and words and symbols as the grammar names them."""
    tokens: list[str] = []
    for match in _TOKEN.findall(text.lower()):
        if match[-1].isdigit():
            tokens += [match.replace(",", "")] if len(match) <= _MAX_DIGITS else []
        elif (word := match.split()[0] if match != "\n" else match) in _TOKENS:
            tokens.append(_TOKENS[word] or word)
    return tokens[:_MAX_TOKENS]


def _is_huge(number: Fraction) -> bool:
    """Whether a result of `number` might not fit a float."""
    return number.numerator.bit_length() + number.denominator.bit_length() > 512


def _value(operand: Operand, values: Sequence[Fraction | None]) -> Fraction | None:
    return values[operand.index] if isinstance(operand, Earlier) else operand


def _digits(operand: Operand) -> int:
    if isinstance(operand, Earlier):
        return 0
    return len(str(abs(operand.numerator))) - 1 + (operand.denominator != 1)


_Rule = Callable[[], Operand | None]


class _Parser:
    """Recursive descent; a rule that fails returns None, and `_attempt` undoes what it read."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._steps: list[Step] = []
        self._previous: Operand | None = None

    def problem(self) -> Problem | None:
        while self._at < len(self._tokens):
            rules = (self._command, self._continued, self._sum)
            found = (self._attempt(rule) for rule in rules)
            value = next((value for value in found if value is not None), None)
            if value is None:
                self._at += 1
            elif isinstance(value, Earlier) or not isinstance(self._previous, Earlier):
                self._previous = value
        last = self._previous
        return _needed(self._steps, last) if isinstance(last, Earlier) else None

    def _command(self) -> Operand | None:
        verb = self._take("add", "subtract", "multiply", "divide")
        terms = self._list(self._sum) if verb else []
        if verb == "add" and terms:
            if self._take("to"):
                return self._step("add", self._sum(), self._fold("add", terms))
            return self._fold("add", terms if len(terms) > 1 else [self._previous, *terms])
        if verb == "subtract" and terms:
            start = self._sum() if self._take("from") else self._previous
            return self._step("subtract", start, terms[0])
        if verb in _VERBS:
            if self._take("by"):
                return self._step(_VERBS[verb], terms[0] if terms else self._previous, self._sum())
            return self._fold(_VERBS[verb], terms) if len(terms) > 1 else None
        return None

    def _continued(self) -> Operand | None:
        """`times 3`, `minus 4`: an operator after the value before; a dash is a sign instead."""
        sign = self._take("+", "minus", "*", "/")
        return (
            self._step({**_SUMS, **_PRODUCTS}[sign], self._previous, self._sum()) if sign else None
        )

    def _sum(self) -> Operand | None:
        return self._chain(self._product, _SUMS)

    def _product(self) -> Operand | None:
        return self._chain(self._factor, _PRODUCTS)

    def _chain(self, operand: _Rule, operators: dict[str, Operator]) -> Operand | None:
        value = operand()
        while value is not None and (sign := self._take(*operators)):
            right = self._attempt(operand)
            if right is None:  # "3 times a day": the operator was only a word
                self._at -= 1
                break
            value = self._step(operators[sign], value, right)
        return value

    def _factor(self) -> Operand | None:
        if self._depth >= _MAX_DEPTH or self._at == len(self._tokens):
            return None
        self._depth += 1
        try:
            return self._attempt(self._bare_factor)
        finally:
            self._depth -= 1

    def _bare_factor(self) -> Operand | None:
        token = self._tokens[self._at]
        self._at += 1
        if token[-1].isdigit():
            return Fraction(token)
        if token == "it":
            return self._previous
        if token == "-":
            inner = self._factor()
            return (
                -inner if isinstance(inner, Fraction) else self._step("subtract", Fraction(), inner)
            )
        if token == "(":
            inner = self._sum()
            return inner if self._take(")") else None
        if token in _HALVES:
            return self._step(_HALVES[token], self._factor(), Fraction(2))
        terms = self._list(self._product) if token in _NAMED else []
        return self._fold(_NAMED[token], terms) if len(terms) > 1 else None

    def _list(self, operand: _Rule) -> list[Operand | None]:
        terms: list[Operand | None] = []
        end = self._at
        while (term := self._attempt(operand)) is not None:
            terms.append(term)
            end = self._at
            separators = [self._take(","), self._take("and")]
            if not any(separators) or self._peek() == "minus":
                break
        self._at = end
        return terms

    def _step(
        self, operator: Operator, left: Operand | None, right: Operand | None
    ) -> Operand | None:
        if left is None or right is None:
            return None
        self._steps.append(Step(operator, left, right))
        return Earlier(len(self._steps) - 1)

    def _fold(self, operator: Operator, terms: Sequence[Operand | None]) -> Operand | None:
        return reduce(lambda left, right: self._step(operator, left, right), terms)

    def _attempt(self, rule: _Rule) -> Operand | None:
        at, steps = self._at, len(self._steps)
        value = rule()
        if value is None:
            self._at = at
            del self._steps[steps:]
        return value

    def _take(self, *tokens: str) -> str:
        """Read the next token if it is one of `tokens`; "" otherwise."""
        token = self._peek()
        if token not in tokens:
            return ""
        self._at += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""


def _needed(steps: Sequence[Step], answer: Earlier) -> Problem:
    """Return only the steps that lead to `answer`, renumbered."""
    used = {answer.index}
    for index in range(len(steps) - 1, -1, -1):
        if index in used:
            sides = (steps[index].left, steps[index].right)
            used |= {side.index for side in sides if isinstance(side, Earlier)}
    new = {old: Earlier(index) for index, old in enumerate(sorted(used))}

    def renumbered(side: Operand) -> Operand:
        return new[side.index] if isinstance(side, Earlier) else side

    kept = (steps[index] for index in sorted(used))
    return Problem(
        tuple(replace(s, left=renumbered(s.left), right=renumbered(s.right)) for s in kept),
        new[answer.index],
    )
