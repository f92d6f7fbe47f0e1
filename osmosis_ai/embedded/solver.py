"""One turn of the embedded model: the conversation so far -> tool calls, or the final answer.

Keeps no state between turns. What was worked out is read back from the conversation: each assistant
message with tool calls is one round, its calls in the order in which steps became ready. Knows
nothing of HTTP.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..messages import text_of
from .arithmetic import Earlier, Operand, Problem, apply
from .slips import Slip
from .toolbox import SYMBOLS, Call, Toolbox, as_text

Message = Mapping[str, Any]

NOTHING_TO_DO = "I can only do arithmetic and look up numbers, and found neither here."
_NUMERAL = re.compile(r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?")
LOOKUP_DIFFICULTY = 3.0
_RECORD_NUMBER = re.compile(r"\b[A-Z]+-?\d+\b")
_MAX_RESULT_LENGTH = 400
_MAX_RESULT = 2**1000  # floats end at 2**1024


@dataclass(frozen=True, slots=True)
class Task:
    """What one request asks of the solver."""

    problem: Problem
    slip: Slip
    history: Sequence[Message]
    "The messages after the last user message."
    toolbox: Toolbox
    parallel: bool = True


def next_turn(task: Task) -> str | list[Call]:
    """Return the tool calls that follow the task's history, or the text of the final answer."""
    plan = task.slip.plan(task.problem)
    work = _Work(plan, task.toolbox)
    for results in _rounds(task.history):
        work.take(results)
    ready = list(work.ready().values())
    if ready:
        return ready if task.parallel else ready[:1]
    value = work.value(plan.answer)
    if value is None:
        return "The result is undefined.\n#### undefined"
    said = as_text(task.slip.misread(value, task.problem))
    return " ".join([*work.narration, f"The result is {said}.\n#### {said}"])


class _Work:
    """The values of the plan's steps, as far as they are known."""

    def __init__(self, plan: Problem, toolbox: Toolbox) -> None:
        self.plan = plan
        self.narration: list[str] = []
        self._toolbox = toolbox
        self._values: dict[int, Fraction | None] = {}

    def ready(self) -> dict[int, Call]:
        """Return calls for the steps that wait for a tool; work the others without one."""
        calls: dict[int, Call] = {}
        for index, step in enumerate(self.plan.steps):
            if index in self._values or not self._known(step.left) or not self._known(step.right):
                continue
            left, right = self.value(step.left), self.value(step.right)
            if call := self._toolbox.call(step.operator, left, right):
                calls[index] = call
            else:
                self._work_without_tool(index)
        return calls

    def take(self, results: Sequence[str | None]) -> None:
        """Take the results of one round; work without a tool what has no usable result."""
        for index, content in zip(self.ready(), results, strict=False):
            self._values[index] = read_number(content or "")
            if self._values[index] is None:
                self._work_without_tool(index)

    def value(self, operand: Operand) -> Fraction | None:
        """Return the value of an operand; None where it is undefined."""
        return self._values[operand.index] if isinstance(operand, Earlier) else operand

    def _known(self, operand: Operand) -> bool:
        return not isinstance(operand, Earlier) or operand.index in self._values

    def _work_without_tool(self, index: int) -> None:
        step = self.plan.steps[index]
        left, right = self.value(step.left), self.value(step.right)
        value = self._values[index] = apply(step.operator, left, right)
        if left is not None and right is not None and value is not None:
            sides = f"{as_text(left)} {SYMBOLS[step.operator]} {as_text(right)}"
            self.narration.append(f"{sides} = {as_text(value)}.")


def _rounds(history: Sequence[Message]) -> Iterator[list[str | None]]:
    """Yield the results of each assistant message with tool calls, in the order of the calls."""
    tools = (message for message in history if message["role"] == "tool")
    results = {message["tool_call_id"]: text_of(message.get("content")) for message in tools}
    for message in history:
        calls = message.get("tool_calls")
        if message["role"] == "assistant" and calls:
            yield [results.get(call["id"]) for call in calls]


def read_number(content: str) -> Fraction | None:
    """Return the number that a tool result means: `391`, `{"result": 391}`, `The sum is 391.`

    Of an object the first of `result`, `value`, `answer`, `output` counts; of a text, its last
    number. None for a result that says `error` or is too large for a float.
    """
    if len(content) > _MAX_RESULT_LENGTH:
        return None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = content
    if isinstance(value, dict):
        if value.get("error") or value.get("is_error"):
            return None
        value = next(
            (value[k] for k in ("result", "value", "answer", "output") if k in value), None
        )
    number = _number_in(value)
    return number if number is not None and abs(number) < _MAX_RESULT else None


def _number_in(value: object) -> Fraction | None:
    if isinstance(value, str):
        numerals = _NUMERAL.findall(value)
        return None if not numerals or "error" in value.lower() else Fraction(numerals[-1])
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return Fraction(value)


def next_lookup(
    prompt: str, tools: Sequence[Any], history: Sequence[Message], *, is_right: bool
) -> str | list[Call] | None:
    """Return the call that looks up a record, "When does order A1042 arrive?", then the answer.

    None without a number or a tool for it, one that needs a single text. The answer is the field
    whose name shares most words with the question.
    """
    number, tool = _RECORD_NUMBER.search(prompt), next(filter(None, map(_lookup_tool, tools)), None)
    if number is None or tool is None:
        return None
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
    name = names[0 if is_right else -1]
    return f"The {name.replace('_', ' ')} of {number[0]} is {record[name]}."


def _lookup_tool(tool: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the names of a tool that needs one text alone and of its parameter."""
    match tool["function"].get("parameters"):
        case {"required": [str(name)], "properties": dict(properties)}:
            schema = properties.get(name)
            is_text = isinstance(schema, dict) and schema.get("type") == "string"
            return (tool["function"]["name"], name) if is_text else None
    return None
