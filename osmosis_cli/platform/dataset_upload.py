"""`osmosis dataset upload`: a file is checked, and sent to the platform."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from osmosis_ai.platform import datasets
from osmosis_ai.platform.client import PlatformError
from osmosis_ai.platform.datasets import DatasetUpload, FileChanged
from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN

from ..errors import INTERRUPTED, CommandError, command_errors
from ..eval.lines import progress_bar, say, tell
from ..shared_options import complete_files

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformClient


CHECKED_ROWS = 100_000
"""So many of a file are checked, as the platform does: a small Parquet file may have millions."""


def send_file(client: PlatformClient, name: str, descriptor: int) -> dict[str, Any]:
    """Send an open file, and return the dataset; raise CommandError or PlatformError."""
    before = os.fstat(descriptor)
    upload = datasets.begin_upload(client, name, before.st_size)
    try:
        etags = _send_parts(client, upload, name, descriptor)
        after = os.fstat(descriptor)
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise FileChanged
        return datasets.complete_upload(client, upload, etags)
    except KeyboardInterrupt:
        _abort(client, upload)
        text = "interrupted, nothing was uploaded"
        raise CommandError(text, code="interrupted", status=INTERRUPTED) from None
    except FileChanged:
        _abort(client, upload)
        raise CommandError(
            f"{name} was changed while it was sent: run the same command again",
            code="file_changed",
        ) from None
    except PlatformError:
        _abort(client, upload)
        raise


def _send_parts(
    client: PlatformClient, upload: DatasetUpload, name: str, descriptor: int
) -> dict[int, str]:
    """Send every part, and return their ETags by their numbers."""
    if not sys.stderr.isatty():
        tell(f"uploading {name}")
    with progress_bar(upload.size, name) as on_bytes:
        return {
            number: datasets.send_part(client, upload, number, descriptor, on_bytes)
            for number in range(1, len(upload.urls) + 1)
        }


def _abort(client: PlatformClient, upload: DatasetUpload) -> None:
    with contextlib.suppress(PlatformError):  # the platform forgets it in time
        datasets.abort_upload(client, upload)


EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset upload rows.parquet --json
"""


@click.command(
    "upload",
    epilog=EPILOG,
    help="Check a dataset as an evaluation does, and upload it to this workspace.\n\n"
    f"FILE is {SUFFIXES_SHOWN}; its first {CHECKED_ROWS:,} rows are checked.",
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
    from ..eval.lines import LiveLine
    from .connection import active_login, client_of, workspace_repository

    login, repository = active_login(), workspace_repository()
    with _open(path) as opened:
        with LiveLine() as line:
            line.show(f"checking {path.name}", path.name)
            rows = _check_rows(path)
        with client_of(login.platform_url, login.token, git_identity=repository) as client:
            record = send_file(client, path.name, opened.fileno())
    _check_taken(record, path)
    if as_json:
        click.echo(json.dumps({**record, "checked_rows": rows}))
        return
    _show(record, path, rows)


def _check_rows(path: Path) -> int:
    """Return how many rows were checked; raise CommandError when one cannot be used."""
    from pytest_osmosis.dataset.dataset import load_dataset
    from pytest_osmosis.dataset.errors import DatasetError

    with command_errors(DatasetError, code="invalid_dataset"):
        return len(load_dataset(path, limit=CHECKED_ROWS))


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None


def _check_taken(record: dict[str, Any], path: Path) -> None:
    """Raise CommandError where the platform has the file and cannot use it."""
    from osmosis_ai.platform.answers import text_of
    from osmosis_ai.platform.server_text import one_line

    if record.get("status") != "failed":
        return
    why = text_of(record, "error") or text_of(record, "message") or "the reason is unknown"
    raise CommandError(
        f"the platform has {path.name}, but cannot use it: {one_line(why)}",
        code="dataset_failed",
        details={"id": record.get("id")},
    )


def _show(record: dict[str, Any], path: Path, rows: int) -> None:
    from osmosis_ai.platform.answers import text_of

    from .run_text import render

    name = text_of(record, "file_name") or path.name
    noun = "row" if rows == 1 else "rows" if rows < CHECKED_ROWS else "rows checked"
    status = text_of(record, "status")
    then = f", {render(status)}" if status else ""
    say(f"uploaded {name} ({rows:,} {noun}){then}")
    stem = name.rpartition(".")[0]
    say(f"in a config file: dataset = {json.dumps(stem, ensure_ascii=False)}")
    sys.stdout.flush()
