"""`osmosis validate`: checks an agent without running it, as `osmosis serve` does a loop."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import CommandError, command_errors
from ..eval.lines import say
from ..shared_options import (
    agent_option,
    import_timeout_option,
    json_option,
    mcp_option,
    print_json,
    require_agent,
)

if TYPE_CHECKING:
    from osmosis_ai.rollout import AgentWorkflow, RolloutAgentLoop
    from osmosis_ai.rollout.validator import ValidationResult
    from pytest_osmosis.user_code.load_agent import LoadedAgent

EPILOG = """\b
Examples:
  osmosis validate -m my_agent:agent_loop
  osmosis validate -m mypackage.agents:MyAgentClass
  osmosis validate -m path/to/agent.py:agent_loop --json
  osmosis validate -m rollouts/my-rollout/main.py
"""
NO_GRADER = "none: give eval functions, --eval-fn"


def import_agent(
    spec: str, import_timeout_s: float, *, withheld: Sequence[str] = ()
) -> LoadedAgent:
    """Return the agent that -m names, imported in so many seconds; raise ImportingError.

    A program is started without the variables `withheld`.
    """
    from pytest_osmosis.user_code.agent import MCP
    from pytest_osmosis.user_code.import_object import ImportingError, imports_within
    from pytest_osmosis.user_code.load_agent import AGENT, load_agent

    with imports_within(import_timeout_s, "--import-timeout"):
        try:
            return load_agent(spec, roots=[Path.cwd()], withheld=withheld)
        except ImportingError as error:
            if spec.startswith(MCP):
                raise
            raise ImportingError(str(error).replace(AGENT, "-m/--module")) from None


def load_loop(spec: str, import_timeout_s: float) -> RolloutAgentLoop:
    """Return the agent loop `module:attribute`; raise CommandError."""
    from pytest_osmosis.user_code.import_object import ImportingError, imports_within
    from pytest_osmosis.user_code.load_agent import load_agent_loop

    with (
        command_errors(ImportingError, code="invalid"),
        imports_within(import_timeout_s, "--import-timeout"),
    ):
        return load_agent_loop(spec, option="-m/--module", roots=[Path.cwd()])


def check_agent(agent: RolloutAgentLoop, *, advice: str = "") -> None:
    """Raise CommandError with all that is wrong with an agent loop."""
    from osmosis_ai.rollout.validator import validate_agent_loop

    _refuse_invalid(type(agent).__name__, validate_agent_loop(agent), advice)


def _refuse_invalid(kind: str, found: ValidationResult, advice: str = "") -> None:
    if not found:
        count = len(found.errors)
        raise CommandError(
            f"{found.agent_name or kind} has {count} "
            f"{'error' if count == 1 else 'errors'}{advice}\n"
            + "\n".join(f"  {error.field}: {error.message}" for error in found.errors),
            code="invalid",
            details={"errors": [asdict(error) for error in found.errors]},
        )


@click.command("validate", epilog=EPILOG)
@agent_option
@mcp_option
@import_timeout_option
@click.option("-v", "--verbose", is_flag=True, help="Show the tools, with their parameters.")
@json_option
def validate_command(
    module: str | None, mcp: str | None, import_timeout_s: float, verbose: bool, as_json: bool
) -> None:
    """Check that an agent loads, has a name and valid tools, and that its run is async.

    Of a workflow, say which grader scores it. Nothing is run. A line for each check; the exit
    status is 1 when one fails, and all that is wrong is said.
    """
    from osmosis_ai.rollout.validator import validate_agent_loop
    from pytest_osmosis.user_code.agent_loop import LoopAgent
    from pytest_osmosis.user_code.import_object import ImportingError
    from pytest_osmosis.user_code.workflow import WorkflowAgent

    named = require_agent(module, mcp)
    # What the module prints at import is no output of the command.
    with redirect_stdout(sys.stderr), command_errors(ImportingError, code="invalid"):
        loaded = import_agent(named, import_timeout_s)
        loop, grader = None, None
        if isinstance(loaded.agent, LoopAgent):
            loop = loaded.agent.loop
            found = validate_agent_loop(loop)
            in_order = {"name": repr(found.agent_name), "get_tools": f"tools: {found.tool_count}"}
        elif isinstance(loaded.agent, WorkflowAgent):
            found, grader = _of_workflow(named, loaded, loaded.agent.workflow)
            in_order = {"workflow": str(found.agent_name), "grader": grader or NO_GRADER}
        else:
            raise CommandError(f"{named}: a program is checked by running it: osmosis test -m ...")
    if not as_json:
        say(f"{'ok':<8}{'loads':<11}{named.removeprefix('mcp:')}")
        for name, detail, passed in _checks(found, in_order | {"run": "is async"}):
            say(f"{'ok' if passed else 'FAILED':<8}{name:<11}{detail}")
    _refuse_invalid(type(loaded.agent).__name__ if loop is None else type(loop).__name__, found)
    if as_json:
        warnings = [asdict(warning) for warning in found.warnings]
        about = {"name": found.agent_name, "tools": found.tool_count, "warnings": warnings}
        if loop is None:
            about = {"name": found.agent_name, "grader": grader}
        print_json({"module": named, "valid": True, **about})
        return
    for tool in _tools(loop) if verbose and loop is not None else ():
        say(f"  {tool}")
    for warning in found.warnings:
        say(f"warning: {warning.field} {warning.message}", err=True)


def _of_workflow(
    named: str, loaded: LoadedAgent, workflow: AgentWorkflow[Any]
) -> tuple[ValidationResult, str | None]:
    """Return what is found of a workflow, and the name of its grader; raise ImportingError."""
    from osmosis_ai.rollout.validator import ValidationError, ValidationResult
    from pytest_osmosis.user_code.load_agent import load_grading

    grading = load_grading(None, loaded, agent=named, roots=[Path.cwd()])
    calls: dict[str, Any] = {"run": workflow.run}
    if grading is not None:
        calls["grader"] = grading.grader.grade
    errors = [
        ValidationError("NOT_ASYNC", f"must be `async def {call.__name__}(self, ctx)`", place)
        for place, call in calls.items()
        if not inspect.iscoroutinefunction(inspect.unwrap(call))
    ]
    found = ValidationResult(not errors, errors, agent_name=type(workflow).__name__)
    return found, None if grading is None else grading.name


def _checks(
    found: ValidationResult, in_order: Mapping[str, str]
) -> Iterator[tuple[str, str, bool]]:
    """Yield each check of a loaded agent, what was found, and whether it passed."""
    for name, detail in in_order.items():
        # What is wrong with a tool has its place in the tools as its field.
        wrong = [
            error
            for error in found.errors
            if (error.field if error.field in in_order else "get_tools") == name
        ]
        yield name, "; ".join(error.message for error in wrong) or detail, not wrong


def _tools(agent: RolloutAgentLoop) -> Iterator[str]:
    from osmosis_ai.rollout import RolloutRequest, tool_schemas

    messages = [{"role": "user", "content": "validate"}]
    request = RolloutRequest.for_eval(rollout_id="validate", messages=messages)
    for function in (tool["function"] for tool in tool_schemas(agent, request)):
        parameters = (function.get("parameters") or {}).get("properties") or {}
        description = " ".join((function.get("description") or "").split())
        yield f"{function['name']}({', '.join(parameters)})  {description}".rstrip()
