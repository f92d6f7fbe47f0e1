"""The end of an upload: its parts are checked, put together, and read as a dataset once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import closing

from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.errors import DatasetError
from pytest_osmosis.dataset.opening import open_dataset

from ..database.connection import Database
from ..database.models import Dataset
from ..errors import Refused, busy
from .files import DatasetFiles, Part, upload_gone
from .upload_urls import part_count, part_size

CHECKED_WHOLE = 256 * 1024 * 1024
"""Of a larger file only the first rows are checked; a larger JSON array, which is read whole, is
neither checked nor counted."""
CHECKED_ROWS = 10_000
"""So many rows of a larger file are checked."""
WAIT_S = 20.0
"""How long a request waits for those before it: it keeps a thread that others need."""
_ONE_AT_A_TIME = threading.Lock()
"""It takes the disk, and a second request for the same upload finds it done."""


def complete(
    database: Database, files: DatasetFiles, dataset_id: str, etags: Mapping[int, str]
) -> Dataset:
    """Return the dataset once it is whole; one that is already stays as it is.

    Raises:
        Refused: when parts are missing or others than expected, or it is no dataset.
    """
    if not _ONE_AT_A_TIME.acquire(timeout=WAIT_S):
        raise busy()
    try:
        with database.reading() as session:
            dataset = session.get(Dataset, dataset_id)
        if dataset is None:
            raise upload_gone()
        if dataset.status == "ready":
            return dataset
        if dataset.status != "uploading":
            raise Refused(409, "upload_failed", f"the upload has failed: {dataset.error}")
        parts = files.parts()
        _check(dataset, parts, etags)
        files.assemble(parts)
        try:
            row_count = _checked_rows(files, dataset)
        except DatasetError as error:
            return _failed(database, files, dataset, error)
        return _ready(database, files, dataset, row_count)
    finally:
        _ONE_AT_A_TIME.release()


def _check(dataset: Dataset, parts: Sequence[Part], etags: Mapping[int, str]) -> None:
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


def _checked_rows(files: DatasetFiles, dataset: Dataset) -> int | None:
    """Return how many rows there are, once they are checked as an evaluation checks them."""
    if dataset.file_size <= CHECKED_WHOLE:
        return len(load_dataset(files.rows))
    if dataset.extension == "json":
        return None
    load_dataset(files.rows, limit=CHECKED_ROWS)
    file, kind = open_dataset(files.rows)
    with file, closing(kind.open(file, files.rows)) as source:
        return source.count(None)


def _ready(
    database: Database, files: DatasetFiles, dataset: Dataset, row_count: int | None
) -> Dataset:
    with database.writing() as session:
        found = session.get_one(Dataset, dataset.id)
        found.status = "ready"
        found.row_count = row_count
    files.remove_parts()
    return found


def _failed(
    database: Database, files: DatasetFiles, dataset: Dataset, error: DatasetError
) -> Dataset:
    # The path in the message is the platform's business.
    told, *rows = str(error).replace(str(files.rows), dataset.file_name).splitlines()
    if rows:
        told = f"{told}: {rows[0].strip()}; …"
    with database.writing() as session:
        found = session.get_one(Dataset, dataset.id)
        found.status = "failed"
        found.error = told
    files.remove()
    raise Refused(422, "invalid_dataset", f"the file is no dataset: {told}")
