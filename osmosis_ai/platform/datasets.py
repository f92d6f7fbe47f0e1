"""The datasets of a platform: files uploaded in one piece or in parts, as evaluations are too.

Knows the wire; does not know how progress is shown.

    Exception
    └── FileChanged    a file became shorter while it was sent
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .account import text_or_empty
from .answers import table_of, tables_of
from .client import PlatformClient, cli_path

PATH = "/api/cli/datasets"
_CHUNK = 256 * 1024
_MOST_PARTS = 100_000

OnBytes = Callable[[int], None]
"""Gets how many bytes more were sent; fewer than 0 when a part begins anew."""


class FileChanged(Exception):
    """The file is not what it was when the upload began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetUpload:
    """An upload that was begun."""

    path: str
    """Of the API, below which it is completed or aborted."""
    size: int
    """Of the file, in bytes."""
    part_size: int
    """In bytes; the last part may be smaller."""
    urls: tuple[str, ...]
    """Upload URLs of the parts. Anyone who holds one can write to it."""
    is_simple: bool
    """Whether the file is one part."""

    def place(self, number: int) -> tuple[int, int]:
        """Return where in the file a part begins, and how long it is; the first is part 1."""
        begin = (number - 1) * self.part_size
        return begin, min(self.part_size, self.size - begin)


def begin_upload(client: PlatformClient, file_name: str, size: int) -> DatasetUpload:
    """Announce a file to the platform; raise PlatformError."""
    extension = file_name.rpartition(".")[2].lower()
    body = {"file_name": file_name, "file_size": size, "extension": extension}
    answer = client.post(PATH, body, subject="place for datasets")
    return upload_of(client, answer, "datasets", size)


def upload_of(
    client: PlatformClient, answer: Mapping[str, Any], kind: str, size: int
) -> DatasetUpload:
    """Return the upload that an answer describes; `kind` is the segment of its path."""
    number, upload = text_or_empty(answer, "id"), table_of(answer, "upload")
    if not number:
        raise client.bad_answer("has no id of the upload")
    path = cli_path(kind, number)
    if upload.get("method") == "simple" and (url := text_or_empty(upload, "presigned_url")):
        return DatasetUpload(
            path=path, size=size, part_size=max(size, 1), urls=(url,), is_simple=True
        )
    part_size, urls = upload.get("part_size"), _urls(upload)
    if type(part_size) is not int or part_size < 1 or len(urls) != -(-size // part_size):
        raise client.bad_answer("does not say where the file is to be sent")
    return DatasetUpload(path=path, size=size, part_size=part_size, urls=urls, is_simple=False)


def send_part(
    client: PlatformClient, upload: DatasetUpload, number: int, descriptor: int, on_bytes: OnBytes
) -> str:
    """Send a part of an open file to its address, and return its ETag; raise PlatformError."""
    begin, length = upload.place(number)
    sent = 0

    def content() -> Iterator[bytes]:
        nonlocal sent
        on_bytes(-sent)
        sent = 0
        while sent < length:
            chunk = os.pread(descriptor, min(_CHUNK, length - sent), begin + sent)
            if not chunk:
                raise FileChanged
            yield chunk
            sent += len(chunk)
            on_bytes(len(chunk))

    headers = client.put_presigned(upload.urls[number - 1], content, length)
    etag = headers.get("etag", "")
    if not etag and not upload.is_simple:
        raise client.bad_answer(f"to part {number} has no ETag")
    return etag


def complete_upload(
    client: PlatformClient, upload: DatasetUpload, etags: Mapping[int, str]
) -> dict[str, Any]:
    """Have the platform put the parts together, and return its record; raise PlatformError."""
    parts = [{"part_number": number, "etag": etags[number]} for number in sorted(etags)]
    return client.post(f"{upload.path}/complete", {"parts": parts}, subject="upload")


def abort_upload(client: PlatformClient, upload: DatasetUpload) -> None:
    """Have the platform forget an upload; raise PlatformError."""
    client.post(f"{upload.path}/abort", {}, subject="upload")


def _urls(upload: Mapping[str, Any]) -> tuple[str, ...]:
    """The addresses of all parts, in order; none where one is missing."""
    by_number = {
        part.get("part_number"): text_or_empty(part, "presigned_url")
        for part in tables_of(upload, "parts")[:_MOST_PARTS]
    }
    urls = tuple(by_number.get(number, "") for number in range(1, len(by_number) + 1))
    return urls if all(urls) else ()
