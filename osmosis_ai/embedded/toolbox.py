"""Which of the tools that a request offers can do which arithmetic step.

A tool is recognised by its name and JSON schema: `multiply(a, b)` on two required numbers. Tools
that require anything more are not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
class Toolbox:
    """The offered tools, by the operator that each can do."""

    means: Mapping[Operator, tuple[str, str, str]]
    """The tool for each, and its two operands."""

    @classmethod
    def of(cls, tools: Sequence[Mapping[str, Any]], choice: object = None) -> Toolbox:
        """Sort `tools` (OpenAI function tools); `choice` is the request's `tool_choice`."""
        only = choice["function"]["name"] if isinstance(choice, dict) else None
        means: dict[Operator, tuple[str, str, str]] = {}
        for tool in tools:
            function = tool["function"]
            if only is None or function["name"] == only:
                operator, way = _named(function["name"]), _means(function)
                if operator and way:
                    means.setdefault(operator, way)
        return cls(means)

    def call(
        self, operator: Operator, left: Fraction | None, right: Fraction | None
    ) -> Call | None:
        """Return the call that works a step, or None where no tool can."""
        way = self.means.get(operator)
        if way is None or left is None or right is None:
            return None
        tool, first, second = way
        return tool, {first: _as_json_number(left), second: _as_json_number(right)}


def as_text(value: Fraction) -> str:
    """Return whole numbers in full, others with ten significant digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _as_json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _means(function: Mapping[str, Any]) -> tuple[str, str, str] | None:
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return None
    required = function["parameters"].get("required")
    needed = [key for key in properties if not isinstance(required, list) or key in required]
    kinds = [properties[key].get("type") for key in needed if isinstance(properties[key], dict)]
    if not len(needed) == len(kinds) == 2 or not all(
        kind in ("number", "integer") for kind in kinds
    ):
        return None
    return function["name"], needed[0], needed[1]


def _named(name: str) -> Operator | None:
    words = {word.lower() for word in _WORD.findall(name)}
    return next((operator for operator, names in _NAMES.items() if words & names), None)
