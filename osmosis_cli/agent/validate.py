"""`osmosis validate`: checks an agent loop without running it, as `osmosis serve` does first."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

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
    from osmosis_ai.rollout import RolloutAgentLoop
    from osmosis_ai.rollout.validator import ValidationResult

EPILOG = """\b
Examples:
  osmosis validate -m my_agent:agent_loop
  osmosis validate -m mypackage.agents:MyAgentClass
  osmosis validate -m path/to/agent.py:agent_loop --json
"""


def import_agent(spec: str, import_timeout_s: float) -> RolloutAgentLoop:
    """Return the agent loop `module:attribute`, imported in so many seconds; ImportingError."""
    from pytest_osmosis.user_code.import_object import imports_within
    from pytest_osmosis.user_code.load_agent import load_agent_loop

    with imports_within(import_timeout_s, "--import-timeout"):
        return load_agent_loop(spec, option="-m/--module", roots=[Path.cwd()])


def load_agent(spec: str, import_timeout_s: float) -> RolloutAgentLoop:
    """Return the agent loop as `import_agent` does; raise CommandError."""
    from pytest_osmosis.user_code.import_object import ImportingError

    with command_errors(ImportingError, code="invalid"):
        return import_agent(spec, import_timeout_s)


def check_agent(agent: RolloutAgentLoop, *, advice: str = "") -> None:
    """Raise CommandError with all that is wrong with an agent loop."""
    from osmosis_ai.rollout.validator import validate_agent_loop

    _refuse_invalid(agent, validate_agent_loop(agent), advice)


def _refuse_invalid(agent: RolloutAgentLoop, found: ValidationResult, advice: str = "") -> None:
    if not found:
        count = len(found.errors)
        raise CommandError(
            f"{found.agent_name or type(agent).__name__} has {count} "
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
    """Check that an agent loop loads, has a name, has valid tools, and that its run is async.

    Nothing is run. A line for each check; the exit status is 1 when one fails, and all that is
    wrong is said.
    """
    from osmosis_ai.rollout.validator import validate_agent_loop

    with redirect_stdout(sys.stderr):  # what the module prints at import
        named = require_agent(module, mcp)
        agent = load_agent(named, import_timeout_s)
        found = validate_agent_loop(agent)
    if not as_json:
        say(f"{'ok':<8}{'loads':<11}{named.removeprefix('mcp:')}")
        for name, detail, passed in _checks(found):
            say(f"{'ok' if passed else 'FAILED':<8}{name:<11}{detail}")
    _refuse_invalid(agent, found)
    if as_json:
        warnings = [asdict(warning) for warning in found.warnings]
        about = {"name": found.agent_name, "tools": found.tool_count, "warnings": warnings}
        print_json({"module": named, "valid": True, **about})
        return
    for tool in _tools(agent) if verbose else ():
        say(f"  {tool}")
    for warning in found.warnings:
        say(f"warning: {warning.field} {warning.message}", err=True)


def _checks(found: ValidationResult) -> Iterator[tuple[str, str, bool]]:
    """Yield each check of a loaded agent, what was found, and whether it passed."""
    in_order = {
        "name": repr(found.agent_name),
        "get_tools": f"tools: {found.tool_count}",
        "run": "is async",
    }
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
