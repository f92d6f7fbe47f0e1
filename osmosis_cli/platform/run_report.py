"""`osmosis eval download`: the report of a submitted evaluation, as a local one has it."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform.run_kinds import EVALUATION

from ..errors import CommandError
from ..shared_options import complete_files
from .run_commands import json_option, run_argument, runs_of

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformError

EPILOG = """\b
Examples:
  osmosis eval download calm-otter-17
  osmosis eval download calm-otter-17 -o results.json
  osmosis eval report results.json
"""
_ODD = re.compile(r"[^\w.-]+", re.ASCII)


@click.command("download", epilog=EPILOG)
@run_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    shell_complete=complete_files,
    help="Where to (default: the run's name with .json, which must not be there).",
)
@json_option
def eval_download_command(name: str, output: Path | None, as_json: bool) -> None:
    """Download the JSON report of an evaluation on the platform.

    It is the one that `osmosis eval -o` writes: `osmosis eval report`, `compare` and `merge` take
    it.
    """
    path = output or Path(_ODD.sub("-", name).lstrip("-.") + ".json")
    if output is None and path.exists():
        raise click.UsageError(f"{path} is there already: name another file with -o")
    with tempfile.TemporaryFile() as file:
        size = _fetch(name, file)
        _keep(file, path)
    if as_json:
        click.echo(json.dumps({"path": str(path), "bytes": size}))
        return
    click.echo(f"{printable(str(path))}: {size:,} bytes; show it: osmosis eval report {path}")


def _fetch(name: str, file: IO[bytes]) -> int:
    from osmosis_ai.platform.client import PlatformError

    with runs_of(EVALUATION) as runs:
        try:
            return runs.report(name, file)
        except PlatformError as error:
            if error.status != 404:
                raise
            raise CommandError(
                _no_report(name, error), code=error.code, details=error.document()
            ) from None


def _no_report(name: str, error: PlatformError) -> str:
    """Why there is none: in the platform's words where it has an API for it."""
    if error.server_code == "not_found":
        return str(error)
    why = error.said if error.server_code else str(error)
    return f"{why}; what is known of it: osmosis eval info {name}"


def _keep(file: IO[bytes], path: Path) -> None:
    """Write the report to its place, if it is one."""
    from pytest_osmosis.reports.json_reader import result_of
    from pytest_osmosis.storage.atomic_write import write_whole

    file.seek(0)
    content = file.read()
    try:
        result_of(json.loads(content))
    except (ValueError, RecursionError):
        raise CommandError(
            "what the platform sent is no report of an evaluation; nothing was written",
            code="bad_answer",
        ) from None
    try:
        write_whole(path, content)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}", code="output") from None
