"""The credentials file: mode 0600 in a folder of mode 0700, read as it is and replaced whole.

A link, a pipe, and a file or folder of another user are refused. A change happens under a lock,
which the kernel drops when the process dies, and starts from what the file holds then: of two
changes at once none is lost. Knows no platform, no keyring and no environment.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_osmosis.storage.atomic_write import check_writable, write_whole

from .login import LoginProblem, Logins, dump, parse

LOCK_WAIT_S = 10.0
"""A change takes milliseconds; so long a wait means that a process hangs."""
_LIMIT = 1024 * 1024
_OTHERS = 0o077

Tell = Callable[[str], None]
"""Shows further sentences to the user, one at a time."""


def read(path: Path) -> Logins:
    """Return the logins in a file, none where there is no file; raise LoginProblem."""
    return _parsed(path, _content(path, tighten=None))


def change(path: Path, edit: Callable[[Logins], Logins], tell: Tell) -> None:
    """Replace the logins in the file by what `edit` makes of them; raise LoginProblem."""
    with _writing(path, tell):
        logins = _parsed(path, _content(path, tighten=tell))
        write_whole(path, dump(edit(logins)), mode=0o600)


def check_changeable(path: Path, tell: Tell) -> None:
    """Raise LoginProblem now if a change could not be written."""
    with _writing(path, tell):
        _parsed(path, _content(path, tighten=tell))
        check_writable(path)


@contextlib.contextmanager
def _writing(path: Path, tell: Tell) -> Iterator[None]:
    from filelock import FileLock, Timeout  # imports asyncio: only where a lock is taken

    try:
        _prepare_folder(path.parent, tell)
        with FileLock(path.with_suffix(".lock"), timeout=LOCK_WAIT_S, mode=0o600):
            yield
    except Timeout:
        raise LoginProblem(
            f"another osmosis has kept {path} locked for {LOCK_WAIT_S:.0f} s: end it, and try again"
        ) from None
    except OSError as error:
        raise LoginProblem(
            f"cannot write {path} ({error.strerror}): the logins in it are unchanged"
        ) from None


def _prepare_folder(folder: Path, tell: Tell) -> None:
    """Make the folder, or keep other users out of one that is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid() or mode & stat.S_ISVTX:
        raise LoginProblem(
            f"{folder} is shared with other users: name a folder of your own as OSMOSIS_CONFIG_DIR"
        )
    if mode & _OTHERS:
        folder.chmod(0o700)
        tell(f"{folder} was open to other users (mode {mode:04o}): it has mode 0700 now")


def _parsed(path: Path, content: bytes | None) -> Logins:
    if content is None:
        return Logins()
    try:
        return parse(content)
    except ValueError as error:
        raise LoginProblem(
            f"{path} was left unchanged: {error}; repair it, or move it away and run "
            "`osmosis login`"
        ) from None


def _content(path: Path, *, tighten: Tell | None) -> bytes | None:
    """The file's bytes, None without a file; one that others can read is refused or tightened."""
    try:
        with open(path, "rb", opener=open_itself) as file:
            _check_private(path, file.fileno(), tighten)
            return file.read(_LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LoginProblem(f"{path} is a symbolic link: put the file itself there") from None
        raise LoginProblem(f"cannot read {path}: {error.strerror}") from None


def open_itself(path: str, flags: int) -> int:
    """Open without following a link, and without waiting for the writer of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _check_private(path: Path, descriptor: int, tighten: Tell | None) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise LoginProblem(f"cannot read {path}: it is no regular file")
    if found.st_uid != os.geteuid():
        raise LoginProblem(
            f"{path} belongs to another user: move it away, or name another folder as "
            "OSMOSIS_CONFIG_DIR"
        )
    if not (mode := stat.S_IMODE(found.st_mode)) & _OTHERS:
        return
    if tighten is None:
        raise LoginProblem(
            f"{path} can be read by others: run `chmod 600 {path}`, or log in again with "
            "`osmosis login --force`"
        )
    os.fchmod(descriptor, 0o600)
    tighten(f"{path} could be read by others (mode {mode:04o}): it has mode 0600 now")
