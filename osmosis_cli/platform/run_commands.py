"""Submitted runs: `list` and `stop`, what all commands about them share, and `train`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import CommandError
from ..eval.lines import say, say_table
from ..lazy_group import Entry, LazyGroup
from ..shared_options import json_option, may_ask, print_json, yes_option

if TYPE_CHECKING:
    from osmosis_ai.platform.client import Listing
    from osmosis_ai.platform.runs import Runs


def _checked_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.strip() in ("", ".", ".."):
        raise click.BadParameter(f"{value!r} is neither a name nor an id", ctx, parameter)
    return value


run_argument = click.argument("name", metavar="NAME-OR-ID", callback=_checked_name)
_LIMIT = 20


def list_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--limit` and `--all`, as one parameter `limit`, None for all, and `--json`."""

    @click.option(
        "--limit",
        type=click.IntRange(1),
        default=_LIMIT,
        show_default=True,
        metavar="N",
        help="How many.",
    )
    @click.option("--all", "is_all", is_flag=True, help="All of them.")
    @json_option
    @functools.wraps(command)
    def limited(limit: int, is_all: bool, as_json: bool) -> None:
        command(None if is_all else limit, as_json=as_json)

    return limited


def show_list(
    key: str,
    found: Listing,
    rows: Callable[[], Sequence[Sequence[str]]],
    *,
    empty: str,
    least_first: Sequence[str],
    command: str,
    as_json: bool,
) -> None:
    """Print what a platform lists: the JSON document, or a table and how to see all."""
    if as_json:
        items = {key: list(found.items)}
        document = {**items, "total_count": found.total_count, "has_more": found.has_more}
        print_json(document)
        return
    if not found.items:
        say(empty)
        return
    say_table(rows(), least_first=least_first)
    if found.has_more:
        of = "" if found.total_count is None else f" of {found.total_count:,}"
        say(f"{len(found.items):,}{of}; all of them: {command} --all")


@contextmanager
def runs_of(kind: RunKind) -> Iterator[Runs]:
    """The runs of the workspace around the current directory; CommandError for what fails."""
    from osmosis_ai.platform.runs import Runs

    from .connection import connect

    with connect() as client:
        yield Runs(client, kind)


def _list_command(kind: RunKind) -> click.Command:
    group = kind.group

    @click.command(
        "list",
        help=f"List the {kind.noun}s of this workspace on the platform, the newest first."
        + ("\n\nThose on this machine: osmosis eval runs list." if kind is EVALUATION else ""),
        epilog=f"\b\nExamples:\n  osmosis {group} list\n  osmosis {group} list --all --json",
    )
    @list_options
    def command(limit: int | None, as_json: bool) -> None:
        with runs_of(kind) as runs:
            _list(runs, limit, as_json=as_json)

    return command


def _list(runs: Runs, limit: int | None, *, as_json: bool) -> None:
    from .run_text import LEAST_FIRST, run_rows, utc_now

    kind = runs.kind
    found = runs.newest(limit)
    show_list(
        f"{kind.key}s",
        found,
        lambda: run_rows(map(runs.record, found.items), utc_now()),
        empty=f"no {kind.noun}s were submitted in this workspace; submit one: "
        f"osmosis {kind.group} submit {kind.folder}/NAME.toml",
        least_first=LEAST_FIRST,
        command=f"osmosis {kind.group} list",
        as_json=as_json,
    )


def _stop_command(kind: RunKind) -> click.Command:
    @click.command(
        "stop",
        help=f"End {kind.article} {kind.noun} on the platform; what is finished of it is kept.",
        epilog=f"\b\nExample:\n  osmosis {kind.group} stop calm-otter-17 --yes",
    )
    @run_argument
    @yes_option
    @json_option
    def command(name: str, yes: bool, as_json: bool) -> None:
        may_ask(yes=yes, as_json=as_json)
        with runs_of(kind) as runs:
            if not yes:
                run = runs.record(runs.detail(name))
                label, state = printable(run.label), printable(run.status or "unknown")
                if run.has_ended:
                    raise CommandError(f"{label} has ended already: it is {state}", code="conflict")
                click.confirm(f"stop {label}, which is {state}?", abort=True)
            answer = runs.stop(name)
        if as_json:
            print_json(answer)
            return
        run = runs.record(answer)
        state = printable(run.status or "unknown")
        doing = "has ended" if run.has_ended else "stopping"
        then = "stopped" if state == "stopped" else f"{doing}; its state is {state}"
        click.echo(f"{printable(run.label if run.name else name)}: {then}")

    return command


_KINDS = (EVALUATION, TRAINING)
eval_list_command, train_list_command = map(_list_command, _KINDS)
eval_stop_command, train_stop_command = map(_stop_command, _KINDS)

SUBCOMMANDS = {
    "submit": Entry("platform.submit:train_submit_command", "Submit a training run."),
    "list": Entry("platform.run_commands:train_list_command", "List the submitted training runs."),
    "info": Entry("platform.run_info:train_info_command", "Show a training run."),
    "stop": Entry("platform.run_commands:train_stop_command", "End a training run."),
    "logs": Entry("platform.run_info:train_logs_command", "Print the log of a training run."),
    "check": Entry("platform.check:train_check_command", "Check config files of training runs."),
    "schema": Entry(
        "platform.check:train_schema_command", "Print the JSON Schema of such a config file."
    ),
}
EPILOG = """\b
Examples:
  osmosis train check configs/training/my-rollout.toml
  osmosis train submit configs/training/my-rollout.toml
  osmosis train info calm-otter-17 --watch
"""

train_group = LazyGroup(
    "train",
    table=SUBCOMMANDS,
    help="Submit training runs to a platform, and follow them.",
    epilog=EPILOG,
)
