"""The end of an upload: its parts are checked, put together, and read as a dataset once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from ..database.connection import Database
from ..database.models import Dataset
from ..errors import Refused
from .checks import DatasetChecks, NoDataset
from .files import DatasetFiles, ReceivedPart, upload_gone
from .upload_urls import part_count, part_size


def complete(
    database: Database,
    checks: DatasetChecks,
    files: DatasetFiles,
    dataset: Dataset,
    etags: Mapping[int, str],
) -> None:
    """Make the dataset whole; one that is already stays as it is.

    Raises:
        Refused: when parts are missing or others than expected, or it is no dataset.
    """
    with checks.turn(dataset.workspace_id):
        with database.reading() as session:
            found = _still_there(session, dataset)
        if found.status == "ready":
            return
        if found.status != "uploading":
            raise Refused(409, "upload_failed", f"the upload has failed: {found.error}")
        parts = files.parts()
        _check(found, parts, etags)
        files.assemble(parts, checks.refuse_closing)
        try:
            row_count = checks.count_rows(files)
        except NoDataset as error:
            raise _failed(database, files, found, error) from None
        with database.writing() as session:
            found = _still_there(session, dataset)
            found.status = "ready"
            found.row_count = row_count
        files.remove_parts()


def _still_there(session: Session, dataset: Dataset) -> Dataset:
    """Return the dataset as it is now; refuse one that was aborted meanwhile."""
    found = session.get(Dataset, dataset.id)
    if found is None:
        raise upload_gone()
    return found


def _check(dataset: Dataset, parts: Sequence[ReceivedPart], etags: Mapping[int, str]) -> None:
    arrived = {part.number: part for part in parts}
    wanted = range(1, part_count(dataset) + 1)
    missing = [number for number in wanted if number not in arrived]
    if missing:
        _refuse("parts_missing", "have not arrived", missing)
    if dataset.part_size is None and not etags:
        etags = {1: arrived[1].etag}
    if other := [number for number in wanted if etags.get(number) != arrived[number].etag]:
        _refuse("etag_mismatch", "have another etag, or are not named", other)
    if other := [number for number in etags if number not in wanted]:
        _refuse("etag_mismatch", "are beyond the end of the file", other)
    if other := [n for n in wanted if arrived[n].size != part_size(dataset, n)]:
        _refuse("size_mismatch", "have another size", other)


def _refuse(code: str, problem: str, numbers: list[int]) -> None:
    shown = ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")
    raise Refused(
        409, code, f"parts of the upload {problem}: {shown}", details={"part_numbers": numbers}
    )


def _failed(database: Database, files: DatasetFiles, dataset: Dataset, error: NoDataset) -> Refused:
    # The path in the message is the platform's business.
    message, *rows = str(error).replace(str(files.rows), dataset.file_name).splitlines()
    if rows:
        message = f"{message}: {rows[0].strip()}; …"
    with database.writing() as session:
        found = _still_there(session, dataset)
        found.status = "failed"
        found.error = message
    files.remove()
    return Refused(422, "invalid_dataset", f"the file is no dataset: {message}")
