"""Uploads that were cut short, kept beside the credentials: a file of mode 0600 for each.

The same file, by its content and the time of its last change, to the same workspace goes on where
it stopped. What cannot be understood, or is old, counts as none: the upload begins anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.platform.datasets import DatasetUpload
from pytest_osmosis.storage.atomic_write import write_whole

from ..credentials.file import open_itself

_OLDEST_S = 7 * 86_400.0
_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """What makes a file the same one, for the same workspace."""

    platform: str
    repository: str
    name: str
    size: int
    mtime_ns: int
    digest: str

    @property
    def key(self) -> str:
        """The name under which its upload is kept."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class UnfinishedUploads:
    """A folder of uploads."""

    folder: Path

    def find(self, file: FileIdentity) -> DatasetUpload | None:
        """Return the upload of a file that was begun, None when there is none."""
        try:
            with open(self._path(file), "rb", opener=open_itself) as stream:
                return _upload(json.loads(stream.read(_LIMIT)))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def keep(self, file: FileIdentity, upload: DatasetUpload) -> None:
        """Keep an upload that was begun; raise OSError."""
        with contextlib.suppress(FileExistsError):
            self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.mkdir(mode=0o700)
        self._remove_old()
        document = {"version": 1, "upload": asdict(upload)}
        write_whole(self._path(file), json.dumps(document).encode(), mode=0o600)

    def remove(self, file: FileIdentity) -> None:
        """Forget the upload of a file."""
        self._path(file).unlink(missing_ok=True)

    def _path(self, file: FileIdentity) -> Path:
        return self.folder / f"{file.key}.json"

    def _remove_old(self) -> None:
        for path in self.folder.glob("*.json"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _OLDEST_S:
                    path.unlink()


def identify(descriptor: int, name: str, *, platform: str, repository: str) -> FileIdentity:
    """Return the identity of an open file, which is read to its end; raise OSError."""
    found = os.fstat(descriptor)
    digest = hashlib.sha256()
    offset = 0
    while chunk := os.pread(descriptor, 1 << 20, offset):
        digest.update(chunk)
        offset += len(chunk)
    return FileIdentity(
        platform=platform,
        repository=repository,
        name=name,
        size=found.st_size,
        mtime_ns=found.st_mtime_ns,
        digest=digest.hexdigest(),
    )


def _upload(document: Any) -> DatasetUpload:
    kept = document["upload"]
    upload = DatasetUpload(**{**kept, "urls": tuple(kept["urls"])})
    if document["version"] != 1 or not all(isinstance(url, str) for url in upload.urls):
        raise ValueError("another version has written it")
    return upload
