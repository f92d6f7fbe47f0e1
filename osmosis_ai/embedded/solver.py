"""One turn of the embedded model: the conversation so far -> tool calls, or the final answer.

Keeps no state between turns. What was worked out is read back from the conversation: each assistant
message with tool calls is one round, its calls in the order in which steps became ready. A tool is
recognised by its name and JSON schema: `multiply(a, b)` on two required numbers. Mistakes are drawn
from a digest of the persona, the row's first user message and the rollout's identity, so that all
turns of a rollout agree in every process and order. Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any

from ..messages import text_of
from .arithmetic import Operand, Operator, Problem, apply
from .personas import Persona

Message = Mapping[str, Any]
Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""
Tools = Mapping[Operator, tuple[str, str, str]]
"""The tool for each operator, and its two parameters."""

NOTHING_TO_DO = "I can only do arithmetic and look up numbers, and found neither here."
LOOKUP_DIFFICULTY = 3.0
_NAMES: Mapping[Operator, frozenset[str]] = {
    "+": frozenset({"+", "add", "addition", "plus", "sum"}),
    "-": frozenset({"-", "subtract", "subtraction", "minus", "sub", "difference"}),
    "*": frozenset({"*", "multiply", "multiplication", "times", "mul", "product"}),
    "/": frozenset({"/", "divide", "division", "div", "quotient"}),
}
_WORD = re.compile(r"[A-Z]?[a-z]+|^[-+*/]$")
_NUMERAL = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
_RECORD_NUMBER = re.compile(r"\b[A-Z]+-?\d+\b")
_MAX_RESULT_LENGTH = 400
_MAX_RESULT = 2**1000  # floats end at 2**1024


Slip = Callable[[Fraction], Fraction] | None
"""The mistake of a rollout: how it misreads a number; None where it makes none."""


def draw_slip(
    persona: Persona, difficulty: float, *, seed: int, conversation: str, rollout: str
) -> Slip:
    """Return the slip of one rollout."""
    row = _digest(persona.name, str(seed), conversation)
    run = _digest(persona.name, str(seed), conversation, rollout)
    chance = persona.chance(difficulty, _unit(row))
    return None if _unit(run) < chance else _SLIPS[run[-1] % len(_SLIPS)]


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def _unit(digest: bytes) -> float:
    return int.from_bytes(digest[:8], "big") / 2.0**64


def _swapped_digits(value: Fraction) -> Fraction:
    """391 -> 319: swap the last two neighbours that differ; otherwise be off by one."""
    digits = str(abs(value.numerator))
    for at in range(len(digits) - 1, 1, -1):
        if value.denominator == 1 and digits[at] != digits[at - 1]:
            swapped = digits[: at - 1] + digits[at] + digits[at - 1] + digits[at + 1 :]
            return Fraction(swapped) * (-1 if value < 0 else 1)
    return _off_by_one(value)


def _off_by_one(value: Fraction) -> Fraction:
    return value + (1 if value.numerator % 2 else -1)


_SLIPS = (_swapped_digits, _off_by_one, lambda value: value - 10)


# ---- arithmetic


def next_turn(
    problem: Problem, slip: Slip, history: Iterable[Message], tools: Sequence[Any]
) -> str | list[Call]:
    """Return the tool calls that follow the messages after the question, or the final answer."""
    work = _Work(problem, _arithmetic_tools(tools))
    for results in _rounds(history):
        work.take(results)
    if ready := work.ready():
        return list(ready.values())
    value = work.value(problem.answer)
    if value is None:
        return "The result is undefined.\n#### undefined"
    said = as_text(slip(value) if slip else value)
    return " ".join([*work.narration, f"The result is {said}.\n#### {said}"])


class _Work:
    """The values of a problem's steps, as far as they are known."""

    def __init__(self, problem: Problem, tools: Tools) -> None:
        self._steps = problem.steps
        self.narration: list[str] = []
        self._tools = tools
        self._values: dict[int, Fraction | None] = {}

    def ready(self) -> dict[int, Call]:
        """Return calls for the steps that wait for a tool; work the others without one."""
        calls: dict[int, Call] = {}
        for index, step in enumerate(self._steps):
            sides = (step.left, step.right)
            waits = any(isinstance(side, int) and side not in self._values for side in sides)
            if index in self._values or waits:
                continue
            left, right = map(self.value, sides)
            if step.operator in self._tools and left is not None and right is not None:
                tool, first, second = self._tools[step.operator]
                calls[index] = tool, {first: _as_json_number(left), second: _as_json_number(right)}
            else:
                self._work_without_tool(index)
        return calls

    def take(self, results: Iterable[str | None]) -> None:
        """Take the results of one round; work without a tool what has no usable result."""
        for index, content in zip(self.ready(), results, strict=False):
            self._values[index] = read_number(content or "")
            if self._values[index] is None:
                self._work_without_tool(index)

    def value(self, operand: Operand) -> Fraction | None:
        """Return the value of an operand; None where it is undefined."""
        return self._values[operand] if isinstance(operand, int) else operand

    def _work_without_tool(self, index: int) -> None:
        step = self._steps[index]
        left, right = self.value(step.left), self.value(step.right)
        value = self._values[index] = apply(step.operator, left, right)
        if left is not None and right is not None and value is not None:
            sides = f"{as_text(left)} {step.operator} {as_text(right)}"
            self.narration.append(f"{sides} = {as_text(value)}.")


def _rounds(history: Iterable[Message]) -> Iterator[list[str | None]]:
    """Yield the results of each assistant message with tool calls, in the order of the calls."""
    messages = list(history)
    results = {each.get("tool_call_id"): text_of(each.get("content")) for each in messages}
    for message in messages:
        if calls := message.get("tool_calls"):
            yield [results.get(call["id"]) for call in calls]


def read_number(content: str) -> Fraction | None:
    """Return the number that a tool result means, its last: `391`, `{"result": 391}`, `It is 391.`

    None for a result that says `error` or is too large for a float.
    """
    numerals = _NUMERAL.findall(content[: _MAX_RESULT_LENGTH + 1])
    if not numerals or len(content) > _MAX_RESULT_LENGTH or "error" in content.lower():
        return None
    number = Fraction(numerals[-1])
    return number if abs(number) < _MAX_RESULT else None


def as_text(value: Fraction) -> str:
    """Return whole numbers in full, others with ten significant digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _as_json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _arithmetic_tools(tools: Iterable[Mapping[str, Any]]) -> Tools:
    found: dict[Operator, tuple[str, str, str]] = {}
    for tool in tools:
        name, needed = _needed(tool)
        words = {word.lower() for word in _WORD.findall(name)}
        operator = next((sign for sign, names in _NAMES.items() if words & names), None)
        if operator and len(needed) == 2 and {*needed.values()} <= {"number", "integer"}:
            first, second = needed
            found.setdefault(operator, (name, first, second))
    return found


def _needed(tool: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool's name, and the types of the parameters that it requires."""
    match tool["function"].get("parameters"):
        case {"properties": dict(properties), "required": list(required)}:
            needed = {key: each.get("type") for key, each in properties.items() if key in required}
            return tool["function"]["name"], needed
    return tool["function"]["name"], {}


# ---- records


def next_lookup(
    prompt: str, slip: Slip, history: Iterable[Message], tools: Sequence[Any]
) -> str | list[Call]:
    """Return the call that looks up a record, "When does order A1042 arrive?", then the answer.

    It takes a number, and a tool that needs a single text. The answer is the field whose name
    shares most words with the question.
    """
    number = _RECORD_NUMBER.search(prompt)
    takes_text = (
        (name, *needed) for name, needed in map(_needed, tools) if [*needed.values()] == ["string"]
    )
    tool = next(takes_text, None)
    if number is None or tool is None:
        return NOTHING_TO_DO
    results = [text_of(each.get("content")) for each in history if each["role"] == "tool"]
    if not results:
        return [(tool[0], {tool[1]: number[0]})]
    try:
        record = json.loads(results[-1])
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not record:
        return results[-1]
    words = set(re.findall(r"[a-z]+", prompt.lower()))
    names = sorted(record, key=lambda name: -len(words & set(name.lower().split("_"))))
    name = names[-1 if slip else 0]
    return f"The {name.replace('_', ' ')} of {number[0]} is {record[name]}."
