"""What a failed or errored item prints: the user's frames, and the conversation. Text only.

Knows neither pytest nor where the text goes.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import osmosis_ai
import pytest_osmosis
from osmosis_ai.messages import text_of

from ..escaping import escape_control_chars, escape_workflow_commands, shown_path
from ..results import RunResult, passes
from ..user_code.import_object import filtered_traceback

MESSAGES_SHOWN = 12
"""The last messages of a conversation that a failure shows."""
TEXT_LIMIT = 1200
"""Characters of one message that a failure shows."""
LINE_LIMIT = 400
"""Characters of an answer or a reason that is shown on one line."""
_LINES_SHOWN = 80
_OURS = tuple(
    os.path.abspath(folder) + os.sep for folder in (*osmosis_ai.__path__, *pytest_osmosis.__path__)
)
_MACHINERY = (os.sep + "asyncio" + os.sep, os.sep + "concurrent" + os.sep, "<frozen ")


def user_traceback(error: BaseException) -> str:
    """The traceback of an error and its causes, with the user's frames alone."""
    return filtered_traceback(error, _user_frames, most=_LINES_SHOWN)


def _user_frames(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    return [
        frame
        for frame in frames
        if not frame.filename.startswith(_OURS)
        and not any(part in frame.filename for part in _MACHINERY)
    ]


def headline(result: RunResult, threshold: float) -> str:
    """One line: what went wrong with the run."""
    if result.error is not None:
        first = result.error.splitlines()[0] if result.error else ""
        label = {"provider": "provider", "timeout": "timeout"}.get(result.error_type or "", "")
        return f"{label}: {first}" if label else first
    return "; ".join(below_threshold(result, threshold))


def below_threshold(result: RunResult, threshold: float) -> list[str]:
    """A sentence for each score that does not pass."""
    return [
        f"{name} scored {score:g}, below the threshold {threshold:g}"
        for name, score in result.scores.items()
        if not passes(score, threshold)
    ]


def shortfall(result: RunResult, threshold: float) -> str | None:
    """By what a run that has all its scores did not pass; None for every other run."""
    if result.error_type is not None or result.passed:
        return None
    low = {name: score for name, score in result.scores.items() if not passes(score, threshold)}
    if len(result.scores) == 1:
        return "".join(f"score {score} < {threshold}" for score in low.values())
    return "; ".join(f"{name}: score {score} < {threshold}" for name, score in low.items())


def conversation(messages: Sequence[Mapping[str, Any]]) -> str:
    """The last messages, one block each, roles in a column, indented by two."""
    left_out = max(0, len(messages) - MESSAGES_SHOWN)
    earlier = "1 earlier message" if left_out == 1 else f"{left_out} earlier messages"
    lines = [f"  ({earlier})"] if left_out else []
    for message in messages[left_out:]:
        role = str(message.get("role", "?"))
        for text in _said(message):
            first, *rest = escape_control_chars(text[:TEXT_LIMIT]).splitlines() or [""]
            lines.append(f"  {role:<10} {first}".rstrip())
            lines.extend(f"  {'':<10} {line}" for line in rest)
            if len(text) > TEXT_LIMIT:
                lines.append(f"  {'':<10} ({len(text) - TEXT_LIMIT} more characters)")
            role = ""
    return "\n".join(lines)


def _said(message: Mapping[str, Any]) -> Iterator[str]:
    text = text_of(message.get("content"))
    calls = message.get("tool_calls") or []
    if text or not calls:
        yield text
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield f"-> {function.get('name')}({_arguments(function.get('arguments'))})"


def _arguments(arguments: object) -> str:
    try:
        parsed = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return str(arguments)
    if isinstance(parsed, dict):
        return ", ".join(f"{name}={value!r}" for name, value in parsed.items())
    return str(arguments)


def explanation(
    result: RunResult,
    *,
    threshold: float,
    messages: Sequence[Mapping[str, Any]],
    ground_truth: str | None,
    frames: str | None,
    reasons: Mapping[str, Sequence[str]] | None = None,
    whole: Path | None = None,
) -> str:
    """The whole section of a failed or errored item; `whole` is where all of it is written."""
    parts = [frames or headline(result, threshold)]
    if messages:
        parts.append(conversation(messages))
    parts.append("\n".join(_held_against(result, ground_truth, reasons or {})))
    turns = "1 turn" if result.llm_calls == 1 else f"{result.llm_calls} turns"
    tokens = "" if result.tokens is None else f", {result.tokens} tokens"
    took = f"  {turns}{tokens}, {result.duration_ms / 1000:.2f} s"
    parts.append(took if whole is None else f"{took}\n  all of it: {shown_path(whole)}")
    text = "\n\n".join(escape_control_chars(part) for part in parts if part)
    return escape_workflow_commands(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def _held_against(
    result: RunResult, ground_truth: str | None, reasons: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """What was expected, what came, and what judges said of it; a line each."""
    if ground_truth is not None:
        below = "\n" + " " * len("  ground truth  ")
        truth = escape_control_chars(ground_truth[:TEXT_LIMIT])
        yield f"  ground truth  {below.join(truth.splitlines())}"
        if result.answer:
            yield f"  answer        {_one_line(result.answer)}"
    for name, said in reasons.items():
        yield from (f"  judge         {name}: {_one_line(reason)}" for reason in said)


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LINE_LIMIT else flat[:LINE_LIMIT] + " …"
