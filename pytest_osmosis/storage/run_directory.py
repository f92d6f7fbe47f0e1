"""Where evaluations are kept: `.osmosis/runs/<run name>/`, and what was kept there before.

    <root>/.osmosis/.gitignore             keeps all of it out of version control
    <root>/.osmosis/runs/<name>/           the evaluation under way, or the last one
    <root>/.osmosis/runs/<name>@<time>/    an earlier one
    <root>/.osmosis/runs/.<name>.lock      held while a session works on <name>

One process at a time works on an evaluation. Knows names, folders and locks; does not know what is
in the files.

    Exception
      InUse      another process works on it
      NoLocks    the file system has no locks
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakSet

from ..run_result import SuiteInfo
from .journal import FILE

OSMOSIS = ".osmosis"
RUNS = "runs"
_NAME_LIMIT = 100  # bytes
_SIGNS = re.compile(r"[^\w\x00-\x7f]")
"""What may be all that tells two names apart, and stands in no name: vowel signs, emoji."""
NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class InUse(Exception):
    """Another process holds the lock; `str()` names it."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"in use by pid {pid}" if pid else "in use by another process")
        self.pid = pid


class NoLocks(Exception):
    """The file system has no locks; `str()` says why."""


class FileLock:
    """A lock on a file, until it is released or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _HELD.add(self)

    def release(self) -> None:
        """Release the lock; in a forked child, leave it to the parent alone."""
        _HELD.discard(self)
        os.close(self._descriptor)


_HELD: WeakSet[FileLock] = WeakSet()


def _leave_to_parent() -> None:
    for each in list(_HELD):
        each.release()


# A lock belongs to all processes that have its descriptor.
os.register_at_fork(after_in_child=_leave_to_parent)


def runs_folder(root: Path, run_dir: Path | None) -> Path:
    """Where the evaluations of a project are kept."""
    return run_dir if run_dir is not None else root / OSMOSIS / RUNS


def run_name(*parts: str) -> str:
    """A folder's name for what is evaluated: the agent, a path or a node id, and the model."""
    name = "-".join(_slug(part) for part in parts if part)
    encoded = name.encode()
    if len(encoded) <= _NAME_LIMIT:
        return name
    return with_mark(encoded[: _NAME_LIMIT - 7].decode(errors="ignore"), name)


def name_for(info: SuiteInfo, root: Path) -> str:
    """Return the name of the folder of a suite's evaluation."""
    subject = info.name
    if not info.scored_by_test:
        data = Path(info.data)
        subject = _from_root(data, root).removesuffix(data.suffix)
    shard = info.settings.get("shard")
    if shard is not None:  # shards run side by side
        subject = f"{subject}.shard-{shard.replace('/', '-of-')}"
    if info.variant:
        subject = f"{subject}.{info.variant}"
    return run_name(info.agent.replace(":", "."), subject.replace("/", "."), info.model)


def _from_root(data: Path, root: Path) -> str:
    """The path of a file from the root directory: `up2/sets/x.jsonl` for `../../sets/x.jsonl`.

    A project that is moved with its data has the same name for it.
    """
    parts = Path(os.path.relpath(data, root)).parts
    up = parts.count("..")
    return "/".join([f"up{up}", *parts[up:]] if up else parts)


def with_mark(name: str, whole: str) -> str:
    """The name with a mark made from `whole`, where the name alone is not one thing's only."""
    digest = hashlib.sha256(whole.encode(errors="surrogateescape")).hexdigest()
    return f"{name}-{digest[:6]}"


def _slug(text: str) -> str:
    slug = re.sub(r"[^\w.]+", "-", text).strip("-.") or "x"
    return with_mark(slug, text) if _SIGNS.search(text) else slug


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
    """Take the lock of the evaluation that is kept in `folder`; raises like `take_lock`."""
    return take_lock(_lock_path(folder))


def user_of(folder: Path) -> int | None:
    """Return the process that works on the evaluation in `folder`; -1 when its id is unknown."""
    path = _lock_path(folder)
    if not path.exists():
        return None
    try:
        take_lock(path).release()
    except InUse as held:
        return held.pid or -1
    except (NoLocks, OSError):
        return None
    return None


def holder_of(folder: Path) -> int | None:
    """Return the process that took the lock last, if it lives. Takes no lock: see `user_of`."""
    try:
        pid = _holder(_lock_path(folder))
        if pid is not None:
            os.kill(pid, 0)
    except (FileNotFoundError, OverflowError, ProcessLookupError):
        return None
    except PermissionError:
        pass  # it is another user's
    return pid


def _lock_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def archive_path(folder: Path, stamp: str) -> Path:
    """Return a free place to move an evaluation to before a new one starts."""
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


def take_lock(path: Path) -> FileLock:
    """Lock a file and write this process's id into it; the kernel drops the lock on death.

    The file stays when the lock is released: a free one keeps no other process out.

    Raises:
        InUse: when another process has it.
        NoLocks: when there can be none here.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise InUse(_holder(path)) from None
            if error.errno in NO_LOCKS:
                raise NoLocks(error.strerror) from None
            raise
        if os.fstat(descriptor).st_nlink:
            break
        os.close(descriptor)  # another process has removed the file meanwhile
    path.write_text(str(os.getpid()), "ascii")
    return FileLock(descriptor)


def _holder(path: Path) -> int | None:
    text = path.read_text("ascii", "replace")
    return int(text) if re.fullmatch("[1-9][0-9]{0,9}", text) else None
