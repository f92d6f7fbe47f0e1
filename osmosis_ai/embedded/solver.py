"""One turn of the embedded model: the conversation so far -> tool calls, or the final answer.

It keeps no state between turns. What was worked out is read back from the conversation: each
assistant message with tool calls is one round, its calls in the order in which steps became ready.
It knows nothing of HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .numerals import as_text, read_number
from .slips import Slip
from .steps import Earlier, Operand, Operator, Problem, apply
from .toolbox import Toolbox

Message = Mapping[str, Any]
Call = tuple[str, dict[str, Any]]

_SYMBOLS: dict[Operator, str] = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
NOTHING_TO_DO = "I can only do arithmetic, and found none in your message."


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says (text) or asks for (calls), never both."""

    text: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one request asks of the solver."""

    problem: Problem
    slip: Slip
    history: Sequence[Message]
    "The messages after the last user message."
    toolbox: Toolbox
    parallel: bool = True
    finishes: bool = True


def next_turn(task: Task) -> Turn:
    """The turn that follows the task's history."""
    plan = task.slip.planned(task.problem)
    work = _Work(plan, task.toolbox)
    for results in _rounds(task.history):
        work.take(results)
    ready = list(work.ready().values())
    if not ready and not task.finishes and task.toolbox.means:
        ready = list(_Work(plan, task.toolbox).ready().values())
    if ready:
        return Turn(calls=tuple(ready if task.parallel else ready[:1]))
    return Turn(text=_final_text(task, work))


class _Work:
    """The values of the plan's steps, as far as they are known."""

    def __init__(self, plan: Problem, toolbox: Toolbox) -> None:
        self.plan = plan
        self.narration: list[str] = []
        self._toolbox = toolbox
        self._values: dict[int, Fraction | None] = {}

    def ready(self) -> dict[int, Call]:
        """The steps that wait for a tool; what no tool can do is worked in the head."""
        calls: dict[int, Call] = {}
        for index, step in enumerate(self.plan.steps):
            if index in self._values or not self._known(step.left) or not self._known(step.right):
                continue
            left, right = self.value(step.left), self.value(step.right)
            call = None
            if left is not None and right is not None:
                call = self._toolbox.call(step.operator, left, right)
            if call is None:
                self._work_in_head(index)
            else:
                calls[index] = call
        return calls

    def take(self, results: Sequence[str | None]) -> None:
        """Take the results of one round; what is missing or no number is worked in the head."""
        for index, content in zip(self.ready(), results, strict=False):
            value = None if content is None else read_number(content)
            if value is None:
                self._work_in_head(index)
            else:
                self._values[index] = value

    def value(self, operand: Operand) -> Fraction | None:
        """What an operand is worth; None where that is undefined."""
        return self._values[operand.index] if isinstance(operand, Earlier) else operand

    def _known(self, operand: Operand) -> bool:
        return not isinstance(operand, Earlier) or operand.index in self._values

    def _work_in_head(self, index: int) -> None:
        step = self.plan.steps[index]
        left, right = self.value(step.left), self.value(step.right)
        value = self._values[index] = apply(step.operator, left, right)
        if left is not None and right is not None and value is not None:
            sides = f"{as_text(left)} {_SYMBOLS[step.operator]} {as_text(right)}"
            self.narration.append(f"{sides} = {as_text(value)}.")


def _rounds(history: Sequence[Message]) -> Iterator[list[str | None]]:
    """For each assistant message with tool calls, its results in the order of the calls."""
    results = {
        message["tool_call_id"]: text_of(message)
        for message in history
        if message["role"] == "tool"
    }
    for message in history:
        calls = message.get("tool_calls")
        if message["role"] == "assistant" and calls:
            yield [results.get(call["id"]) for call in calls]


def _final_text(task: Task, work: _Work) -> str:
    value = work.value(work.plan.answer)
    if value is None:
        return "The result is undefined.\n#### undefined"
    said = as_text(task.slip.said(value, task.problem))
    return " ".join([*work.narration, f"The result is {said}.\n#### {said}"])


def text_of(message: Message) -> str:
    """The text of a message whose content is a string, a list of parts, or nothing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def encoded_arguments(call: Call) -> str:
    """The arguments as the JSON text that a tool call carries."""
    return json.dumps(call[1])
