"""What an answer is that is neither text nor a tool call, in one word.

A score alone would not tell it from a wrong answer. Knows messages and finish reasons in OpenAI's
and Anthropic's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..messages import text_of

_FILTERED = frozenset(
    {
        *("content_filter", "safety", "prohibited_content", "blocklist", "recitation"),
        "sensitive",  # Zhipu's
    }
)
_CUT = frozenset({"length", "max_tokens", "incomplete", "max_output_tokens"})
_CALLS = frozenset({"tool_calls", "function_call", "tool_use"})
KNOWN_REASONS = frozenset(
    {"stop", "end_turn", "stop_sequence", "completed", "eos", "none", "refusal", "pause_turn"}
    | {*_FILTERED, *_CUT, *_CALLS}
)
"""Finish reasons, in lower case, of which there is nothing to say, or something else."""


def kind_of_answer(message: Mapping[str, Any], finish_reason: str | None) -> str | None:
    """Return `refused`, `filtered`, `cut`, `no tool call` or `empty`; None for a usual answer."""
    reason = (finish_reason or "").lower()
    if message.get("refusal") or reason == "refusal":
        return "refused"
    if reason in _FILTERED:
        return "filtered"
    if reason in _CUT:
        return "cut"
    if message.get("tool_calls") or message.get("function_call"):
        return None
    if reason in _CALLS:
        return "no tool call"
    return None if text_of(message.get("content")).strip() else "empty"
