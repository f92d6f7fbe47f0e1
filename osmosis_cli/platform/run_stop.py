"""`osmosis eval stop` and `osmosis train stop`."""

from __future__ import annotations

import json

import click

from ..buffered_output import printable
from .run_commands import EVALUATION, TRAINING, RunKind, json_option, may_ask, run_argument, runs_of


def _stop_command(kind: RunKind) -> click.Command:
    group = kind.group

    @click.command(
        "stop",
        help=f"End {kind.article} {kind.noun} on the platform; what is finished of it is kept.",
        epilog=f"\b\nExample:\n  osmosis {group} stop calm-otter-17 --yes",
    )
    @run_argument
    @click.option("-y", "--yes", is_flag=True, help="Do not ask.")
    @json_option
    def command(name: str, yes: bool, as_json: bool) -> None:
        may_ask(yes=yes, as_json=as_json)
        with runs_of(kind, name) as runs:
            if not yes:
                run = runs.record(runs.detail(name))
                state = printable(run.status or "unknown")
                click.confirm(f"stop {printable(run.label)}, which is {state}?", abort=True)
            answer = runs.stop(name)
        if as_json:
            click.echo(json.dumps(answer))
            return
        run = runs.record(answer)
        state = printable(run.status or "unknown")
        what = "stopped" if state == "stopped" else f"stopping; its state is {state}"
        click.echo(f"{printable(run.label if run.name else name)}: {what}")

    return command


eval_stop_command = _stop_command(EVALUATION)
train_stop_command = _stop_command(TRAINING)
