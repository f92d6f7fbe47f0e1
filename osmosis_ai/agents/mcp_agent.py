"""The tools of an MCP server as an agent loop, for `--mcp`.

Talks to the server through a session of the MCP SDK, within this process. Does not know where the
server came from; the SDK is imported when a session is opened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from typing import Any

from .base import RolloutAgentLoop
from .context import RolloutContext
from .request import RolloutRequest
from .results import RolloutResult
from .tools import (
    create_tool_error_result,
    create_tool_result,
    execute_tool_calls,
    get_tool_call_info,
    serialize_tool_result,
)

Connect = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens a session with `list_tools()` and `call_tool(name, arguments)`."""


class McpAgent(RolloutAgentLoop):
    """Asks the model, calls the tools that it names, and ends with its first plain answer."""

    name = "mcp_agent"

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        with ThreadPoolExecutor(1) as pool:  # a loop may run in this thread
            self._tools = pool.submit(asyncio.run, _tools(connect)).result()

    def get_tools(self, request: RolloutRequest) -> list[dict[str, Any]]:
        """Return the server's tools."""
        return self._tools

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """Let the model call tools until it answers, or until its turns are used up."""
        messages = list(ctx.request.messages)
        for _ in range(ctx.request.max_turns):
            answer = await ctx.chat(messages, **ctx.request.completion_params)
            messages.append(answer.message)
            if not answer.has_tool_calls:
                return ctx.complete(messages)
            async with self._connect() as session:
                called = partial(_called, ctx, session)
                messages += await execute_tool_calls(answer.tool_calls or [], called)
        return ctx.complete(messages, finish_reason="max_turns")


def connect_to(server: Any) -> AbstractAsyncContextManager[Any]:
    """Open a session with a server of this process: of the MCP SDK 1 or 2, or of fastmcp."""
    if any(base.__module__.partition(".")[0] == "fastmcp" for base in type(server).__mro__):
        from fastmcp import Client as FastMCPClient

        fast: AbstractAsyncContextManager[Any] = FastMCPClient(server)
        return fast
    import mcp

    session: AbstractAsyncContextManager[Any]
    if hasattr(mcp, "Client"):
        session = mcp.Client(server)
    else:  # before 2, where a session takes the lower one of the SDK's two layers
        connect = import_module("mcp.shared.memory").create_connected_server_and_client_session
        session = connect(getattr(server, "_mcp_server", server))
    return session


async def _tools(connect: Connect) -> list[dict[str, Any]]:
    async with connect() as session:
        listed = await session.list_tools()
    return [_schema(tool) for tool in getattr(listed, "tools", listed)]


def _schema(tool: Any) -> dict[str, Any]:
    no_parameters = {"type": "object", "properties": {}}
    function = {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": _field(tool, "input_schema", "inputSchema") or no_parameters,
    }
    return {"type": "function", "function": function}


async def _called(
    ctx: RolloutContext, session: Any, tool_call: dict[str, Any]
) -> Mapping[str, Any]:
    call_id, name, arguments = get_tool_call_info(tool_call)
    started = time.perf_counter()
    try:
        # fastmcp's `call_tool` raises what a tool reports of its failure.
        result = await getattr(session, "call_tool_mcp", session.call_tool)(name, arguments)
    finally:
        ctx.record_tool_call(latency_ms=(time.perf_counter() - started) * 1000.0)
    text = "\n".join(_texts(result))
    if _field(result, "is_error", "isError"):
        return create_tool_error_result(call_id, text)
    return create_tool_result(call_id, text)


def _texts(result: Any) -> Iterator[str]:
    """Yield what a model can read of a result: its texts, else its structured content."""
    for item in result.content:
        text = getattr(item, "text", None)
        yield text if isinstance(text, str) else f"[{getattr(item, 'type', 'content')}]"
    if not result.content:
        structured = _field(result, "structured_content", "structuredContent")
        if structured is not None:
            yield serialize_tool_result(structured)


def _field(of: Any, name: str, name_before_2: str) -> Any:
    """Return a field by its name in version 2 of the SDK, where reading the old one warns."""
    return getattr(of, name) if hasattr(of, name) else getattr(of, name_before_2, None)
