"""Tools: their schemas on the way to the model, its tool calls on the way back.

Everything that a model may get wrong becomes an answer that the model can read. Which tools there
are, and what they do, is the agent's business.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..error_text import named_error
from .errors import OsmosisValidationError, ToolArgumentError

if TYPE_CHECKING:
    from .base import RolloutAgentLoop
    from .request import RolloutRequest

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

logger = logging.getLogger(__name__)

MAX_TOOL_CALLS = 128
"""Calls of one assistant message that are executed; the rest get an error result."""

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

ToolExecutor = Callable[[dict[str, Any]], Any]
"""Executes one tool call and returns its tool message, or a value to be made into one."""
Execute = Callable[[dict[str, Any], ToolExecutor], Awaitable[dict[str, Any]]]
around: Callable[[Execute], Execute] | None = None
"""What is put around each execution of a tool, in a session that traces them."""


def create_tool_result(tool_call_id: str, content: str) -> dict[str, str]:
    """Return the tool message that answers a call."""
    return {"role": "tool", "tool_call_id": tool_call_id, "content": content}


def create_tool_error_result(tool_call_id: str, error_message: str) -> dict[str, str]:
    """Return the tool message that reports a failed call to the model."""
    return create_tool_result(tool_call_id, f"Error: {error_message}")


def serialize_tool_result(value: Any) -> str:
    """Return what a tool returned, as text for the model: strings as they are, the rest as JSON."""
    if isinstance(value, str):
        return value
    dump = getattr(value, "model_dump", None)
    try:
        return json.dumps(dump() if dump else value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        # Odd keys or cycles: the model reads text as well.
        return str(value)


def parse_tool_arguments(tool_call: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return the arguments of a tool call, or of its arguments as text or dict.

    Null, and an empty text, are no arguments.

    Raises ToolArgumentError, which carries the call's id, unless they are a JSON object.
    """
    call_id, name, arguments = None, None, tool_call
    if isinstance(tool_call, Mapping) and isinstance(tool_call.get("function"), Mapping):
        call_id, name = tool_call.get("id"), tool_call["function"].get("name")
        arguments = tool_call["function"].get("arguments")
    if isinstance(arguments, str):
        arguments = _loads(arguments, call_id, name)
    if arguments is None:
        return {}
    if not isinstance(arguments, Mapping):
        given = "a list" if isinstance(arguments, list) else repr(arguments)[:50]
        raise ToolArgumentError(f"arguments must be a JSON object, not {given}", call_id, name)
    return dict(arguments)


def _loads(text: str, call_id: str | None, name: str | None) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as exc:
        reason = str(exc)
    raise ToolArgumentError(f"arguments are not JSON: {reason}", call_id, name)


def get_tool_call_info(tool_call: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Return id, function name and arguments of a tool call.

    A call without an id is given one, in place, so that the history stays consistent. Raises
    ToolArgumentError, which carries the id, when the arguments are wrong.
    """
    call_id = _call_id(tool_call)
    function = tool_call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ToolArgumentError("the tool call names no function", call_id)
    return call_id, name, parse_tool_arguments(tool_call)


def _call_id(tool_call: Any) -> str:
    call_id = tool_call.get("id") if isinstance(tool_call, dict) else None
    if not isinstance(call_id, str) or not call_id:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
        if isinstance(tool_call, dict):
            tool_call["id"] = call_id
    return call_id


async def execute_tool_calls(
    tool_calls: Iterable[dict[str, Any]], executor: ToolExecutor
) -> list[dict[str, Any]]:
    """Execute all calls at once; results in call order, each a tool message.

    A call whose executor raises gets an error result; the other calls continue. Calls beyond
    `MAX_TOOL_CALLS` are not executed and get an error result.
    """
    calls = list(tool_calls)
    execute = _execute if around is None else around(_execute)
    results = await asyncio.gather(*(execute(call, executor) for call in calls[:MAX_TOOL_CALLS]))
    too_many = f"too many tool calls at once ({len(calls)}; at most {MAX_TOOL_CALLS})"
    rest = [create_tool_error_result(_call_id(call), too_many) for call in calls[MAX_TOOL_CALLS:]]
    return [*results, *rest]


async def _execute(tool_call: dict[str, Any], executor: ToolExecutor) -> dict[str, Any]:
    call_id = _call_id(tool_call)
    if not isinstance(tool_call, dict):
        return create_tool_error_result(call_id, "the tool call is not a JSON object")
    try:
        result: Any = executor(tool_call)
        if inspect.isawaitable(result):
            result = await result
    except ToolArgumentError as exc:
        return create_tool_error_result(call_id, str(exc))
    except (Exception, SystemExit) as exc:
        # The boundary where a tool's failure becomes something that the model reads. Its sys.exit()
        # would end the event loop, and every rollout with it.
        logger.warning("tool call %s failed", call_id, exc_info=True)
        return create_tool_error_result(call_id, named_error(exc))
    if isinstance(result, dict) and result.get("role") == "tool":
        return result
    return create_tool_result(call_id, serialize_tool_result(result))


def tool_schemas(agent: RolloutAgentLoop, request: RolloutRequest) -> list[dict[str, Any]]:
    """Return the agent's tools for `request` as dicts, ready for the wire.

    What `get_tools` raises propagates untouched; raises OsmosisValidationError, naming the agent's
    class, when what it returned are no valid OpenAI function schemas with unique names.
    """
    tools: Any = agent.get_tools(request)
    owner = f"{type(agent).__name__}.get_tools"
    if inspect.iscoroutine(tools):
        tools.close()
        raise OsmosisValidationError(f"{owner} is async; expected a plain method")
    return dump_tools(tools, owner=owner)


def dump_tools(tools: Any, *, owner: str) -> list[dict[str, Any]]:
    """Return tools (schemas or dicts) as checked dicts; `owner` names their source in errors.

    Equal tools share one dict over all rollouts: read them, do not change them.
    """
    if type(tools) is not list and not _is_sequence(tools):
        kind = "None" if tools is None else type(tools).__name__
        raise OsmosisValidationError(f"{owner} returned {kind}; expected a list of tools")
    dumped: dict[str, dict[str, Any]] = {}
    for index, tool in enumerate(tools):
        checked, problem = _checked_tool(tool)
        if problem:
            raise OsmosisValidationError(f"{owner}: tool {index} {problem}")
        name = checked["function"]["name"]
        if name in dumped:
            raise OsmosisValidationError(f"{owner}: two tools are named {name!r}")
        dumped[name] = checked
    return list(dumped.values())


def _is_sequence(tools: Any) -> bool:
    return isinstance(tools, Sequence) and not isinstance(tools, (str, bytes, Mapping))


def _checked_tool(tool: Any) -> tuple[dict[str, Any], str | None]:
    # Every rollout asks for the same few tools: as JSON text they are quick to compare.
    dump = getattr(tool, "model_dump_json", None)
    try:
        text = dump(exclude_none=True) if dump else json.dumps(tool, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return {}, "is not JSON" if isinstance(tool, Mapping) or dump else _tool_problem(tool)
    return _read_tool(text)


@lru_cache(maxsize=512)
def _read_tool(text: str) -> tuple[dict[str, Any], str | None]:
    tool = json.loads(text)
    return tool, _tool_problem(tool)


def _tool_problem(tool: Any) -> str | None:
    """Return what is wrong with a tool's dict, as the end of a sentence."""
    if not isinstance(tool, Mapping):
        return f"is {type(tool).__name__}; expected an OpenAIFunctionToolSchema or a dict"
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, Mapping):
        return 'is not of the form {"type": "function", "function": {...}}'
    name = function.get("name")
    if not isinstance(name, str) or _TOOL_NAME.fullmatch(name) is None:
        return f"has the name {name!r}; expected 1 to 64 letters, digits, '_' or '-'"
    return _parameters_problem(name, function.get("parameters"))


def _parameters_problem(name: str, parameters: Any) -> str | None:
    if parameters is None:
        return None
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        return f"({name}) needs parameters of type object"
    properties, required = parameters.get("properties", {}), parameters.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, Sequence):
        return f"({name}) needs properties as a dict and required as a list"
    unknown = [key for key in required if key not in properties]
    if unknown:
        return f"({name}) requires {unknown[0]!r}, which is not among its properties"
    return None
