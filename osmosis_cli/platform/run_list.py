"""`osmosis eval list` and `osmosis train list`: the runs that were submitted, the newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from .run_commands import list_document, list_options, runs_of, say_more

if TYPE_CHECKING:
    from osmosis_ai.platform.runs import Runs


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
    from ..eval.lines import say, say_table
    from .run_text import LEAST_FIRST, run_rows, utc_now

    kind = runs.kind
    found = runs.newest(limit)
    if as_json:
        click.echo(json.dumps(list_document(f"{kind.key}s", found)))
        return
    if not found.items:
        config = f"osmosis {kind.group} submit configs/{kind.folder}/NAME.toml"
        say(f"no {kind.noun}s were submitted in this workspace; submit one: {config}")
        return
    rows = run_rows(map(runs.record, found.items), utc_now())
    say_table(rows, least_first=LEAST_FIRST)
    say_more(found, f"osmosis {kind.group} list")


eval_list_command = _list_command(EVALUATION)
train_list_command = _list_command(TRAINING)
