"""Environments that were built, closed to what runs in them: ours, read-only, known by a digest.

A program of the build may still be at work, as another user than the platform's: each folder is
taken from it before what lies there is looked at, and no link is followed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

from .project import EnvironmentProblem


def seal(built: Path, home: Path) -> None:
    """Move a folder to its place, and make all in it ours and read-only.

    Raises:
        EnvironmentProblem: where it holds anything but folders, links and files of one name.
    """
    try:
        built.rename(home)
        if not stat.S_ISDIR(home.lstat().st_mode):
            raise _odd(home.name)
        for _, folders, _, number in os.fwalk(home):
            os.fchown(number, os.geteuid(), os.getegid())
            os.fchmod(number, 0o555)
            folders[:] = _seal_files(number)
    except OSError as error:
        raise EnvironmentProblem(f"the environment cannot be kept: {error.strerror}") from None


def _seal_files(folder: int) -> list[str]:
    """Seal what is in an open folder that is sealed; return the names of its folders."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            is_file = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
            if not (is_file or entry.is_symlink()):
                raise _odd(entry.name)
            own = os.geteuid(), os.getegid()
            os.chown(entry.name, *own, dir_fd=folder, follow_symlinks=False)
            if is_file:
                os.chmod(entry.name, (status.st_mode | 0o444) & 0o555, dir_fd=folder)
    return folders


def _odd(name: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"the environment cannot be kept: {name} in it is no folder, no link and no file of one "
        "name"
    )


def digest_of(home: Path) -> str:
    """Return what changes with every change in a folder: no program can set the times of changes.

    Contents are not read: environments have gigabytes.
    """
    found = hashlib.sha256()
    for parent, folders, files in os.walk(home):
        folders.sort()
        for name in ("", *sorted({*folders, *files})):
            path = os.path.join(parent, name)
            status = os.lstat(path)
            facts = (
                *(status.st_mode, status.st_uid, status.st_size),
                *(status.st_mtime_ns, status.st_ctime_ns),
            )
            found.update(b"%s\0%r\0" % (os.fsencode(path), facts))
    return found.hexdigest()


def remove(home: Path) -> None:
    """Remove a folder in which folders may be read-only."""
    if os.geteuid():  # root needs no permission, and there may be others' programs
        for parent, _, _ in os.walk(home):
            os.chmod(parent, 0o700)
    shutil.rmtree(home, ignore_errors=True)
