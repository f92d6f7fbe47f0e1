"""`osmosis eval`: an evaluation as a pytest session in this process, and a group of subcommands.

A first word that is no option names a subcommand; otherwise the words are options of the evaluation
and what follows `--` goes to pytest. It adds nothing to the evaluation.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import click

from ..buffered_output import BufferedStreams, buffered_streams, stdout_to_stderr
from ..errors import CommandDone, CommandError
from ..instead import instead_of
from ..lazy_group import Entry, LazyGroup, on_platform
from ..shared_options import agent_named
from .arguments import MCP_OPTION, click_options, in_help_groups, to_pytest_args, usual

READ = "Read results"
SUBCOMMANDS = {
    "view": Entry(
        "eval.viewer.server:view_command", "Show reports and kept runs in a browser.", READ
    ),
    "runs": Entry("eval.runs:runs_command", "List the evaluations kept on this machine.", READ),
    "compare": Entry("eval.compare:compare_command", "Compare two reports.", READ),
    "plan": Entry("eval.plan:plan_command", "Say what rows and runs can show.", READ),
    "agreement": Entry(
        "eval.agreement:agreement_command", "Compare eval functions with people.", READ
    ),
    "report": Entry(
        "eval.report:report_command", "Show a saved report, or write it as HTML.", READ
    ),
    "merge": Entry("eval.merge:merge_command", "Merge the reports of several machines.", READ),
    "submit": on_platform("submit:eval_submit_command", "Submit an evaluation to the platform."),
    "list": on_platform("run_commands:eval_list_command", "List the submitted evaluations."),
    "info": on_platform("run_info:eval_info_command", "Show a submitted evaluation."),
    "stop": on_platform("run_commands:eval_stop_command", "End a submitted evaluation."),
    "logs": on_platform("run_info:eval_logs_command", "Print the log of a submitted one."),
    "download": on_platform("run_report:eval_download_command", "Download results."),
    "upload": on_platform("upload:eval_upload_command", "Upload results of `osmosis eval run`."),
    "run": Entry("platform.evaluate:run_command", "Evaluate a config file on this machine."),
    "rubric": Entry("rubric.command:rubric_command", "Score recorded answers with an LLM judge."),
    "check": Entry(
        "platform.check:eval_check_command", "Check config files of submitted evaluations."
    ),
    "schema": Entry("eval.report:schema_command", "Print the JSON Schema of reports or configs."),
}

EPILOG = """\b
Examples:
  osmosis eval -m server:agent_loop -d test_data.jsonl \\
      --eval-fn rewards:compute_reward \\
      --model my-model --base-url http://localhost:8000/v1
  osmosis eval -m server:agent_loop -d test_data.jsonl \\
      --eval-fn rewards:compute_reward \\
      --n 5 --batch-size 16 --model embedded -o results.json
  osmosis eval -m server:agent_loop -d test_data.jsonl \\
      --eval-fn rewards:compute_reward \\
      --model openai/gpt-5-mini -- -x -k row-3
  osmosis eval configs/eval/my-rollout.toml --model embedded
"""

KEY_WARNING = (
    "warning: --api-key shows the key to every user of this machine, who can read the arguments of "
    "a process; export it as a variable and name that with --api-key-env"
)
EVAL = ("osmosis", "eval")
TYPED_VARIABLE = "OSMOSIS_TYPED_COMMAND"
"""The command that was typed, as a list in JSON, where another one runs in its place."""
_TYPED = "osmosis_cli.eval.command.typed"
_PYTEST_ARGS = "osmosis_cli.eval.command.pytest_args"
_ALL = "osmosis_cli.eval.command.help_all"
_CODES = {2: "interrupted", 3: "internal", 4: "usage", 5: "nothing_to_run"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


CONFIG_SUFFIX = ".toml"
"""What a first word ends in that names a config file, not a subcommand."""


class EvalGroup(LazyGroup):
    """A group that is a command as well: without a subcommand it runs the evaluation."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options of the evaluation, or a subcommand and its words."""
        ctx.meta[_TYPED] = json.loads(os.environ.pop(TYPED_VARIABLE, "null")) or [*EVAL, *args]
        if not args or not args[0].startswith("-"):
            return super().parse_args(ctx, args)
        own, extra = split_at_dashes(args)
        ctx.meta[_PYTEST_ARGS] = extra
        try:
            stray = click.Command.parse_args(self, ctx, list(own))
        except click.NoSuchOption as error:
            refuse_unknown(ctx, error, self)
        if stray and not ctx.resilient_parsing:
            ctx.fail(self._about_stray(ctx, stray[0]))
        return stray

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A subcommand and its words, or the config file of an evaluation, which is one."""
        if args[0].endswith(CONFIG_SUFFIX):
            return args[0], self.get_command(ctx, args[0]), args
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one subcommand, or the one for config files; None when there is none."""
        if cmd_name.endswith(CONFIG_SUFFIX):
            return Entry("platform.evaluate:config_command", "").load()
        return super().get_command(ctx, cmd_name)

    def _about_stray(self, ctx: click.Context, word: str) -> str:
        if word in self.list_commands(ctx):
            return f"{word!r} must be the first word: osmosis eval {word} ..."
        return f"unexpected argument {word!r}; what is meant for pytest goes after --"

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The three forms, one a line."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] [-- PYTEST_ARGS]...")
        formatter.write_usage(ctx.command_path, "CONFIG.toml [OPTIONS]", prefix="       ")
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usual options, or all in their groups, and the subcommands."""
        every = self.get_params(ctx)
        groups = in_help_groups(every) if ctx.meta.get(_ALL) else {"options": usual(every)}
        for title, parameters in groups.items():
            records = (parameter.get_help_record(ctx) for parameter in parameters)
            with formatter.section(f"{title[0].upper()}{title[1:]}"):
                formatter.write_dl([record for record in records if record])
        self.format_commands(ctx, formatter)


def refuse_unknown(ctx: click.Context, error: click.NoSuchOption, own: click.Command) -> NoReturn:
    """Refuse an option that there is not, with what may be meant: dashes are no resemblance."""
    name = error.option_name
    if found := instead_of(ctx, name):
        ctx.fail(f"No such option {name!r}: {found}")
    known = {each.lstrip("-"): each for one in own.get_params(ctx) for each in one.opts}
    close = get_close_matches(name.lstrip("-"), known, n=2, cutoff=0.75)
    hint = f" Did you mean {' or '.join(known[each] for each in close)}?" if close else ""
    if not close or not name.startswith("--"):
        hint += f" Options of pytest go last, behind two dashes: -- {name}"
    ctx.fail(f"No such option {name!r}.{hint}")


def split_at_dashes(args: list[str]) -> tuple[list[str], list[str]]:
    """Return the words before `--`, and those behind it."""
    if "--" not in args:
        return args, []
    at = args.index("--")
    return args[:at], args[at + 1 :]


@click.pass_context
def _eval(ctx: click.Context, /, as_json: bool, **values: Any) -> None:
    """Run an agent on every row of a dataset and score it: one pytest session.

    Every option of the plugin is there under its own name: --help-all lists them. What is not given
    is taken from the ini file of the project. The exit status is pytest's: 0 all passed, 1 failures
    or errors, 2 interrupted, 4 wrong use, 5 nothing to run; 8 when a gate is inconclusive and none
    failed.
    """
    if ctx.invoked_subcommand is not None:
        return
    if (mcp := values.pop("mcp")) is not None:
        values["agent"] = [agent_named(next(iter(values["agent"]), None), mcp)]
    check_key(values)
    args = to_pytest_args(values, ctx.meta.get(_PYTEST_ARGS, ()))
    if as_json:
        _print_report(ctx, args, values["api_key"])
    else:
        from .session import SessionGuard, run_pytest  # imports pytest: not for subcommands

        ctx.exit(run_pytest(args, guard=SessionGuard(ctx.meta[_TYPED]), api_key=values["api_key"]))


def _help_all(ctx: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_help_all,
    help="Show all options, in groups, and exit.",
)
eval_group = EvalGroup(
    "eval",
    table=SUBCOMMANDS,
    examples={READ: "osmosis eval compare before.json after.json"},
    callback=_eval,
    params=[*click_options(), MCP_OPTION, _HELP_ALL],
    help=_eval.__doc__,
    epilog=EPILOG,
    invoke_without_command=True,
)


def _print_report(ctx: click.Context, args: Sequence[str], api_key: str | None) -> None:
    from .session import ReportTaker, run_pytest

    outer = ctx.find_object(BufferedStreams)
    with (
        nullcontext(outer) if outer else buffered_streams() as streams,
        tempfile.TemporaryDirectory(prefix="osmosis-") as folder,
    ):
        taker = ReportTaker(ctx.meta[_TYPED], streams.err, Path(folder, "report.json"))
        with stdout_to_stderr():
            status = run_pytest(args, guard=taker, api_key=api_key)
        report = taker.report()
        if report is None and status:
            text = _COLOUR.sub("", streams.err.peek())
            raise CommandError(_story(text), code=_CODES.get(status, "failed"), status=status)
        click.echo(report.rstrip("\n") if report else '{"report": null}')
        streams.release()
    raise CommandDone(status)


def _story(text: str) -> str:
    """Return what pytest said went wrong, without its headings."""
    _, found, rest = text.partition("ERROR: ")
    if not found:
        return text.strip()[-2000:] or "pytest wrote no report"
    if rest.startswith("usage:"):
        rest = rest.partition("error: ")[2].partition("\n  inifile:")[0]
    return rest.strip()


def check_key(values: dict[str, Any]) -> None:
    """Warn of a key among the arguments; raise UsageError when it cannot be meant."""
    key = values["api_key"]
    if key is None:
        return
    if not key.strip():
        raise click.UsageError("--api-key is empty; is the variable that it was to come from set?")
    if values["api_key_env"]:
        raise click.UsageError("--api-key and --api-key-env both name a key; give one of them")
    click.echo(KEY_WARNING, err=True)
