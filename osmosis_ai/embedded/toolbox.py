"""Which of the tools that a request offers can do which arithmetic step.

Three shapes are understood, by names and JSON schemas alone: a tool for each operation
(`multiply(a, b)`), one tool with the operation as an enum (`calculate(operation, x, y)`), and one
that takes an expression (`evaluate(expression)`). A tool that requires anything more is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .numerals import as_json_number, as_text
from .steps import Operator

_NAMES: dict[Operator, frozenset[str]] = {
    "add": frozenset({"add", "addition", "plus", "sum"}),
    "subtract": frozenset({"subtract", "subtraction", "minus", "sub", "difference"}),
    "multiply": frozenset({"multiply", "multiplication", "times", "mul", "product"}),
    "divide": frozenset({"divide", "division", "div", "quotient"}),
}
_SYMBOLS: dict[Operator, str] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_NUMERIC = ("number", "integer")
_WORD = re.compile(r"[A-Z]?[a-z]+")


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
        if choice == "none":
            return cls({})
        only = choice["function"]["name"] if isinstance(choice, dict) else None
        means: dict[Operator, _Means] = {}
        for tool in tools:
            function = tool["function"]
            if only is None or function["name"] == only:
                for operator, way in _ways(function):
                    means.setdefault(operator, way)
        return cls(means)

    def call(
        self, operator: Operator, left: Fraction, right: Fraction
    ) -> tuple[str, dict[str, Any]] | None:
        """The tool's name and its arguments, or None where no tool can do this step."""
        way = self.means.get(operator)
        if way is None:
            return None
        if len(way.operands) == 1:
            expression = f"{as_text(left)} {_SYMBOLS[operator]} {as_text(right)}"
            return way.tool, {way.operands[0]: expression}
        if way.integers_only and not (left.denominator == right.denominator == 1):
            return None
        numbers = (as_json_number(left), as_json_number(right))
        return way.tool, {**way.constants, **dict(zip(way.operands, numbers, strict=True))}


def _ways(function: Mapping[str, Any]) -> list[tuple[Operator, _Means]]:
    name = function["name"]
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return []
    required = parameters.get("required") if isinstance(parameters, dict) else None
    needed = [key for key in properties if not isinstance(required, list) or key in required]
    kinds = {key: _kind(properties[key]) for key in needed}
    numbers = tuple(key for key in needed if kinds[key] in _NUMERIC)
    others = [key for key in needed if key not in numbers]
    integers = all(kinds[key] == "integer" for key in numbers)
    if len(numbers) == 2 and not others:
        return [
            (operator, _Means(name, numbers, integers))
            for operator in _NAMES
            if _names(operator, name)
        ][:1]
    if len(numbers) == 2 and len(others) == 1:
        return _by_enum(name, numbers, others[0], properties[others[0]], integers)
    if len(needed) == 1 and kinds[needed[0]] == "string" and needed[0] == "expression":
        return [(operator, _Means(name, (needed[0],))) for operator in _NAMES]
    return []


def _by_enum(
    tool: str, numbers: tuple[str, ...], key: str, schema: Mapping[str, Any], integers: bool
) -> list[tuple[Operator, _Means]]:
    values = schema.get("enum")
    return [
        (operator, _Means(tool, numbers, integers, {key: value}))
        for value in (values if isinstance(values, list) else [])
        if isinstance(value, str)
        for operator in _NAMES
        if value == _SYMBOLS[operator] or _names(operator, value)
    ]


def _kind(schema: object) -> object:
    return schema.get("type") if isinstance(schema, dict) else None


def _names(operator: Operator, name: str) -> bool:
    return any(word.lower() in _NAMES[operator] for word in _WORD.findall(name))
