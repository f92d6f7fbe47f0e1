"""What must not be committed: `.env`, which has keys, and `.osmosis`, which has conversations.

Writes `.gitignore`, and asks git whether it does what it is meant to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..escaping import printable
from .git_command import GitError, ask
from .workspace import WorkspaceError

PRIVATE = (".osmosis/", ".env")
"""Patterns; the names that they are about are the same without the slash."""
IGNORED = (*PRIVATE, "__pycache__/")


def ignore(root: Path) -> list[Path]:
    """Add the patterns that a .gitignore lacks; return the file if it was changed.

    Raises:
        WorkspaceError: when it cannot be read or written.
    """
    path = root / ".gitignore"
    try:
        before = path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""
        present = {line.strip().rstrip("/") for line in before.splitlines()}
        missing = [pattern for pattern in IGNORED if pattern.rstrip("/") not in present]
        if not missing:
            return []
        gap = "" if not before or before.endswith("\n") else "\n"
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(gap + "".join(f"{pattern}\n" for pattern in missing))
    except OSError as error:
        raise WorkspaceError(
            f"{printable(str(path))} cannot be changed: {error.strerror}"
        ) from None
    return [path]


def exposures(root: Path) -> Iterator[str]:
    """Yield what Git would commit in spite of .gitignore, in sentences; nothing if git cannot tell.

    A link in place of the file is not followed by git, and a later pattern may undo an earlier one.
    """
    names = [pattern.rstrip("/") for pattern in PRIVATE]
    try:
        inside = [f"{name}/x" if f"{name}/" in PRIVATE else name for name in names]
        told = ask(root, "check-ignore", "--no-index", "--", *inside)
        tracked = ask(root, "ls-files", "--", *names)
    except GitError:
        return
    if told.status > 1 or tracked.status:  # no repository
        return
    kept_out = set(told.out.split())
    for name, path in zip(names, inside, strict=True):
        if path not in kept_out:
            yield (
                f"Git does not ignore {name}, although .gitignore names it: a later pattern undoes "
                "it, or the file is a link"
            )
    found = tracked.out.splitlines()
    for name in names:
        if any(path == name or path.startswith(f"{name}/") for path in found):
            yield f"{name} is committed already: `git rm -r --cached {name}` takes it out"
