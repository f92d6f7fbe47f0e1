"""`osmosis dataset upload`: a file is checked, and sent to the platform."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from osmosis_ai.escaping import printable
from osmosis_ai.platform import datasets
from osmosis_ai.platform.client import PlatformError
from osmosis_ai.platform.datasets import DatasetUpload, FileChanged, OnBytes
from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN

from ..credentials.store import credentials_path
from ..errors import INTERRUPTED, CommandError, command_errors
from ..eval.lines import say, tell
from ..shared_options import complete_files

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformClient

    from .unfinished_uploads import FileIdentity, UnfinishedUploads


_CONTINUE = "run the same command again to go on with the upload"
_GONE = (403, 404, 409, 410, 422)
"""Statuses that say that an upload which was cut short cannot go on."""


def send_file(
    client: PlatformClient, file: FileIdentity, descriptor: int, kept: UnfinishedUploads
) -> dict[str, Any]:
    """Send an open file, and return the dataset; raise CommandError or PlatformError."""
    sending = _Sending(client, file, descriptor, kept)
    if found := sending.cut_short():
        try:
            return sending.finish(*found)
        except PlatformError as error:
            if error.status not in _GONE:
                raise
    return sending.finish(sending.begin(), {})


class _Sending:
    def __init__(
        self, client: PlatformClient, file: FileIdentity, descriptor: int, kept: UnfinishedUploads
    ) -> None:
        self._client = client
        self._file = file
        self._descriptor = descriptor
        self._kept = kept

    def cut_short(self) -> tuple[DatasetUpload, dict[int, str]] | None:
        """Return the upload that was cut short and what arrived of it; None without one."""
        upload = self._kept.find(self._file)
        if upload is None:
            return None
        try:
            upload, etags = datasets.parts_that_arrived(self._client, upload)
        except PlatformError as error:
            if error.status not in _GONE:
                raise
            self._kept.remove(self._file)
            return None
        tell(f"going on with an upload: {len(etags)} of {len(upload.urls)} parts are there")
        return upload, etags

    def begin(self) -> DatasetUpload:
        """Announce the file, and keep what it takes to go on."""
        upload = datasets.begin_upload(self._client, self._file.name, self._file.size)
        if not upload.is_simple:
            try:
                self._kept.keep(self._file, upload)
            except OSError as error:
                tell(f"warning: the upload cannot be gone on with later ({error.strerror})")
        return upload

    def finish(self, upload: DatasetUpload, etags: dict[int, str]) -> dict[str, Any]:
        """Send the parts that are missing, and have them put together."""
        try:
            self._send(upload, etags)
            self._check_unchanged()
            record = datasets.complete_upload(self._client, upload, etags)
        except KeyboardInterrupt:
            raise self._interrupted(upload, etags) from None
        except FileChanged:
            self._forget(upload)
            raise CommandError(
                f"{printable(self._file.name)} was changed while it was sent: run the same "
                "command again",
                code="file_changed",
            ) from None
        except PlatformError as error:
            if upload.is_simple or error.status in _GONE:
                self._forget(upload)
            else:
                error.message += f"; {self._progress(upload, etags)}, {_CONTINUE}"
            raise
        self._kept.remove(self._file)
        return record

    def _send(self, upload: DatasetUpload, etags: dict[int, str]) -> None:
        numbers = [n for n in range(1, len(upload.urls) + 1) if n not in etags]
        there = upload.size - sum(upload.place(number)[1] for number in numbers)
        with _progress_bar(self._file.name, upload.size, there) as on_bytes:
            for number in numbers:
                etags[number] = datasets.send_part(
                    self._client, upload, number, self._descriptor, on_bytes
                )

    def _check_unchanged(self) -> None:
        found = os.fstat(self._descriptor)
        if (found.st_size, found.st_mtime_ns) != (self._file.size, self._file.mtime_ns):
            raise FileChanged

    def _interrupted(self, upload: DatasetUpload, etags: dict[int, str]) -> CommandError:
        if upload.is_simple:
            self._forget(upload)
            message = "interrupted, nothing was uploaded"
        else:
            message = f"interrupted; {self._progress(upload, etags)}, {_CONTINUE}"
        return CommandError(message, code="interrupted", status=INTERRUPTED)

    def _progress(self, upload: DatasetUpload, etags: dict[int, str]) -> str:
        return f"{len(etags)} of {len(upload.urls)} parts are there"

    def _forget(self, upload: DatasetUpload) -> None:
        self._kept.remove(self._file)
        with contextlib.suppress(PlatformError):  # the platform forgets it in time
            datasets.abort_upload(self._client, upload)


@contextlib.contextmanager
def _progress_bar(name: str, size: int, there: int) -> Iterator[OnBytes]:
    """A bar on standard error, where that is a terminal that moves its cursor; else one line."""
    is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if is_plain or not sys.stderr.isatty():
        tell(f"uploading {printable(name)}")
        yield lambda count: None
        return
    with click.progressbar(
        length=max(size, 1), label=printable(name), file=sys.stderr, show_eta=True
    ) as bar:
        bar.update(there)
        yield bar.update


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
    from .dataset import earlier_of_same_name
    from .live_line import LiveLine
    from .run_text import render
    from .unfinished_uploads import UnfinishedUploads, identify

    login, repository = active_login(), workspace_repository()
    kept = UnfinishedUploads(credentials_path(os.environ).parent / "uploads")
    with _open(path) as opened:
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
            f"{render(text_of(earlier, 'file_name'))} ({render(text_of(earlier, 'id'))}): runs use "
            "the newest",
            err=True,
        )


def _checked_rows(path: Path) -> int:
    """How many rows the file has; raises CommandError when one cannot be used."""
    from pytest_osmosis.dataset.dataset import load_dataset
    from pytest_osmosis.dataset.errors import DatasetError

    with command_errors(DatasetError, code="invalid_dataset"):
        return len(load_dataset(path))


def _open(path: Path) -> BinaryIO:
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

    from .run_text import render

    name = text_of(record, "file_name") or path.name
    noun = "row" if rows == 1 else "rows"
    status = text_of(record, "status")
    then = f", {render(status)}" if status else ""
    say(f"uploaded {printable(name)} ({rows:,} {noun}){then}")
    stem = name.rpartition(".")[0]
    say(f"in a config file: dataset = {printable(json.dumps(stem, ensure_ascii=False))}")
    sys.stdout.flush()
