"""`osmosis eval download`: report and conversations of an evaluation, as a local one has them."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import IO

import click

from osmosis_ai.platform.run_kinds import EVALUATION

from ..errors import CommandError
from ..eval.lines import say
from ..shared_options import json_option, print_json
from .run_commands import run_argument, runs_of

EPILOG = """\b
Examples:
  osmosis eval download calm-otter-17
  osmosis eval download calm-otter-17 -o results.json --conversations
  osmosis eval report results.json
"""
_BLOCK = 1024 * 1024
_ODD = re.compile(r"[^\w.-]+", re.ASCII)


@click.command("download", epilog=EPILOG)
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to (default: the run's name with .json, which must not be there).",
)
@click.option(
    "--conversations",
    "with_conversations",
    is_flag=True,
    help="Its conversations too, in NAME.trajectories.jsonl beside the report.",
)
@json_option
def eval_download_command(
    name: str, output: Path | None, with_conversations: bool, as_json: bool
) -> None:
    """Download the JSON report of an evaluation on the platform.

    It is the one that `osmosis eval -o` writes: `osmosis eval report`, `compare` and `merge` take
    it. With its conversations, `osmosis eval report` shows these too; a platform keeps them for
    some time after the end of an evaluation.
    """
    from pytest_osmosis.reports.saved_conversations import beside

    path = output or Path(_ODD.sub("-", name).lstrip("-.") + ".json")
    for taken in (path, beside(path)) if output is None else ():
        if taken.exists():
            raise click.UsageError(f"{taken} is there already: name another file with -o")
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as said:
        with runs_of(EVALUATION) as runs:
            sizes = {path: runs.report(name, file)}
            if with_conversations:
                sizes[beside(path)] = runs.conversations(name, said)
        _check(file)
        for source, target in zip((file, said), sizes, strict=False):
            _keep(source, target)
    if as_json:
        report, *more = [{"path": str(path), "bytes": size} for path, size in sizes.items()]
        print_json({**report, **({"conversations": more[0]} if more else {})})
        return
    for target, size in sizes.items():
        then = f"; show it: osmosis eval report {path}" if target == path else ""
        say(f"{target}: {size:,} bytes{then}")


def _check(file: IO[bytes]) -> None:
    """Raise CommandError where a file is no report."""
    from pytest_osmosis.reports.json_reader import checked, result_of

    file.seek(0)
    try:
        result_of(checked(json.load(file)))
    except (ValueError, RecursionError):
        raise CommandError(
            "what the platform sent is no report of an evaluation; nothing was written",
            code="bad_answer",
        ) from None


def _keep(file: IO[bytes], path: Path) -> None:
    from pytest_osmosis.storage.atomic_write import write_whole

    file.seek(0)
    try:
        write_whole(path, iter(lambda: file.read(_BLOCK), b""))
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}", code="output") from None
