"""Arithmetic in a sentence: "What is (3 + 4) times 5?" -> a list of steps on exact fractions.

A sentence is rewritten to expressions, which Python's own parser reads: words become operators,
"divide 12 by it" and "the sum of 1, 2 and 3" become expressions, and all other words are dropped.
A later clause may continue from the value before. Knows nothing of models or tools.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add, mul, sub, truediv

_MAX_TOKENS = 400
_TOKEN = re.compile(
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
    r"|(?:divided|multiplied) by|[a-z]+|[-+*/(),.;:?!\n×÷]"
)
_TOKENS = {
    **{token: token for token in "+-*/(),"},
    **{token: token for token in ("minus", "add", "subtract", "multiply", "divide", "by", "from")},
    **{token: token for token in ("sum", "product", "half", "and", "to", "it")},
    **dict.fromkeys((".", ";", ":", "?", "!", "\n", "then"), "."),
    **dict.fromkeys(("×", "times", "multiplied by", "x"), "*"),
    **dict.fromkeys(("÷", "divided by"), "/"),
    "result": "it",
    "plus": "+",
    "take": "subtract",
}
"""Words and symbols that mean something, with the token that each stands for."""

_LIST = re.compile(r"(sum|product) ([0-9.]+(?:(?: ,| and)+ [0-9.]+)+)")
_COMMANDS = (
    (re.compile(r"half (\S+)"), r"( \1 / 2 )"),
    (re.compile(r"multiply (.*?) ?by (.+)"), r"( \1 ) * ( \2 )"),
    (re.compile(r"divide (.*?) ?by (.+)"), r"( \1 ) / ( \2 )"),
    (re.compile(r"add (.+) (?:and|to) (.+)"), r"( \1 ) + ( \2 )"),
    (re.compile(r"add (.+)"), r"it + ( \1 )"),
    (re.compile(r"subtract (.+) from (.+)"), r"( \2 ) - ( \1 )"),
    (re.compile(r"subtract (.+)"), r"it - ( \1 )"),
    (re.compile(r"^(\+|\*|/|minus) "), r"it \1 "),
    (re.compile(r"\( +\)"), "it"),
    (re.compile(r"minus"), "-"),
)
"""Applied to each clause in this order."""

_OTHER_WORDS = re.compile(r"\b(?!it\b)[a-z]+\b")
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_FUNCTIONS = {"+": add, "-": sub, "*": mul, "/": truediv}

Operand = Fraction | int
"""A number, or the place of the step whose result it is."""
Step = tuple[str, Operand, Operand]
"""One operation on two operands."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Steps in an order in which they can be worked; the result of the last is the answer."""

    steps: tuple[Step, ...]

    @property
    def difficulty(self) -> float:
        """One for each step, and a quarter for each digit beyond the first of its numbers."""
        return sum(1.0 + 0.25 * (_digits(left) + _digits(right)) for _, left, right in self.steps)


def apply(operator: str, left: Fraction, right: Fraction) -> Fraction | None:
    """Work one step; None (undefined) for a division by zero, or a result that no float holds."""
    try:
        value: Fraction = _FUNCTIONS[operator](left, right)
        float(value.numerator), float(value.denominator)
    except ArithmeticError:
        return None
    return value


@lru_cache(maxsize=4096)
def read_problem(text: str) -> Problem | None:
    """Return the last problem that `text` poses, or None when it holds no arithmetic."""
    steps: list[Step] = []
    last: Operand | None = None
    for expression in _expressions(text):
        worked = list(steps) if "it" in expression else []
        try:
            tree = ast.parse(expression, mode="eval").body
            value = _flatten(tree, worked, last)
        except (SyntaxError, ValueError):
            continue  # only words that look like arithmetic
        if isinstance(value, int) or not steps:
            steps, last = worked, value
    return Problem(tuple(steps)) if steps else None


def _expressions(text: str) -> Iterator[str]:
    """Yield the expressions of `text`, in which `it` is the value before."""
    found = [
        (match.replace(",", "").lstrip("0") or "0") if match[0].isdigit() else _TOKENS.get(match)
        for match in _TOKEN.findall(text.lower())
    ]
    tokens = _LIST.sub(_listed, " ".join(list(filter(None, found))[:_MAX_TOKENS]))
    for clause in re.split(r" ?(?<!\S)[.,](?!\S) ?", tokens):
        rewritten = reduce(
            lambda text, command: command[0].sub(command[1], text), _COMMANDS, clause
        )
        yield from filter(None, map(str.strip, _OTHER_WORDS.split(rewritten)))


def _listed(match: re.Match[str]) -> str:
    """Return "sum 1 , 2 and 3" as an expression."""
    sign = "+" if match[1] == "sum" else "*"
    return f"( {re.sub(r'(?: ,| and)+', f' {sign}', match[2])} )"


def _flatten(node: ast.expr, steps: list[Step], before: Operand | None) -> Operand:
    """Append the steps of an expression, operands first, and return its value.

    Raise ValueError for what is no arithmetic.
    """
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -Fraction(str(number))
        case ast.Name() if before is not None:
            return before
        case ast.BinOp() if type(node.op) in _SIGNS:
            left, right = (_flatten(side, steps, before) for side in (node.left, node.right))
            steps.append((_SIGNS[type(node.op)], left, right))
            return len(steps) - 1
    raise ValueError(f"{type(node).__name__} is no arithmetic")


def _digits(operand: Operand) -> int:
    if isinstance(operand, int):
        return 0
    return len(str(abs(operand.numerator))) - 1 + (operand.denominator != 1)
