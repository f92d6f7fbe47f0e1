"""`osmosis dataset`: the datasets of the workspace on the platform, listed and uploaded."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.platform import datasets
from osmosis_ai.platform.answers import number_of, text_of
from osmosis_ai.platform.client import PlatformError
from osmosis_ai.platform.datasets import PATH, FileChanged
from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN

from ..errors import INTERRUPTED, CommandError, command_errors
from ..eval.lines import LiveLine, progress_bar, say, size_text, tell
from ..lazy_group import Entry, LazyGroup
from ..shared_options import json_option, print_json
from .run_commands import list_options, show_list

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformClient
    from osmosis_ai.platform.datasets import DatasetUpload

EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset list
"""
_HEADER = ("name", "status", "rows", "size", "uploaded", "id")
_LEAST_FIRST = ("id", "size", "uploaded")
"""Columns that a narrow terminal does without, in this order."""

dataset_group = LazyGroup(
    "dataset",
    table={
        "list": Entry("platform.dataset:dataset_list", "List those on the platform."),
        "upload": Entry("platform.dataset:dataset_upload", "Check a file and upload it."),
    },
    help="Look after the datasets of this workspace on the platform.",
    epilog=EPILOG,
)


@click.command(
    "list", epilog="\b\nExamples:\n  osmosis dataset list\n  osmosis dataset list --all --json\n"
)
@list_options
def dataset_list(limit: int | None, *, as_json: bool) -> None:
    """List the datasets of this workspace on the platform."""
    from .connection import connect
    from .run_text import utc_now

    with connect() as client:
        found = client.collect(PATH, "datasets", limit=limit)
    show_list(
        "datasets",
        found,
        lambda: [_HEADER, *(_row(item, utc_now()) for item in found.items)],
        empty="this workspace has no datasets; upload one: osmosis dataset upload FILE",
        least_first=_LEAST_FIRST,
        command="osmosis dataset list",
        as_json=as_json,
    )


def _row(dataset: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    from .run_text import UNKNOWN, age, render

    rows, size = number_of(dataset, "row_count"), number_of(dataset, "file_size")
    return (
        render(text_of(dataset, "file_name")),
        render(text_of(dataset, "status")),
        UNKNOWN if rows is None else f"{rows:,.0f}",
        UNKNOWN if size is None else size_text(size),
        age(text_of(dataset, "created_at"), now),
        render(text_of(dataset, "id")),
    )


# ---- upload

CHECKED_ROWS = 100_000
"""So many of a file are checked, as the platform does: a small Parquet file may have millions."""


def send_file(
    client: PlatformClient, upload: DatasetUpload, name: str, descriptor: int
) -> dict[str, Any]:
    """Send an open file, and return its record; raise CommandError or PlatformError."""
    before = os.fstat(descriptor)
    if not sys.stderr.isatty():
        tell(f"uploading {name}")
    try:
        with progress_bar(upload.size, name) as on_bytes:
            etags = {
                number: datasets.send_part(client, upload, number, descriptor, on_bytes)
                for number in range(1, len(upload.urls) + 1)
            }
        after = os.fstat(descriptor)
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise FileChanged
        return datasets.complete_upload(client, upload, etags)
    except (KeyboardInterrupt, FileChanged, PlatformError) as error:
        with contextlib.suppress(PlatformError):  # the platform forgets it in time
            datasets.abort_upload(client, upload)
        if isinstance(error, PlatformError):
            raise
        if isinstance(error, KeyboardInterrupt):
            text = "interrupted, nothing was uploaded"
            raise CommandError(text, code="interrupted", status=INTERRUPTED) from None
        text = f"{name} was changed while it was sent: run the same command again"
        raise CommandError(text, code="file_changed") from None


UPLOAD_EPILOG = """\b
Examples:
  osmosis dataset upload datasets/my-rollout.jsonl
  osmosis dataset upload rows.parquet --json
"""


@click.command(
    "upload",
    epilog=UPLOAD_EPILOG,
    help="Check a dataset as an evaluation does, and upload it to this workspace.\n\n"
    f"FILE is {SUFFIXES_SHOWN}; its first {CHECKED_ROWS:,} rows are checked.",
)
@click.argument(
    "path",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=True),
)
@json_option
def dataset_upload(path: Path, *, as_json: bool) -> None:
    """The command; its help is above."""
    from pytest_osmosis.dataset.dataset import load_dataset
    from pytest_osmosis.dataset.errors import DatasetError
    from pytest_osmosis.dataset.upload_rules import broken_rules

    from .connection import active_login, client_of, workspace_repository

    login, repository = active_login(), workspace_repository()
    with path.open("rb") as opened:
        with LiveLine() as line, command_errors(DatasetError, code="invalid_dataset"):
            line.show(f"checking {path.name}", path.name)
            dataset = load_dataset(path, limit=CHECKED_ROWS)
            rows = len(dataset)
            size = os.fstat(opened.fileno()).st_size
            is_whole = rows < CHECKED_ROWS
            broken = broken_rules(dataset.records(), is_whole=is_whole, size=size)
            if problem := dataset.partly_tasks():
                broken.append(f"{problem}: give every row one, or none")
        if broken:
            sentences = "".join(f"\n  {sentence}" for sentence in broken)
            raise CommandError(
                f"{path} cannot be uploaded:{sentences}",
                code="invalid_dataset",
                details={"problems": broken},
            )
        with client_of(login.platform_url, login.token, git_identity=repository) as client:
            upload = datasets.begin_upload(client, path.name, size)
            record = send_file(client, upload, path.name, opened.fileno())
    _check_taken(record, path)
    if as_json:
        print_json({**record, "checked_rows": rows})
        return
    _show(record, path, rows)


def _check_taken(record: dict[str, Any], path: Path) -> None:
    """Raise CommandError where the platform has the file and cannot use it."""
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
    from .run_text import render

    name = text_of(record, "file_name") or path.name
    noun = "row" if rows == 1 else "rows" if rows < CHECKED_ROWS else "rows checked"
    status = text_of(record, "status")
    then = f", {render(status)}" if status else ""
    say(f"uploaded {name} ({rows:,} {noun}){then}")
    stem = name.rpartition(".")[0]
    say(f"in a config file: dataset = {json.dumps(stem, ensure_ascii=False)}")
    sys.stdout.flush()
