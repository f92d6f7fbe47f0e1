"""A file is written whole or not at all: temporary file, fsync, rename, fsync of the folder.

What is no regular file (`/dev/null`, a FIFO, `/dev/stdout`) is written into, and never replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import ConfigurationError


def write_whole(path: Path, data: bytes | Iterable[bytes], *, mode: int | None = None) -> None:
    """Replace `path` with `data`, given whole or in pieces; OSError leaves what was there.

    `mode` defaults to what the umask leaves of 0666, or to the mode of the file that is replaced.
    """
    pieces = [data] if isinstance(data, bytes) else data
    if is_special(path):
        _write_into(path, pieces)
        return
    mode = _mode_of(path) if mode is None else mode
    handle, name = _temporary(path, mode)
    try:
        try:
            if mode is not None:
                os.fchmod(handle, mode)
            _write(handle, pieces)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _sync_folder(path.parent)


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return None


def _temporary(path: Path, mode: int | None) -> tuple[int, str]:
    """Create an empty file beside `path`; without a mode, that which the umask leaves of 0666.

    Only the system knows the umask: asking for it would change that of every thread.
    """
    name = str(path.with_name(f".{path.name[:100]}.{os.urandom(8).hex()}.tmp"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.open(name, flags, 0o666 if mode is None else 0o600), name


def _write(descriptor: int, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        left = memoryview(piece)
        while left:
            left = left[os.write(descriptor, left) :]


def _write_into(path: Path, pieces: Iterable[bytes]) -> None:
    """Write into what is there; a FIFO waits for its reader."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _write(descriptor, pieces)
    finally:
        os.close(descriptor)


def is_special(path: Path) -> bool:
    """Return whether there is something that is neither a regular file nor a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def check_writable(path: Path) -> None:
    """Raise OSError now if `write_whole` could not write there: creates and removes a probe."""
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a directory; name a file")
    if is_special(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    handle, name = tempfile.mkstemp(prefix=".osmosis-probe.", dir=path.parent)
    os.close(handle)
    os.unlink(name)


def check_overwriting(files: Iterable[tuple[str, Path]], taken: Mapping[Path, str]) -> None:
    """Refuse a file, named by its option, that would take the place of another.

    `taken` says what the other is, as "is the data file"; each file is taken for those that follow.

    Raises:
        ConfigurationError: with the option and the file.
    """
    known = {os.path.realpath(path): what for path, what in taken.items()}
    for option, path in files:
        why = "is a Python file" if path.suffix == ".py" else known.get(os.path.realpath(path))
        if why is not None:
            raise ConfigurationError(
                f"{option} {str(path)!r}: this {why}, which would be overwritten; name another file"
            )
        if not is_special(path):
            known[os.path.realpath(path)] = f"is the file of {option} too"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
