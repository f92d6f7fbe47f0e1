"""Messages and tools as lines for a terminal: short, and without control characters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from osmosis_ai.agents.message_fields import parse_tool_calls

SHOWN = 2000
"""Characters of a message or of a call's arguments."""


def message_lines(message: Mapping[str, Any]) -> str:
    """Return a message and its tool calls, a line each."""
    role = str(message.get("role", "?"))
    lines = [f"  {role:<10} {cut(message.get('content'))}".rstrip()]
    calls: list[Any] = parse_tool_calls(message)
    for call in calls:
        function = call.get("function", {}) if isinstance(call, dict) else {}
        shown = f"{function.get('name')}({function.get('arguments')})"
        lines.append(f"  {'':<10} -> {cut(shown)}")
    return "\n".join(lines)


def tool_line(tool: Mapping[str, Any]) -> str:
    """Return a tool with its parameters and its description."""
    function = tool["function"]
    parameters = (function.get("parameters") or {}).get("properties") or {}
    shown = f"{function['name']}({', '.join(parameters)})"
    return f"  {shown}  {cut(function.get('description'), 80)}".rstrip()


def cut(value: Any, limit: int = SHOWN) -> str:
    """Return a value's text on one line, at most so long."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
