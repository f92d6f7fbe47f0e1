"""The root of the `osmosis` command and the table of its subcommands.

Imports only click, so that `osmosis --help` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from .env_file import env_file_options, moved_to_front, read_env_file
from .errors import COMPLETION_VARIABLE, PROGRAM, run
from .lazy_group import MORE, ON_PLATFORM, Entry, LazyGroup, StyledHelp, on_platform

EVALUATE = "Evaluate an agent"
TRY_OUT = "Try out an agent, look at its data"
TRAIN = "Serve an agent to a trainer"
COMMANDS = {
    "init": Entry("init:init_command", "Write a first evaluation that passes at once.", EVALUATE),
    "eval": Entry("eval.command:eval_group", "Evaluate an agent on a dataset.", EVALUATE),
    "eval-rubric": Entry(
        "rubric.command:rubric_command", "Score recorded answers with an LLM judge.", EVALUATE
    ),
    "test": Entry("agent.run:test_command", "Run an agent without scoring it.", TRY_OUT),
    "validate": Entry(
        "agent.validate:validate_command", "Check an agent loop without running it.", TRY_OUT
    ),
    "preview": Entry("agent.preview:preview_command", "Show a rubric file or a dataset.", TRY_OUT),
    "serve": Entry("serve.command:serve_command", "Serve an agent loop to a trainer.", TRAIN),
    "workspace": on_platform(
        "workspace:workspace_group", "Create a workspace's files; choose the active one."
    ),
    "rollout": on_platform("workspace:rollout_group", "Create a rollout that works at once."),
    "login": on_platform("login:login_command", "Log in to the platform."),
    "whoami": on_platform("account:whoami_command", "Show who you are at the platform."),
    "logout": on_platform("account:logout_command", "End a login."),
    "dataset": on_platform("dataset:dataset_group", "List datasets on the platform, upload one."),
    "secret": on_platform("secret:secret_group", "Set and delete secrets of submitted runs."),
    "doctor": on_platform("doctor:doctor_command", "Look at workspace, login and platform."),
    "template": Entry("template:template_group", "Write the files of a template.", EVALUATE),
    "train": on_platform("run_commands:train_group", "Submit training runs, and follow them."),
}

JSON = "--json"
PLAIN = "--plain"
AUTH = ("login", "logout", "whoami")
"""Commands that osmosis-ai 0.3 has below `auth`."""
ADDED_COMMANDS = "osmosis.commands"
"""The group of entry points by which other packages add commands."""

EXAMPLES = {
    EVALUATE: "osmosis eval -m agent:answer -d questions.jsonl --eval-fn includes",
    TRY_OUT: "osmosis test -m server:agent_loop -d test_data.jsonl --model embedded",
    TRAIN: "osmosis serve -m server:agent_loop --local",
    ON_PLATFORM: "osmosis eval submit configs/eval/my-rollout.toml",
    MORE: "osmosis platform try",
}
"""A command line for each heading of the help."""
EPILOG = "More examples: osmosis COMMAND --help"


def _show_version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if not asked or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    from osmosis_ai._conflict import conflicting_distribution

    click.echo(f"{PROGRAM} {version('pytest-osmosis')}")
    if told := conflicting_distribution():
        click.echo(told, err=True)
    ctx.exit()


class RootGroup(LazyGroup):
    """The group of all commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The options of every command may stand behind it, too, and `--json` before it.

        `--plain`, as osmosis-ai 0.3 has it: nothing is coloured or drawn on a terminal.
        """
        end = args.index("--") if "--" in args else len(args)
        if PLAIN in args[:end] and not ctx.resilient_parsing:
            os.environ["NO_COLOR"] = "1"
            own = [word for word in args[:end] if word != PLAIN]
            args, end = [*own, *args[end:]], len(own)
        if args[:1] == [JSON] and len(args) > 1:
            args = [*args[1:end], JSON, *args[end:]]
        if args[:1] == ["auth"] and args[1:2] and args[1] in AUTH:
            args = args[1:]
        # A shell that completes the last word leaves its value out.
        words = args if ctx.resilient_parsing else moved_to_front(args)
        return super().parse_args(ctx, words)


@click.group(
    PROGRAM,
    cls=RootGroup,
    table=COMMANDS,
    examples=EXAMPLES,
    entry_points=ADDED_COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context, env_file: Path | None, no_env_file: bool) -> None:
    """Evaluate LLM agents as test suites, and serve them to a trainer."""
    read_env_file(ctx, env_file, none=no_env_file)


cli.params += env_file_options


def main(args: Sequence[str] | None = None) -> None:
    """The console script: run the command line and exit with its status."""
    if COMPLETION_VARIABLE in os.environ:
        from click.shell_completion import shell_complete

        asked = os.environ[COMPLETION_VARIABLE]
        sys.exit(shell_complete(cli, {}, PROGRAM, COMPLETION_VARIABLE, asked))
    click.Context.formatter_class = StyledHelp
    sys.exit(run(cli, list(sys.argv[1:] if args is None else args)))
