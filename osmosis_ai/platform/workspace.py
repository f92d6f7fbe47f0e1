"""The workspace: a Git work tree with `rollouts/`, `configs/eval/` and `configs/training/`.

Finds it around a directory and checks where its files are. Runs no program and reads no file.
"""

from __future__ import annotations

from pathlib import Path

ROLLOUTS = "rollouts"
DATASETS = "datasets"
DATASETS_OF_03 = "data"
"""Where workspaces of osmosis-ai 0.3 have copies of their datasets."""
_ALIKE = 0.7
"""How alike a name that is suggested must be: all files of Python share three characters."""


class WorkspaceError(Exception):
    """There is no workspace, or a config file is in a place where none belongs."""

    code = "workspace"
    """For programs."""


class NameRefused(WorkspaceError):
    """What was given cannot be a name."""


class EntrypointError(Exception):
    """The rollout of a config file, or its entrypoint, is not there."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key
        """Of [experiment], which names it."""


def find_root(start: Path) -> Path:
    """Return the top of the Git work tree around a directory, resolved; or raise WorkspaceError."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / ".git").exists():
            return folder
    raise WorkspaceError(
        f"{start} is in no Git work tree; change to your workspace, or make one here with "
        "`osmosis workspace init`"
    )


def is_workspace(folder: Path) -> bool:
    """Return whether a folder is in a Git work tree that has rollouts of a platform."""
    try:
        return (find_root(folder) / ROLLOUTS).is_dir()
    except WorkspaceError:
        return False


def check_place(path: Path, root: Path, folder: str) -> None:
    """Raise WorkspaceError unless a config file is a .toml in its folder, and no symlink out."""
    if path.suffix != ".toml":
        raise WorkspaceError(f"a config file ends in .toml, not in {path.suffix or 'nothing'!r}")
    home = root / folder
    # The folder of the path as it is written, and the file that it leads to.
    for place in (path.parent.resolve() / path.name, path.resolve()):
        if not place.is_relative_to(home):
            led = " (a symlink)" if path.is_symlink() else ""
            raise WorkspaceError(f"it is at {place}{led}; files of this kind belong in {home}")


def find_entrypoint(root: Path, rollout: str, entrypoint: str) -> Path:
    """Return the entrypoint of a rollout, resolved.

    Raise EntrypointError unless it is a regular file in the rollout's directory.
    """
    home = root / ROLLOUTS / rollout
    if home.is_file():
        raise EntrypointError("rollout", f"{ROLLOUTS}/{rollout} is a file and no directory")
    if not home.is_dir():
        raise EntrypointError(
            "rollout", f"there is no directory {ROLLOUTS}/{rollout}/{_near(home)}"
        )
    if not home.resolve().is_relative_to(root / ROLLOUTS):
        raise EntrypointError("rollout", f"{ROLLOUTS}/{rollout}/ leads out of {ROLLOUTS}/")
    file = home / entrypoint
    if not file.resolve().is_relative_to(home.resolve()):
        raise EntrypointError("entrypoint", f"it is outside of {ROLLOUTS}/{rollout}/")
    if file.exists() and not (file.is_file() and entrypoint.endswith(".py")):
        raise EntrypointError(
            "entrypoint", f"{ROLLOUTS}/{rollout}/{entrypoint} is not a Python file"
        )
    if not file.exists():
        raise EntrypointError(
            "entrypoint", f"there is no file {ROLLOUTS}/{rollout}/{entrypoint}{_near(file)}"
        )
    return file.resolve()


def _near(missing: Path) -> str:
    """A hint at the name that is nearest to one that is missing."""
    from difflib import get_close_matches  # only for a mistake

    if not missing.parent.is_dir():
        return ""
    names = sorted(entry.name for entry in missing.parent.iterdir())
    close = get_close_matches(missing.name, names, n=1, cutoff=_ALIKE)
    return f"; did you mean {close[0]!r}?" if close else ""
