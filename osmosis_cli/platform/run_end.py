"""`osmosis eval stop` and `delete`, and those of `osmosis train`: what ends or removes a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import CommandError
from .run_commands import json_option, may_ask, run_argument, runs_of, yes_option

if TYPE_CHECKING:
    from osmosis_ai.platform.answers import RunRecord
    from osmosis_ai.platform.runs import Runs


def _command(
    kind: RunKind,
    verb: str,
    text: str,
    *,
    question: Callable[[RunRecord], str],
    act: Callable[[Runs, str], Mapping[str, Any]],
    said: Callable[[RunRecord], str],
) -> click.Command:
    """Return a command that acts on one run, once its question is answered."""

    @click.command(
        verb, help=text, epilog=f"\b\nExample:\n  osmosis {kind.group} {verb} calm-otter-17 --yes"
    )
    @run_argument
    @yes_option
    @json_option
    def command(name: str, yes: bool, as_json: bool) -> None:
        may_ask(yes=yes, as_json=as_json)
        with runs_of(kind, name) as runs:
            if not yes:
                click.confirm(question(runs.record(runs.detail(name))), abort=True)
            answer = act(runs, name)
        if as_json:
            click.echo(json.dumps(answer))
            return
        run = runs.record(answer)
        click.echo(f"{printable(run.label if run.name else name)}{said(run)}")

    return command


def _stop_command(kind: RunKind) -> click.Command:
    return _command(
        kind,
        "stop",
        f"End {kind.article} {kind.noun} on the platform; what is finished of it is kept.",
        question=_stop_question,
        act=lambda runs, name: runs.stop(name),
        said=_stopped,
    )


def _stop_question(run: RunRecord) -> str:
    name, state = printable(run.label), printable(run.status or "unknown")
    if run.has_ended:
        raise CommandError(f"{name} has ended already: it is {state}", code="conflict")
    return f"stop {name}, which is {state}?"


def _stopped(run: RunRecord) -> str:
    state = printable(run.status or "unknown")
    doing = "has ended" if run.has_ended else "stopping"
    return ": stopped" if state == "stopped" else f": {doing}; its state is {state}"


def _delete_command(kind: RunKind) -> click.Command:
    parts = "report, log and conversations" if kind is EVALUATION else "log and checkpoints"
    return _command(
        kind,
        "delete",
        f"Delete {kind.article} {kind.noun} that has ended on the platform, for good.\n\n"
        f"Its {parts} are removed. Stop one that has not ended first.",
        question=lambda run: (
            f"delete {printable(run.label)}, which is {printable(run.status or 'unknown')}, "
            "for good?"
        ),
        act=lambda runs, name: runs.delete(name),
        said=lambda run: " is deleted",
    )


eval_stop_command = _stop_command(EVALUATION)
train_stop_command = _stop_command(TRAINING)
eval_delete_command = _delete_command(EVALUATION)
train_delete_command = _delete_command(TRAINING)
