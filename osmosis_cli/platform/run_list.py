"""`osmosis eval list` and `osmosis train list`: the runs that were submitted, the newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from .run_commands import EVALUATION, TRAINING, RunKind, json_option, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.runs import Runs

LIMIT = 20


def _list_command(kind: RunKind) -> click.Command:
    group = kind.group

    @click.command(
        "list",
        help=f"List the {kind.noun}s of this workspace on the platform, the newest first."
        + ("\n\nThose on this machine: osmosis eval runs list." if kind is EVALUATION else ""),
        epilog=f"\b\nExamples:\n  osmosis {group} list\n  osmosis {group} list --all --json",
    )
    @click.option(
        "--limit",
        type=click.IntRange(1),
        default=LIMIT,
        show_default=True,
        metavar="N",
        help="How many.",
    )
    @click.option("--all", "is_all", is_flag=True, help="All of them.")
    @json_option
    def command(limit: int, is_all: bool, as_json: bool) -> None:
        with runs_of(kind) as runs:
            _list(runs, None if is_all else limit, as_json=as_json)

    return command


def _list(runs: Runs, limit: int | None, *, as_json: bool) -> None:
    from ..eval.lines import columns, say
    from .run_text import fitting, run_rows, utc_now

    kind = runs.kind
    found = runs.newest(limit)
    if as_json:
        document = {
            f"{kind.key}s": list(found.items),
            "total_count": found.total_count,
            "has_more": found.has_more,
        }
        click.echo(json.dumps(document))
        return
    if not found.items:
        config = f"osmosis {kind.group} submit configs/{kind.folder}/NAME.toml"
        say(f"no {kind.noun}s were submitted in this workspace; submit one: {config}")
        return
    for line in fitting(run_rows(map(runs.record, found.items), utc_now()), columns()):
        say(line)
    if found.has_more:
        of = "" if found.total_count is None else f" of {found.total_count:,}"
        say(f"{len(found.items):,}{of}; all of them: osmosis {kind.group} list --all")


eval_list_command = _list_command(EVALUATION)
train_list_command = _list_command(TRAINING)
