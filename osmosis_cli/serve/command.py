"""`osmosis serve`: an agent loop behind HTTP, for a trainer.

Reads the command line, decides about the key, and says where the server is. Loading and serving
are `serving`'s.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from osmosis_ai.escaping import printable
from osmosis_ai.rollout_server.api_key import generate_api_key
from osmosis_ai.secret import Secret, check_api_key

from ..buffered_output import BufferedStreams
from ..errors import ENDS_BY_SIGNAL, usage_errors
from ..shared_options import (
    agent_option,
    complete_folders,
    import_timeout_option,
    mcp_option,
    print_json,
    require_agent,
)
from .server import (
    KEY_VARIABLE,
    Plan,
    bind,
    find_platform,
    has_platform,
    load_agent,
    log_to_stderr,
    make_app,
    serve,
    serve_with_reload,
    settings_of,
)

PORT = 9000
ANYWHERE = "0.0.0.0"
LOOPBACK = "127.0.0.1"
LEVELS = ("debug", "info", "warning", "error", "critical")
GENERATED = "generated key"
HERE = (
    "no login and no workspace of a platform here: serving this machine alone, as with --local; "
    "after `osmosis login` the server registers with the platform"
)

EPILOG = f"""\b
Examples:
  osmosis serve -m my_agent:agent_loop
  osmosis serve -m my_agent:agent_loop --local
  osmosis serve -m my_agent:agent_loop --skip-register -p 8080 \\
      --allow-trainer http://10.0.0.7:8000

The key is generated unless {KEY_VARIABLE} or --api-key gives one. It is what a trainer
sends to this server; it is neither your login nor what this server sends to a trainer.
"""


@click.command("serve", epilog=EPILOG)
@agent_option
@mcp_option
@import_timeout_option
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    metavar="PORT",
    help=f"Port to listen on; 0 takes one that is free (default: {PORT}).",
)
@click.option(
    "-H",
    "--host",
    metavar="ADDRESS",
    help=f"Address to listen on (default: {ANYWHERE}; with --local {LOOPBACK}).",
)
@click.option("--no-validate", is_flag=True, help="Serve the agent without checking it first.")
@click.option("--reload", is_flag=True, help="Start again when a source file changes.")
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="info",
    metavar="LEVEL",
    help=f"Least level of the log: {', '.join(LEVELS)} (default: info).",
)
@click.option(
    "--log",
    "log_dir",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Write a trace of each rollout here.",
)
@click.option(
    "--skip-register", is_flag=True, help="Do not register with the platform: needs no login."
)
@click.option(
    "--local",
    "--local-debug",
    "local",
    is_flag=True,
    help="For trying things out: loopback, no key, no registration.",
)
@click.option("--api-key", metavar="KEY", help=f"This server's key; prefer {KEY_VARIABLE}.")
@click.option(
    "--allow-trainer",
    "allowed_trainers",
    multiple=True,
    metavar="ORIGIN",
    help="Call only this trainer, wherever it is; repeatable (or OSMOSIS_ALLOWED_TRAINERS).",
)
@click.option(
    "--max-concurrent",
    type=click.IntRange(1),
    default=100,
    envvar="OSMOSIS_ROLLOUT_SERVER_MAX_CONCURRENT_ROLLOUTS",
    metavar="N",
    help="Rollouts that run at once; as many again may wait (default: 100).",
)
@click.option(
    "--drain",
    "drain_s",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=10.0,
    metavar="S",
    help="Seconds that a shutdown lets rollouts end by themselves (default: 10).",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Say where the server is as one JSON document."
)
@click.pass_context
def serve_command(
    ctx: click.Context,
    /,
    api_key: str | None,
    reload: bool,
    as_json: bool,
    no_validate: bool,
    skip_register: bool,
    **values: Any,
) -> None:
    """Serve an agent loop to a trainer, until SIGTERM or Ctrl-C.

    Rollouts that run then may end by themselves for a while. In a platform's workspace, or with a
    login, the server registers itself there; else it serves this machine alone, as with --local.
    """
    values["module"] = require_agent(values["module"], values.pop("mcp"))
    says_how = values["local"] or skip_register or values["host"] or api_key
    if not says_how and KEY_VARIABLE not in os.environ and not has_platform():
        values["local"] = True
        click.echo(HERE, err=True)
    local = values["local"]
    values["host"] = values["host"] or (LOOPBACK if local else ANYWHERE)
    values["allowed_trainers"] = _trainers(values["allowed_trainers"])
    plan = Plan(validate=not no_validate, register=not (local or skip_register), **values)
    key, note = _key(ctx, plan, api_key)
    settings_of(plan)
    _check_log_dir(plan.log_dir)
    login = find_platform() if plan.register else None
    agent = load_agent(plan)
    with bind(plan) as bound:
        plan = replace(plan, port=bound.getsockname()[1])
        _announce(ctx, plan, key, note, as_json=as_json)
        log_to_stderr(plan, key)
        ctx.meta[ENDS_BY_SIGNAL] = True
        if reload:
            serve_with_reload(plan, key, bound)
        else:
            serve(make_app(plan, agent, key, login), bound)


def _trainers(typed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the origins of the command line, else those of the environment; each is one."""
    from osmosis_ai.rollout_server.settings import TRAINERS_VARIABLE, trainers_from
    from osmosis_ai.rollout_server.trainer.address_policy import check_origin

    name = "--allow-trainer" if typed else TRAINERS_VARIABLE
    with usage_errors(ValueError, where=f"{name}: "):
        return tuple(map(check_origin, typed or trainers_from(os.environ)))


def _key(ctx: click.Context, plan: Plan, given: str | None) -> tuple[Secret | None, str]:
    """Return the server's key, and what is to be said about it."""
    typed = ctx.get_parameter_source("api_key") is ParameterSource.COMMANDLINE
    if typed and plan.local:
        raise click.UsageError(
            "--local goes without a key: leave out --api-key, or write --skip-register instead"
        )
    if plan.local and not plan.on_loopback:
        raise click.UsageError(
            f"--local is for this machine alone, and --host {plan.host} can be reached from "
            "outside: leave out -H/--host, or write --skip-register instead of --local"
        )
    # What the agent starts inherits the environment, and has no use for the key.
    exported = os.environ.pop(KEY_VARIABLE, None)
    if plan.local:
        return None, "none; only this machine can reach the server"
    value = given if typed else exported
    if value is None:
        return Secret(generate_api_key(), GENERATED), "generated, shown only here"
    name = "--api-key" if typed else KEY_VARIABLE
    with usage_errors(ValueError):
        key = check_api_key(value, name)
    if typed:
        click.echo(
            "warning: --api-key shows the key to every user of this machine, who can read the "
            f"arguments of a process; export it as {KEY_VARIABLE} instead",
            err=True,
        )
    return key, f"from {name}"


def _check_log_dir(log_dir: str | None) -> None:
    if log_dir is None:
        return
    probe = Path(log_dir) / f".osmosis-{os.getpid()}"
    try:
        Path(log_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise click.UsageError(f"--log {log_dir!r}: {error.strerror}") from None


def _announce(
    ctx: click.Context, plan: Plan, key: Secret | None, note: str, *, as_json: bool
) -> None:
    shown = None if key is None else key.reveal()
    if as_json:
        print_json({"module": plan.module, "url": plan.url, "api_key": shown})
    else:
        click.echo(f"serving {printable(plan.module)} on {plan.url}")
        generated = key is not None and key.name == GENERATED
        click.echo(f"API key: {shown}  ({note})" if generated else f"API key: {note}")
    sys.stdout.flush()
    if streams := ctx.find_object(BufferedStreams):
        streams.release()
