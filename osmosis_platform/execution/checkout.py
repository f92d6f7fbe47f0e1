"""The files of a workspace's repository at one commit, as a work tree in the folder of a run.

A short commit is looked up in a clone without files; then one commit alone is fetched, what it
holds is measured before a file of it is written, and the work tree is walked afterwards.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..accounts.registry import CloneUrlError, check_clone_url
from .git_program import GitProblem, GitProgram

MIB = 1024 * 1024
_FULL = 40
_NO_COMMIT = "not our ref"
_NO_REF = "couldn't find remote ref"
_SUBMODULE = "160000"
_SYMLINK = "120000"
_LISTING_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class CheckoutLimits:
    """How much a repository may be."""

    time_s: float = 600.0
    """For each command of git."""
    download_bytes: int = 1024 * MIB
    """Of the objects that git fetches."""
    files: int = 100_000
    total_bytes: int = 1024 * MIB
    """Of the files of the commit together."""


class CheckoutError(Exception):
    """A repository that could not be checked out; a sentence for the log of the run."""


@dataclass(frozen=True, slots=True)
class CloneSource:
    """Where a repository is cloned from."""

    url: str
    protocol: str
    """The only one that git may use: `https`, `ssh`, or `file` for a folder of this machine."""

    @classmethod
    def of_workspace(cls, repository: str, clone_url: str | None) -> CloneSource:
        """Return the source of a workspace: GitHub, unless the operator has set another."""
        try:
            text = check_clone_url(clone_url or f"https://github.com/{repository}.git")
        except CloneUrlError as error:
            raise CheckoutError(f"the workspace's clone URL {error}") from None
        if text.startswith("/"):
            return cls(Path(text).as_uri(), "file")
        return cls(text, "https" if urlsplit(text).scheme == "https" else "ssh")


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The files of a commit."""

    folder: Path
    commit: str
    """The full hash."""
    submodules: tuple[str, ...] = ()
    """Paths whose files are missing: submodules are not fetched."""
    symlinks: tuple[str, ...] = ()
    """Paths of files that hold the target of a symlink: none is followed."""


def check_out(
    git: GitProgram,
    source: CloneSource,
    commit: str | None,
    limits: CheckoutLimits,
    *,
    branch: str | None = None,
) -> WorkTree:
    """Make the work tree of a commit, else of the newest one of a branch, else of the default one.

    Raises:
        CheckoutError: with a sentence for everything that goes wrong.
        Exception: what the check of the program raises, where the run is not to continue.
    """
    try:
        if commit:
            wanted = _full_commit(git, source, commit.lower())
        else:
            wanted = f"refs/heads/{branch}" if branch else "HEAD"
        return _check_out(git, source, wanted, limits)
    except GitProblem as error:
        if branch and not commit and _NO_REF in str(error):
            raise CheckoutError(f"the repository has no branch {branch}; push it") from None
        if commit and _NO_COMMIT in str(error):
            message = f"the repository has no commit {commit}; push it"
            raise CheckoutError(message) from None
        raise CheckoutError(str(error)) from None


def _check_out(
    git: GitProgram, source: CloneSource, wanted: str, limits: CheckoutLimits
) -> WorkTree:
    folder = git.room / "source"
    shutil.rmtree(folder, ignore_errors=True)
    git.run(git.room, "init", "--quiet", "--template=", folder.name)
    words = ("fetch", "--quiet", "--depth=1", "--no-tags", "--", source.url, wanted)
    git.run(folder, *words, protocols=source.protocol)
    found = git.run(folder, "rev-parse", "--verify", "FETCH_HEAD^{commit}").strip()
    special = _measure(git, folder, found, limits)
    git.run(folder, "checkout", "--quiet", "--detach", "--force", found)
    _check_tree(folder)
    return WorkTree(folder, found, tuple(special[_SUBMODULE]), tuple(special[_SYMLINK]))


def _full_commit(git: GitProgram, source: CloneSource, commit: str) -> str:
    if len(commit) == _FULL:
        return commit
    bare = git.room / "commits.git"
    shutil.rmtree(bare, ignore_errors=True)
    words = ("clone", "--quiet", "--bare", "--template=", "--filter=blob:none", "--")
    try:
        git.run(git.room, *words, source.url, bare.name, protocols=source.protocol)
        commits = git.run(bare, "rev-list", "--all").split()
    finally:
        shutil.rmtree(bare, ignore_errors=True)
    found = [each for each in commits if each.startswith(commit)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CheckoutError(
            f"{len(found)} commits of the repository begin with {commit}; write more digits of the "
            "one that is meant"
        )
    raise CheckoutError(f"the repository has no commit that begins with {commit}; push it")


def _measure(
    git: GitProgram, folder: Path, commit: str, limits: CheckoutLimits
) -> dict[str, list[str]]:
    """Refuse a commit with too many files or bytes; return its submodules and symlinks by mode."""
    words = ("ls-tree", "-r", "-l", "-z", "--full-tree", commit)
    total, files = 0, 0
    special: dict[str, list[str]] = {_SUBMODULE: [], _SYMLINK: []}
    for mode, size, path in _entries(git.run(folder, *words, file_bytes=_LISTING_BYTES)):
        files += 1
        total += size
        if mode in special:
            special[mode].append(path)
    if files > limits.files:
        raise CheckoutError(f"the commit has {files:,} files; the limit is {limits.files:,}")
    if total > limits.total_bytes:
        message = f"the limit is {limits.total_bytes // MIB:,} MiB"
        raise CheckoutError(f"the files of the commit have {total // MIB:,} MiB; {message}")
    return special


def _entries(listing: str) -> Iterator[tuple[str, int, str]]:
    """Yield mode, size and path of each entry of `git ls-tree -l -z`."""
    for entry in listing.split("\0")[:-1]:
        about, _, path = entry.partition("\t")
        mode, _, _, size = about.split()
        yield mode, 0 if size == "-" else int(size), path


def _check_tree(folder: Path) -> None:
    """Refuse a work tree that holds anything but folders and files."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(parent, name)).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise CheckoutError("the work tree holds something that is no file and no folder")
