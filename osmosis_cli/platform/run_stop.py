"""`osmosis eval stop` and `osmosis train stop`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import CommandError
from .run_commands import json_option, may_ask, run_argument, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.answers import RunRecord


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
                _ask(runs.record(runs.detail(name)))
            answer = runs.stop(name)
        if as_json:
            click.echo(json.dumps(answer))
            return
        run = runs.record(answer)
        state = printable(run.status or "unknown")
        doing = "has ended" if run.has_ended else "stopping"
        what = "stopped" if state == "stopped" else f"{doing}; its state is {state}"
        click.echo(f"{printable(run.label if run.name else name)}: {what}")

    return command


def _ask(run: RunRecord) -> None:
    """Return when the run is to be stopped; raise CommandError when it has ended already."""
    name, state = printable(run.label), printable(run.status or "unknown")
    if run.has_ended:
        raise CommandError(f"{name} has ended already: it is {state}", code="conflict")
    click.confirm(f"stop {name}, which is {state}?", abort=True)


eval_stop_command = _stop_command(EVALUATION)
train_stop_command = _stop_command(TRAINING)
