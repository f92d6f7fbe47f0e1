"""Which of the tools that a request offers can do which arithmetic step.

Three shapes are recognised, by names and JSON schemas: a tool for each operation
(`multiply(a, b)`), one tool with the operation as an enum (`calculate(operation, x, y)`), and one
that takes an expression (`evaluate(expression)`). Tools that require anything more are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .arithmetic import Operator

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""

SYMBOLS: dict[Operator, str] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_NAMES: dict[Operator, frozenset[str]] = {
    "add": frozenset({"+", "add", "addition", "plus", "sum"}),
    "subtract": frozenset({"-", "subtract", "subtraction", "minus", "sub", "difference"}),
    "multiply": frozenset({"*", "multiply", "multiplication", "times", "mul", "product"}),
    "divide": frozenset({"/", "divide", "division", "div", "quotient"}),
}
_WORD = re.compile(r"[A-Z]?[a-z]+|^[-+*/]$")


@dataclass(frozen=True, slots=True)
class _Means:
    """How one tool is called for one operator."""

    tool: str
    operands: tuple[str, ...]
    integers_only: bool = False
    constants: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The offered tools, by the operator that each can do."""

    means: Mapping[Operator, _Means]

    @classmethod
    def of(cls, tools: Sequence[Mapping[str, Any]], choice: object = None) -> Toolbox:
        """Sort `tools` (OpenAI function tools); `choice` is the request's `tool_choice`."""
        only = choice["function"]["name"] if isinstance(choice, dict) else None
        means: dict[Operator, _Means] = {}
        for tool in tools if choice != "none" else ():
            function = tool["function"]
            if only is None or function["name"] == only:
                for operator, way in _ways(function):
                    means.setdefault(operator, way)
        return cls(means)

    def call(self, operator: Operator, left: Fraction, right: Fraction) -> Call | None:
        """Return the call that works a step, or None where no tool can."""
        way = self.means.get(operator)
        if way is None:
            return None
        if len(way.operands) == 1:
            expression = f"{as_text(left)} {SYMBOLS[operator]} {as_text(right)}"
            return way.tool, {way.operands[0]: expression}
        if way.integers_only and not (left.denominator == right.denominator == 1):
            return None
        numbers = (_as_json_number(left), _as_json_number(right))
        return way.tool, {**way.constants, **dict(zip(way.operands, numbers, strict=True))}


def as_text(value: Fraction) -> str:
    """Return whole numbers in full, others with ten significant digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _as_json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _ways(function: Mapping[str, Any]) -> Iterator[tuple[Operator, _Means]]:
    name, parameters = function["name"], function.get("parameters")
    if not isinstance(parameters, dict) or not isinstance(parameters.get("properties"), dict):
        return
    properties, required = parameters["properties"], parameters.get("required")
    needed = [key for key in properties if not isinstance(required, list) or key in required]
    schemas = {key: properties[key] for key in needed if isinstance(properties[key], dict)}
    kinds = {key: schemas.get(key, {}).get("type") for key in needed}
    numbers = tuple(key for key in needed if kinds[key] in ("number", "integer"))
    integers = all(kinds[key] == "integer" for key in numbers)
    others = [key for key in needed if key not in numbers]
    if kinds == {"expression": "string"}:
        yield from ((operator, _Means(name, ("expression",))) for operator in _NAMES)
    elif len(numbers) == 2 and not others:
        yield from ((operator, _Means(name, numbers, integers)) for operator in _named(name)[:1])
    elif len(numbers) == 2 and len(others) == 1:
        values = schemas.get(others[0], {}).get("enum")
        for value in values if isinstance(values, list) else ():
            for operator in _named(value) if isinstance(value, str) else ():
                yield operator, _Means(name, numbers, integers, {others[0]: value})


def _named(name: str) -> list[Operator]:
    words = {word.lower() for word in _WORD.findall(name)}
    return [operator for operator, names in _NAMES.items() if words & names]
