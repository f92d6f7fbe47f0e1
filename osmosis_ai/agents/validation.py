"""`validate_agent_loop`: looks at an agent loop's name, tools and `run` without running it.

Each finding has a code for programs and a sentence for people. No model and no network is involved.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..error_text import named_error
from .base import RolloutAgentLoop
from .errors import OsmosisValidationError
from .request import RolloutRequest
from .tools import dump_tools

__all__ = [
    "AgentLoopValidationError",
    "ValidationError",
    "ValidationResult",
    "validate_agent_loop",
    "validate_and_report",
]

_log = logging.getLogger("osmosis.validation")


@dataclass(frozen=True, slots=True)
class ValidationError:
    """One thing that is wrong with an agent loop."""

    code: str
    message: str
    field: str | None = None
    """Where: an attribute, or a place in the tools such as `tools[0].function.name`."""

    def __str__(self) -> str:
        place = f"{self.field}: " if self.field else ""
        return f"[{self.code}] {place}{self.message}"


class AgentLoopValidationError(Exception):
    """An agent loop that cannot be served; `errors` says why."""

    def __init__(self, errors: list[ValidationError]) -> None:
        listed = "\n".join(f"  {error}" for error in errors)
        super().__init__(f"the agent loop has {len(errors)} error(s)\n{listed}")
        self.errors = errors


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What `validate_agent_loop` found; true where the agent loop is valid."""

    valid: bool
    errors: list[ValidationError] = field(default_factory=list)
    warnings: list[ValidationError] = field(default_factory=list)
    """What is allowed and will probably not do well."""
    agent_name: str | None = None
    tool_count: int = 0

    def __bool__(self) -> bool:
        return self.valid

    def raise_if_invalid(self) -> None:
        """Raise AgentLoopValidationError with all errors, where there are any."""
        if not self.valid:
            raise AgentLoopValidationError(self.errors)


def validate_agent_loop(
    agent_loop: RolloutAgentLoop, request: RolloutRequest | None = None
) -> ValidationResult:
    """Look at an agent loop's name, its tools for `request`, and whether its `run` is async."""
    if request is None:
        messages = [{"role": "user", "content": "validate"}]
        request = RolloutRequest.for_eval(rollout_id="validate", messages=messages)
    name = getattr(agent_loop, "name", None)
    tools, in_tools, warnings = _tools(agent_loop, request)
    errors = [*_in_name(name), *in_tools, *_in_run(agent_loop)]
    return ValidationResult(
        valid=not errors,
        errors=errors,
        warnings=warnings,
        agent_name=name if isinstance(name, str) else None,
        tool_count=len(tools),
    )


def validate_and_report(agent_loop: RolloutAgentLoop, *, verbose: bool = False) -> ValidationResult:
    """Validate an agent loop and log what was found; with `verbose` what is in order, too."""
    result = validate_agent_loop(agent_loop)
    for error in result.errors:
        _log.error("%s", error)
    for warning in result.warnings:
        _log.warning("%s", warning)
    if result.valid:
        level = logging.WARNING if verbose else logging.INFO
        _log.log(level, "agent %r is valid; tools: %d", result.agent_name, result.tool_count)
    return result


def _in_name(name: Any) -> Iterator[ValidationError]:
    if not isinstance(name, str) or not name.strip():
        yield ValidationError("MISSING_NAME", f"must be a non-empty string, not {name!r}", "name")


def _in_run(agent_loop: RolloutAgentLoop) -> Iterator[ValidationError]:
    run = inspect.unwrap(agent_loop.run)
    if not (inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(type(run).__call__)):
        yield ValidationError("RUN_NOT_ASYNC", "must be `async def run(self, ctx)`", "run")


def _tools(
    agent_loop: RolloutAgentLoop, request: RolloutRequest
) -> tuple[list[Any], list[ValidationError], list[ValidationError]]:
    """Return the tools, the errors in them and the warnings about them."""
    try:
        given: Any = agent_loop.get_tools(request)
    except (Exception, SystemExit) as error:  # noqa: BLE001  the user's code: data
        message = f"raised {named_error(error)}"
        return [], [ValidationError("GET_TOOLS_EXCEPTION", message, "get_tools")], []
    if given is None:
        message = "returned None; return [] for an agent without tools"
        return [], [ValidationError("GET_TOOLS_RETURNS_NONE", message, "get_tools")], []
    if not isinstance(given, list | tuple):
        message = f"returned {type(given).__name__}; expected a list"
        return [], [ValidationError("GET_TOOLS_NOT_LIST", message, "get_tools")], []
    tools = [tool.model_dump() if hasattr(tool, "model_dump") else tool for tool in given]
    errors = [error for index, tool in enumerate(tools) for error in _in_tool(index, tool)]
    warnings = [warning for index, tool in enumerate(tools) for warning in _about_tool(index, tool)]
    return list(given), errors or list(_in_all(agent_loop, given)), warnings


def _in_tool(index: int, tool: Any) -> Iterator[ValidationError]:
    """Yield what a tool lacks; the finer checks are those of an evaluation."""
    where = f"tools[{index}]"
    if not isinstance(tool, Mapping):
        message = f"is {type(tool).__name__}; expected an OpenAIFunctionToolSchema or a dict"
        yield ValidationError("INVALID_TOOL", message, where)
        return
    if tool.get("type") != "function":
        yield ValidationError("MISSING_TOOL_TYPE", 'must be "function"', f"{where}.type")
    function = tool.get("function")
    if not isinstance(function, Mapping):
        yield ValidationError("MISSING_FUNCTION", "must describe a function", f"{where}.function")
    elif not function.get("name"):
        yield ValidationError("MISSING_FUNCTION_NAME", "is missing", f"{where}.function.name")


def _about_tool(index: int, tool: Any) -> Iterator[ValidationError]:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if isinstance(function, Mapping) and not function.get("description"):
        place = f"tools[{index}].function.description"
        message = "is missing: the model sees the name alone"
        yield ValidationError("MISSING_FUNCTION_DESCRIPTION", message, place)


def _in_all(agent_loop: RolloutAgentLoop, given: Any) -> Iterator[ValidationError]:
    try:
        dump_tools(given, owner=f"{type(agent_loop).__name__}.get_tools")
    except OsmosisValidationError as error:
        yield ValidationError("INVALID_TOOL", str(error), "get_tools")
