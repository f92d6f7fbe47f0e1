"""A path to an open dataset file and its format, or one message that says why it cannot be used.

Knows the file system and first bytes; does not read rows.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from .errors import DatasetError, EmptyDataset, quote
from .formats import ACCEPTED, FORMATS, SUFFIXES, DatasetFormat

_HEAD = 64
_GZIP = ".gz"
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[\s*[\]{]|\{[ \t]*\r?\n)")
"""An array of objects, or an object over several lines: it is read so whatever its name is."""
_PACKED = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
)


def open_dataset(path: Path) -> tuple[BinaryIO, DatasetFormat]:
    """Return the open file and its format; DatasetError says why it cannot be used."""
    _refuse_special(path)
    try:
        file = open(path, "rb", buffering=1 << 18)  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise DatasetError(f"{quote(path)}: {_reason(error, path)}") from None
    try:
        if path.suffix.lower() == _GZIP:
            file = _unpacked(path, file)
            if not path.with_suffix("").suffix:
                raise DatasetError(f"{quote(path)}: name it for what it is, such as rows.csv.gz")
            path = path.with_suffix("")
        return file, _format(path, os.pread(file.fileno(), _HEAD, 0))
    except BaseException:
        file.close()
        raise


def _unpacked(path: Path, packed: BinaryIO) -> BinaryIO:
    """Return a temporary file with what a gzip file holds, and close that."""
    import gzip
    import shutil
    import tempfile
    import zlib

    with packed:
        file: BinaryIO = tempfile.TemporaryFile(prefix="osmosis-")  # noqa: SIM115 - the caller's
        try:
            with gzip.open(packed) as unpacked:
                shutil.copyfileobj(unpacked, file, 1 << 20)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            file.close()
            raise DatasetError(f"{quote(path)}: is not whole gzip: {error}") from None
        file.flush()
        file.seek(0)
        return file


def _refuse_special(path: Path) -> None:
    try:
        status = os.stat(path)
    except OSError as error:
        raise DatasetError(f"{quote(path)}: {_reason(error, path)}") from None
    except ValueError:
        raise DatasetError(f"{quote(path)}: not a possible file name") from None
    if stat.S_ISDIR(status.st_mode):
        raise DatasetError(f"{quote(path)}: is a directory; give {ACCEPTED}")
    if not stat.S_ISREG(status.st_mode) or str(path).startswith(("/dev/", "/proc/")):
        raise DatasetError(f"{quote(path)}: must be a regular file: it is read by every worker")


def _reason(error: OSError, path: Path) -> str:
    if error.errno == errno.ENOENT:
        where = "" if path.is_absolute() else f" (looked in {quote(os.getcwd())})"
        return f"no such file{where}{_neighbour(path)}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "permission denied"
    if error.errno == errno.ELOOP:
        return "is a loop of symbolic links"
    return (error.strerror or "cannot be read").lower()


def _neighbour(path: Path) -> str:
    """Return a hint at the dataset beside the file that is not there, if one is named alike."""
    from difflib import get_close_matches  # only for a mistake

    try:
        names = [name for name in os.listdir(path.parent) if name.endswith(SUFFIXES)]
    except OSError:
        return ""
    close = get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close else ""


def _format(path: Path, head: bytes) -> DatasetFormat:
    suffix = path.suffix.lower()
    _refuse_packed(path, head)
    found = next((each for each in FORMATS if each.suffix == suffix), None)
    looks = next((each for each in FORMATS if each.magic and head.startswith(each.magic)), None)
    if found is None:
        hint = f"; it looks like {looks.name}: rename it to {looks.suffix}" if looks else ""
        ends = f"ends in {suffix!r}" if suffix else "has no suffix"
        raise DatasetError(f"{quote(path)}: the name {ends}; expected {ACCEPTED}{hint}")
    if not head:
        raise EmptyDataset(f"{quote(path)}: has no rows (the file is empty)")
    if not found.magic:
        _refuse_other_text(path, suffix, head, looks)
    if suffix == ".jsonl" and _JSON.match(head):
        return next(each for each in FORMATS if each.suffix == ".json")
    return found


def _refuse_packed(path: Path, head: bytes) -> None:
    for magic, name in _PACKED:
        if head.startswith(magic):
            raise DatasetError(f"{quote(path)}: looks like {name}; unpack it and give {ACCEPTED}")


def _refuse_other_text(path: Path, suffix: str, head: bytes, looks: DatasetFormat | None) -> None:
    problem = None
    if looks is not None:
        problem = f"looks like {looks.name}, not {suffix}: rename it to {looks.suffix}"
    elif head.startswith((b"\xff\xfe", b"\xfe\xff")):
        problem = f"is not UTF-8 (byte 0x{head[0]:02x} at line 1); {_utf_16(path, 'UTF-16')}"
    elif b"\0" in head[:2]:
        order = "UTF-16BE" if head[:1] == b"\0" else "UTF-16LE"
        problem = f"is not UTF-8 (NUL at line 1); {_utf_16(path, order)}"
    if problem:
        raise DatasetError(f"{quote(path)}: {problem}")


def _utf_16(path: Path, encoding: str) -> str:
    from .converting import as_utf8  # only for a mistake

    return f"looks like UTF-16; save it as UTF-8:\n  {as_utf8(path, encoding)}".rstrip(": \n")
