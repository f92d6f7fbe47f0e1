"""Uploads: their parts, URLs to which one can be sent without a token for a while, and their end.

A URL is signed by HMAC. At the end the parts are checked, put together, and read as a dataset once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from ..database.connection import Database
from ..database.models import Dataset
from ..errors import Refused
from ..vault.cipher import Vault
from .checks import DatasetChecks, NoDataset
from .files import DatasetFiles, ReceivedPart, upload_gone

PATH = "/uploads"


def part_count(dataset: Dataset) -> int:
    """Return in how many parts a dataset arrives."""
    if dataset.part_size is None:
        return 1
    return math.ceil(dataset.file_size / dataset.part_size)


def part_size(dataset: Dataset, number: int) -> int:
    """Return how many bytes a part has."""
    if dataset.part_size is None:
        return dataset.file_size
    return min(dataset.part_size, dataset.file_size - (number - 1) * dataset.part_size)


def upload_document(
    vault: Vault, base_url: str, dataset: Dataset, expires_s: int
) -> dict[str, Any]:
    """Return how to send a dataset: the method, and a URL for each part."""
    expires = int(time.time()) + expires_s
    urls = [
        _url(vault, base_url, dataset.id, number, expires)
        for number in range(1, part_count(dataset) + 1)
    ]
    if dataset.part_size is None:
        return {"method": "simple", "presigned_url": urls[0]}
    parts = [
        {"part_number": number, "presigned_url": url} for number, url in enumerate(urls, start=1)
    ]
    return {"method": "multipart", "part_size": dataset.part_size, "parts": parts}


def check(vault: Vault, dataset_id: str, number: int, expires: int, signature: str) -> None:
    """Refuse a URL that is not ours, or serves no longer."""
    if not vault.is_signature(_signed(dataset_id, number, expires), signature):
        raise Refused(403, "wrong_signature", "the URL of the upload is not one of this platform")
    if expires <= time.time():
        raise Refused(
            403, "expired_url", "the URL of the upload has expired; ask for the parts once more"
        )


def _url(vault: Vault, base_url: str, dataset_id: str, number: int, expires: int) -> str:
    signature = vault.sign(_signed(dataset_id, number, expires))
    query = urlencode({"expires": expires, "signature": signature})
    return f"{base_url}{PATH}/{dataset_id}/{number}?{query}"


def _signed(dataset_id: str, number: int, expires: int) -> str:
    return f"PUT {dataset_id} {number} {expires}"


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
        check_parts(found, parts, etags)
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


def check_parts(dataset: Dataset, parts: Sequence[ReceivedPart], etags: Mapping[int, str]) -> None:
    """Refuse parts that are missing, or others than expected."""
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
