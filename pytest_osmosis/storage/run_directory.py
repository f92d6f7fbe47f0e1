"""Where evaluations are kept: `.osmosis/runs/<run name>/`, and what was kept there before.

    <root>/.osmosis/.gitignore             keeps all of it out of version control
    <root>/.osmosis/runs/<name>/           the evaluation that goes on, or ended last
    <root>/.osmosis/runs/<name>@<time>/    an earlier one
    <root>/.osmosis/runs/.<name>.lock      held while a session works on <name>

Knows names and folders; does not know what is in the files.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from .journal import FILE

OSMOSIS = ".osmosis"
RUNS = "runs"
_NAME_LIMIT = 100


def runs_folder(root: Path, run_dir: Path | None) -> Path:
    """Where the evaluations of a project are kept."""
    return run_dir if run_dir is not None else root / OSMOSIS / RUNS


def run_name(subject: str, model: str) -> str:
    """A folder's name for what is evaluated (a path, a node id) and the model."""
    name = f"{_slug(subject)}-{_slug(model)}"
    return name if len(name) <= _NAME_LIMIT else marked(name[: _NAME_LIMIT - 7], name)


def marked(name: str, whole: str) -> str:
    """The name with a mark made from `whole`, where the name alone is not one thing's only."""
    return f"{name}-{hashlib.sha256(whole.encode()).hexdigest()[:6]}"


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.") or "x"


def make_private(folder: Path) -> None:
    """Make a folder of ours, and those above it, for this user alone and outside of git."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
    ours = next((path for path in (folder, *folder.parents) if path.name == OSMOSIS), None)
    top = ours or (missing[-1] if missing else None)
    if top is not None:
        _ignore(top / ".gitignore")


def _ignore(path: Path) -> None:
    with contextlib.suppress(FileExistsError), path.open("x") as file:
        file.write("*\n")


def lock(folder: Path) -> FileLock:
    """Take the lock of the evaluation that is kept in `folder`; raises like `FileLock`."""
    return FileLock(_lock_path(folder))


def user_of(folder: Path) -> int | None:
    """The process that works on the evaluation in `folder`; -1 when it cannot be told which."""
    return holder_of(_lock_path(folder))


def _lock_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def aside(folder: Path, stamp: str) -> Path:
    """A free place for an evaluation that is to be moved aside."""
    target = folder.with_name(f"{folder.name}@{stamp}")
    number = 2
    while target.exists():
        target = folder.with_name(f"{folder.name}@{stamp}-{number}")
        number += 1
    return target


def is_archived(folder: Path) -> bool:
    """Whether another evaluation has taken the folder's place."""
    return "@" in folder.name


def kept_in(runs: Path) -> Iterator[Path]:
    """The folders of all evaluations that are kept, by name."""
    if runs.is_dir():
        yield from sorted(path.parent for path in runs.glob(f"*/{FILE}"))


def remove(folder: Path) -> None:
    """Delete an evaluation: first its journal, so that a part of it is never taken for one."""
    (folder / FILE).unlink(missing_ok=True)
    shutil.rmtree(folder)
    if not is_archived(folder):
        _lock_path(folder).unlink(missing_ok=True)


_held: set[int] = set()
"""Descriptors of the locks that this process holds."""


class InUse(Exception):
    """Another process holds the lock."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"in use by pid {pid}" if pid else "in use by another process")
        self.pid = pid


class NoLocks(Exception):
    """The file system has no locks; `str()` says why."""


class FileLock:
    """A lock on a file of its own, which stays and names the holder by its process id."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            InUse: when another process has it.
            NoLocks: when there can be none here.
        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(self._descriptor)
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
        except BaseException:
            os.close(self._descriptor)
            raise
        _held.add(self._descriptor)

    def release(self) -> None:
        """Give it back. Idempotent."""
        if self._descriptor in _held:
            _held.discard(self._descriptor)
            os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:
        raise NoLocks("this system has no flock") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise InUse(_holder(descriptor)) from None
        if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise NoLocks(error.strerror) from None
        raise


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 20, 0)
    return int(text) if text.isdigit() else None


def holder_of(path: Path) -> int | None:
    """The process that holds the lock at `path`; None when none does. Takes nothing for long."""
    if not path.exists():
        return None
    try:
        FileLock(path).release()
    except InUse as held:
        return held.pid or -1
    except (NoLocks, OSError):
        return None
    return None


def _let_go() -> None:
    """A forked child must not keep its parent's locks alive."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
