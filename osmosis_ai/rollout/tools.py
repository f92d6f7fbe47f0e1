"""The import path that existing projects use; the code is in `osmosis_ai.agents.tools`."""

from __future__ import annotations

from ..agents.tools import (
    MAX_TOOL_CALLS,
    ToolExecutor,
    create_tool_error_result,
    create_tool_result,
    dump_tools,
    execute_tool_calls,
    get_tool_call_info,
    logger,
    parse_tool_arguments,
    serialize_tool_result,
    tool_schemas,
)

__all__ = [
    "MAX_TOOL_CALLS",
    "ToolExecutor",
    "create_tool_error_result",
    "create_tool_result",
    "dump_tools",
    "execute_tool_calls",
    "get_tool_call_info",
    "logger",
    "parse_tool_arguments",
    "serialize_tool_result",
    "tool_schemas",
]
