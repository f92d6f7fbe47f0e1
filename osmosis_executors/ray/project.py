"""The copy of a project that machines of a cluster get: its files, without what may be secret.

In a Git work tree what Git ignores is left out, but for the files that the evaluation needs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from osmosis_ai.platform import git_command
from pytest_osmosis.errors import ConfigurationError

MAX_BYTES = 200 << 20
MAX_FILES = 20_000
_FOLDERS = frozenset(
    {
        ".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".osmosis",
        ".mypy_cache", ".pytest_cache", ".ruff_cache",
    }
)  # fmt: skip
_ENDINGS = (".env", ".secrets", ".pem", ".key", ".pyc")
_NAMES = (".gitignore", ".rayignore", ".netrc", ".pypirc")
"""Files that Ray would take for lists of what to leave out, and files of passwords."""


def copy_project(root: Path, needed: Mapping[str, Path], target: Path) -> int:
    """Copy a project into an empty folder, with the files that are needed; return their number.

    Raises:
        ConfigurationError: when it is too large to be given to other machines.
    """
    files = {str(file.relative_to(root)): file for file in _files(root) if _is_in(file, root)}
    size = 0
    for count, (place, file) in enumerate({**files, **needed}.items(), start=1):
        size += file.stat().st_size
        if count > MAX_FILES or size > MAX_BYTES:
            raise ConfigurationError(
                f"--osmosis-ray: the project in {root} is too large to be given to a cluster: "
                f"more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MiB; have Git ignore "
                "what is not needed, or put large data where every machine has it under one path"
            )
        copy = target / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    return len({**files, **needed})


def _is_in(file: Path, root: Path) -> bool:
    """Return whether it is a file of the project, and no link to one elsewhere."""
    return file.is_file() and file.resolve().is_relative_to(root.resolve())


def _files(root: Path) -> Iterator[Path]:
    known = _known_to_git(root)
    for file in _walk(root) if known is None else known:
        is_env = file.name.startswith(".env")
        if not (is_env or file.name in _NAMES or file.name.endswith(_ENDINGS)):
            yield file


def _known_to_git(root: Path) -> Iterator[Path] | None:
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    try:
        answer = git_command.ask(root, *words, looks_up=True)
    except git_command.GitError:
        return None
    if answer.status:
        return None
    names = [name for name in answer.out.split("\0") if name]
    return (root / name for name in names if _FOLDERS.isdisjoint(Path(name).parts))


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - _FOLDERS)
        yield from (Path(folder, name) for name in files)
