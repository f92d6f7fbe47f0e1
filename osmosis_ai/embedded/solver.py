"""One turn of the embedded model: the conversation so far -> tool calls, or the final answer.

Keeps no state between turns: the id of a tool call ends with the step that it works, and clients
send it back with the result. A tool is recognised by its name and JSON schema: `multiply(a, b)` on
two required numbers. Mistakes are drawn from a digest of the persona, the row's first user message
and the rollout's identity, so that all turns of a rollout agree in every process and order. Knows
nothing of HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any

from ..messages import text_of
from .arithmetic import Problem, apply
from .personas import Persona

Message = Mapping[str, Any]
Call = tuple[int, str, dict[str, Any]]
"""The step that a call works, the tool's name, and its arguments."""

NOTHING_TO_DO = "I can only do arithmetic and look up numbers, and found neither here."
LOOKUP_DIFFICULTY = 3.0
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
"""Words in the names of tools."""
_NUMERAL = re.compile(r"[-+]?\d+(?:\.\d+)?")
_RECORD_NUMBER = re.compile(r"\b[A-Z]+-?\d+\b")
_MAX_RESULT_LENGTH = 400

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


def next_turn(
    problem: Problem, slip: Slip, history: Iterable[Message], tools: Iterable[Mapping[str, Any]]
) -> str | list[Call]:
    """Return the tool calls that follow the messages after the question, or the final answer.

    A step without a tool, or whose tool gave no number, is worked here.
    """
    usable = _arithmetic_tools(tools)
    results = {
        str(message.get("tool_call_id")).rpartition("_")[2]: read_number(
            text_of(message.get("content"))
        )
        for message in history
        if message["role"] == "tool"
    }
    values: dict[int, Fraction | None] = {}
    calls: list[Call] = []
    sentences = []
    for index, (operator, *operands) in enumerate(problem.steps):
        if any(isinstance(operand, int) and operand not in values for operand in operands):
            continue  # it waits for a tool
        left, right = (
            values[operand] if isinstance(operand, int) else operand for operand in operands
        )
        values[index] = results.get(str(index))
        if left is None or right is None or values[index] is not None:
            continue
        if operator in usable and str(index) not in results:
            del values[index]
            tool, first, second = usable[operator]
            calls.append((index, tool, {first: _json_number(left), second: _json_number(right)}))
        elif (value := apply(operator, left, right)) is not None:
            values[index] = value
            sentences.append(f"{_text(left)} {operator} {_text(right)} = {_text(value)}.")
    if calls:
        return calls
    answer = values[len(problem.steps) - 1]
    if answer is None:
        return "The result is undefined.\n#### undefined"
    result = _text(slip(answer) if slip else answer)
    return " ".join([*sentences, f"The result is {result}.\n#### {result}"])


def read_number(content: str) -> Fraction | None:
    """Return the number that a tool result means, its last: `391`, `{"result": 391}`, `It is 391.`

    None for a long result, or one that says `error`.
    """
    if len(content) > _MAX_RESULT_LENGTH or "error" in content.lower():
        return None
    numerals = _NUMERAL.findall(content)
    return Fraction(numerals[-1]) if numerals else None


def _text(value: Fraction) -> str:
    """Return whole numbers in full, others with ten significant digits."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.10g}"


def _json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _arithmetic_tools(tools: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str, str]]:
    """Return the tool for each operator, and its two parameters."""
    usable: dict[str, tuple[str, str, str]] = {}
    for name, needed in map(_needed, tools):
        words = re.findall("[a-z]+", name.lower())
        operator = next((sign for word, sign in _OPERATORS.items() if word in words), None)
        if operator and len(needed) == 2 and {*needed.values()} <= {"number", "integer"}:
            first, second = needed
            usable.setdefault(operator, (name, first, second))
    return usable


def _needed(tool: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a tool's name, and the types of the parameters that it requires."""
    function = tool["function"]
    match function.get("parameters"):
        case {"properties": dict(properties), "required": list(required)}:
            types = {key: properties[key].get("type") for key in properties if key in required}
            return function["name"], types
    return function["name"], {}


def next_lookup(
    prompt: str, slip: Slip, history: Iterable[Message], tools: Sequence[Mapping[str, Any]]
) -> str | list[Call]:
    """Return the call that looks up a record, "When does order A1042 arrive?", then the answer.

    It takes a number, and a tool that needs a single text. The answer is the field whose name
    shares most words with the question.
    """
    number = _RECORD_NUMBER.search(prompt)
    lookups = (
        (name, *needed) for name, needed in map(_needed, tools) if [*needed.values()] == ["string"]
    )
    tool = next(lookups, None)
    if number is None or tool is None:
        return NOTHING_TO_DO
    results = [text_of(message["content"]) for message in history if message["role"] == "tool"]
    if not results:
        return [(0, tool[0], {tool[1]: number[0]})]
    try:
        record = json.loads(results[-1])
    except ValueError:
        record = None
    if not isinstance(record, dict) or not record:
        return results[-1]
    words = set(re.findall(r"[a-z]+", prompt.lower()))
    names = sorted(record, key=lambda name: -len(words & set(name.lower().split("_"))))
    name = names[-1 if slip else 0]
    return f"The {name.replace('_', ' ')} of {number[0]} is {record[name]}."
