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
from osmosis_ai.messages import text_of
from osmosis_ai.secret import masked, redact

from ..dataset.rows import truth_text
from ..escaping import counted, escape_control_chars, escape_workflow_commands, shown_path
from ..run_result import RolloutRecord, RunResult, passes
from ..storage.excerpt import plain
from ..user_code.import_object import filtered_traceback
from .root_cause import introduction

MESSAGES_SHOWN = 12
"""Messages of a conversation that a failure shows."""
TEXT_LIMIT = 1200
"""Characters of one message that a failure shows."""
QUESTION_LIMIT = 400
"""Characters of a message of the user's that a failure shows."""
SYSTEM_LIMIT = 64
"""Characters of a system prompt that a failure shows: it is the same in every one."""
TOOL_LINES, TOOL_LIMIT = 3, 160
"""Lines and characters of a tool's result that a failure shows."""
LINE_LIMIT = 400
"""Characters of an answer or a reason that is shown on one line."""
_LINES_SHOWN = 80
OURS = tuple(
    os.path.abspath(folder) + os.sep
    for folder in (*osmosis_ai.__path__, os.path.dirname(os.path.dirname(__file__)))
)
"""The folders of our code, in no traceback that a user sees."""
_MACHINERY = (os.sep + "asyncio" + os.sep, os.sep + "concurrent" + os.sep, "<frozen ")


def user_traceback(error: BaseException) -> str:
    """The root of an error's chain, then the traceback of all of it, the user's frames alone."""
    shown = filtered_traceback(error, _user_frames, most=_LINES_SHOWN)
    return introduction(error) + shown


def _user_frames(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    return [
        frame
        for frame in frames
        if not frame.filename.startswith(OURS)
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
    kind = f" ({result.answer_kind})" if result.answer_kind else ""
    return [
        f"{name} scored {_shorter(score, least)}, below the threshold {least:g}{kind}"
        for name, score, least in _low(result, threshold)
    ]


def _shorter(score: float, least: float) -> str:
    """A score in a few digits, unless it would then read as one that passes."""
    short = f"{score:g}"
    return short if float(short) < least else repr(score)


def _low(result: RunResult, threshold: float) -> list[tuple[str, float, float]]:
    each = [(n, score, result.thresholds.get(n, threshold)) for n, score in result.scores.items()]
    return [one for one in each if not passes(*one[1:])]


def conversation(messages: Sequence[Mapping[str, Any]], limit: int | None = MESSAGES_SHOWN) -> str:
    """The conversation, one block a message, roles in a column, indented by two.

    Of more than `limit` messages the middle is left out; the question always stays.
    """
    lines: list[str] = []
    at = 0
    for place in _places(messages, limit):
        if place > at:
            lines.append(f"  ({counted(place - at, 'message')} left out)")
        at = place + 1
        lines += _block(messages[place], whole=limit is None)
    return "\n".join(lines)


def _places(messages: Sequence[Mapping[str, Any]], limit: int | None) -> list[int]:
    """Which messages are shown: the system's, the first and last of the user, and the end."""
    if limit is None or len(messages) <= limit:
        return list(range(len(messages)))
    asked = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    head = {*asked[:1], *asked[-1:]}
    if messages[0].get("role") == "system":
        head.add(0)
    return sorted(head | set(range(len(messages) - limit + len(head), len(messages))))


def _block(message: Mapping[str, Any], *, whole: bool) -> Iterator[str]:
    role = str(message.get("role", "?"))
    for text in _message_lines(message):
        shown = text if whole else _excerpt(text, role)
        first, *rest = escape_control_chars(shown).splitlines() or [""]
        yield f"  {role:<10} {first}".rstrip()
        yield from (f"  {'':<10} {line}" for line in rest)
        role = ""


def _excerpt(text: str, role: str) -> str:
    if role == "system":
        return _one_line(text, SYSTEM_LIMIT)
    if role not in ("tool", "function"):
        return _without_middle(text, QUESTION_LIMIT if role == "user" else TEXT_LIMIT)
    shown = "\n".join(text.splitlines()[:TOOL_LINES])[:TOOL_LIMIT].rstrip()
    left_out = len(text.rstrip()) - len(shown)
    return f"{shown} [{counted(left_out, 'character')} left out]" if left_out else shown


def _without_middle(text: str, limit: int) -> str:
    """A text of so many characters at most, its beginning and its end."""
    if len(text) <= limit:
        return text
    head, tail = 2 * limit // 3, limit // 3
    left_out = counted(len(text) - head - tail, "character")
    return f"{text[:head].rstrip()} [{left_out} left out] {text[-tail:].lstrip()}"


def _message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    text = text_of(message.get("content"))
    calls = message.get("tool_calls") or []
    refusal = message.get("refusal")
    if text or not (calls or refusal):
        yield text
    if isinstance(refusal, str) and refusal:
        yield f"(refusal) {refusal}"
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
    record: RolloutRecord,
    *,
    threshold: float,
    max_turns: int,
    place: str | None = None,
    whole: Path | None = None,
) -> str:
    """Return the section of a failed or errored item, without secrets.

    `place` is where the row is, `whole` where all of the conversation is written.
    """
    result = record.result
    frames = [record.frames, *below_threshold(result, threshold)] if record.frames else []
    what = "\n".join(frames) or headline(result, threshold)
    text = harmless([what + _out_of_turns(record, max_turns), *_rollout_text(record, place)], whole)
    return redact(text)


def _rollout_text(record: RolloutRecord, place: str | None) -> list[str]:
    """Return a rollout in paragraphs: the conversation, what was expected, what it took.

    Texts are masked before they are cut: a cut secret is not recognised.
    """
    result = record.result
    messages, ground_truth, reasons = masked(
        plain([record.messages, record.ground_truth, record.reasons])
    )
    turns = "1 turn" if result.llm_calls == 1 else f"{result.llm_calls} turns"
    tokens = "" if result.tokens is None else f", {result.tokens} tokens"
    return [
        conversation(messages),
        "\n".join(
            [
                *_held_against(result, messages, ground_truth, reasons),
                *filter(None, [at_row(place)]),
            ]
        ),
        f"  {turns}{tokens}, {result.duration_ms / 1000:.2f} s",
    ]


def harmless(parts: Iterable[str], whole: Path | None = None) -> str:
    """The paragraphs as one text that no terminal and no workflow takes for commands."""
    text = "\n\n".join(escape_control_chars(part) for part in parts if part)
    if whole is not None:
        text += f"\n  conversation: {escape_control_chars(shown_path(whole))}"
    return escape_workflow_commands(text) if os.environ.get("GITHUB_ACTIONS") == "true" else text


def at_row(place: str | None) -> str:
    """A line that says where a row is; "" where that is not known."""
    return f"  row           {place}" if place else ""


def rollout_section(record: RolloutRecord, max_turns: int, place: str | None = None) -> str:
    """Return the rollout as it stands below a test function's own failure."""
    return harmless([_out_of_turns(record, max_turns).strip(), *_rollout_text(record, place)])


def _out_of_turns(record: RolloutRecord, max_turns: int) -> str:
    """A line that says that the turns ran out before the agent had an answer, if they did."""
    result = record.result
    last = record.messages[-1] if record.messages else {}
    unanswered = last.get("role") == "tool" or bool(last.get("tool_calls"))
    if not unanswered or result.llm_calls < max_turns or result.error_type == "provider":
        return ""
    return f"\nno answer after {counted(max_turns, 'turn')}, the most allowed (max-turns)"


def _held_against(
    result: RunResult,
    messages: Sequence[Mapping[str, Any]],
    ground_truth: Any,
    reasons: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    """What was expected, what came if the conversation does not end with it, and the reasons."""
    if ground_truth is not None:
        below = "\n" + " " * len("  ground truth  ")
        truth = escape_control_chars(_without_middle(truth_text(ground_truth), TEXT_LIMIT))
        yield f"  ground truth  {below.join(truth.splitlines())}"
        ends_with = text_of(messages[-1].get("content")) if messages else ""
        if result.answer and not ends_with.startswith(result.answer):
            yield f"  answer        {_one_line(result.answer)}"
    for name, said in reasons.items():
        yield from (f"  reason        {name}: {_one_line(reason)}" for reason in said)


def _one_line(text: str, limit: int = LINE_LIMIT) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[:limit].rstrip() + " …"
