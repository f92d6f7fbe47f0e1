"""`osmosis validate`: checks an agent loop without running it.

`check_agent` is the whole of it; `osmosis serve` asks the same before it listens. No model and no
network is involved.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.error_text import named_error

from ..errors import CommandError
from ..eval.lines import say, tell
from ..shared_options import agent_option, mcp_option, require_agent
from .conversation_lines import tool_line

if TYPE_CHECKING:
    from osmosis_ai.rollout import RolloutAgentLoop

EPILOG = """\b
Examples:
  osmosis validate -m my_agent:agent_loop
  osmosis validate -m mypackage.agents:MyAgentClass
  osmosis validate -m path/to/agent.py:agent_loop --json
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    passed: bool
    detail: str
    """What was found, or what is wrong and how to fix it."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The checks of one agent; what depends on a failed one is left out."""

    checks: tuple[Check, ...]
    agent: RolloutAgentLoop | None
    """The agent, when it could be loaded."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """What the agent offers its model, where that could be read."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


def check_agent(spec: str, *, roots: Sequence[Path], option: str = "-m/--module") -> Validation:
    """Load `module:attribute` and look at its name, its tools and its `run`."""
    from pytest_osmosis.user_code.import_object import ImportingError
    from pytest_osmosis.user_code.load_agent import load_agent_loop

    try:
        agent = load_agent_loop(spec, option=option, roots=roots)
    except ImportingError as error:
        return Validation((Check("loads", False, str(error)),), None)
    loads = Check("loads", True, spec.removeprefix("mcp:"))
    tools_check, tools = _check_tools(agent)
    return Validation((loads, _check_name(agent), tools_check, _check_run(agent)), agent, tools)


def _check_name(agent: RolloutAgentLoop) -> Check:
    name = getattr(agent, "name", None)
    if isinstance(name, str) and name.strip():
        return Check("name", True, repr(name))
    return Check("name", False, f"`name` must be a non-empty string, not {name!r}")


def _check_tools(agent: RolloutAgentLoop) -> tuple[Check, tuple[Mapping[str, Any], ...]]:
    from osmosis_ai.rollout import OsmosisValidationError, RolloutRequest, tool_schemas

    messages = [{"role": "user", "content": "validate"}]
    request = RolloutRequest.for_eval(rollout_id="validate", messages=messages)
    try:
        tools = tuple(tool_schemas(agent, request))
    except OsmosisValidationError as error:
        return Check("get_tools", False, str(error)), ()
    except (Exception, SystemExit) as error:  # noqa: BLE001  the user's code: data
        return Check("get_tools", False, f"raised {named_error(error)}"), ()
    names = ", ".join(tool["function"]["name"] for tool in tools)
    return Check("get_tools", True, names or "no tools"), tools


def _check_run(agent: RolloutAgentLoop) -> Check:
    run = inspect.unwrap(agent.run)
    if inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(type(run).__call__):
        return Check("run", True, "is async")
    what = "is an async generator: return a result instead of yielding"
    if not inspect.isasyncgenfunction(run):
        what = "must be async: `async def run(self, ctx)`"
    return Check("run", False, f"{type(agent).__name__}.run {what}")


@click.command("validate", epilog=EPILOG)
@agent_option
@mcp_option
@click.option(
    "-v", "--verbose", is_flag=True, help="Show the tools as well, with their parameters."
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as one JSON document.")
@click.pass_context
def validate_command(
    ctx: click.Context, module: str | None, mcp: str | None, verbose: bool, as_json: bool
) -> None:
    """Check that an agent loop loads, has a name, has valid tools, and that its run is async.

    Nothing is run. The exit status is 1 when a check fails.
    """
    with redirect_stdout(sys.stderr):  # what the module prints at import
        agent = require_agent(module, mcp)
        validation = check_agent(agent, roots=[Path.cwd()])
    checks = [asdict(check) for check in validation.checks]
    if as_json:
        if not validation.passed:
            raise CommandError(_failure(validation), code="invalid", details={"checks": checks})
        click.echo(json.dumps({"module": agent, "valid": True, "checks": checks}))
        return
    for check in validation.checks:
        say(_line(check))
        if verbose and check.name == "get_tools":
            for line in map(tool_line, validation.tools):
                say(f"{'':<17}{line}")
    if not validation.passed:
        tell(_failure(validation))
        ctx.exit(1)


def _line(check: Check) -> str:
    first, *rest = check.detail.splitlines() or [""]
    lines = [f"{'ok' if check.passed else 'FAILED':<8}{check.name:<11}{first}"]
    return "\n".join([*lines, *(" " * 19 + line for line in rest)])


def _failure(validation: Validation) -> str:
    failed = [check for check in validation.checks if not check.passed]
    names = ", ".join(check.name for check in failed)
    return f"{len(failed)} of {len(validation.checks)} checks failed: {names}"
