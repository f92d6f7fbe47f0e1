"""`osmosis dataset upload`: a file is checked, and sent to the platform."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import click

from osmosis_ai.escaping import printable
from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN

from ..credentials.store import credentials_path
from ..errors import CommandError, command_errors
from ..eval.lines import say
from ..shared_options import complete_files

EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset upload rows.parquet --json
"""


@click.command(
    "upload",
    epilog=EPILOG,
    help="Check a dataset as an evaluation does, and upload it to this workspace.\n\n"
    f"FILE is {SUFFIXES_SHOWN}. An upload that is cut short goes on where it stopped when the same "
    "command is run again, unless the file has changed.",
)
@click.argument(
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    shell_complete=complete_files,
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def dataset_upload(path: Path, *, as_json: bool) -> None:
    """The command; its help is above."""
    from osmosis_ai.platform.answers import text_of

    from .connection import active_login, client_of, workspace_repository
    from .dataset_names import earlier_of_same_name
    from .live_line import LiveLine
    from .run_text import shown
    from .sending import send_file
    from .unfinished_uploads import UnfinishedUploads, identify

    login, repository = active_login(), workspace_repository()
    kept = UnfinishedUploads(credentials_path(os.environ).parent / "uploads")
    with _opened(path) as opened:
        descriptor = opened.fileno()
        with LiveLine() as line:
            line.show(f"checking {printable(path.name)}", path.name)
            rows = _checked_rows(path)
            file = identify(
                descriptor, path.name, platform=login.platform_url, repository=repository
            )
        with client_of(login.platform_url, login.token, git_identity=repository) as client:
            record = send_file(client, file, descriptor, kept)
            earlier = None if as_json else earlier_of_same_name(client, record)
    _check_taken(record, path)
    if as_json:
        click.echo(json.dumps({**record, "checked_rows": rows}))
        return
    _show(record, path, rows)
    if earlier is not None:
        say(
            "warning: the platform has another dataset of this name, "
            f"{shown(text_of(earlier, 'file_name'))} ({shown(text_of(earlier, 'id'))}): runs use "
            "the newest",
            err=True,
        )


def _checked_rows(path: Path) -> int:
    """How many rows the file has; raises CommandError when one cannot be used."""
    from pytest_osmosis.dataset.dataset import load_dataset
    from pytest_osmosis.dataset.errors import DatasetError

    with command_errors(DatasetError, code="invalid_dataset"):
        return len(load_dataset(path))


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise CommandError(f"{printable(str(path))}: {error.strerror}") from None


def _check_taken(record: dict[str, Any], path: Path) -> None:
    """Raise CommandError where the platform has the file and cannot use it."""
    from osmosis_ai.platform.answers import text_of
    from osmosis_ai.platform.server_text import one_line

    if record.get("status") != "failed":
        return
    why = text_of(record, "error") or text_of(record, "message") or "the reason is unknown"
    raise CommandError(
        f"the platform has {printable(path.name)}, but cannot use it: {one_line(why)}",
        code="dataset_failed",
        details={"id": record.get("id")},
    )


def _show(record: dict[str, Any], path: Path, rows: int) -> None:
    from osmosis_ai.platform.answers import text_of

    from .run_text import shown

    name = text_of(record, "file_name") or path.name
    noun = "row" if rows == 1 else "rows"
    status = text_of(record, "status")
    then = f", {shown(status)}" if status else ""
    say(f"uploaded {printable(name)} ({rows:,} {noun}){then}")
    stem = name.rpartition(".")[0]
    say(f"in a config file: dataset = {printable(json.dumps(stem, ensure_ascii=False))}")
    sys.stdout.flush()
