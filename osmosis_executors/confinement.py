"""What holds a program that runs code of users: limits, another user, a command around it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .job import Job, JobLimits, RunAs

PLACES = ("{data}", "{room}", "{environment}", "{folder}")
"""What stands for a folder in the wrapper."""
_PLACEHOLDER = re.compile(r"(?<![${])\{[a-z_]+\}(?!\})")
"""No ${VARIABLE} of a shell, and no {{template}}."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """How such programs are run."""

    limits: JobLimits = field(default_factory=JobLimits)
    user: RunAs | None = None
    """None: the user of this process."""
    wrapper: tuple[str, ...] = ()
    """The words of a command that runs the program, which follows it."""

    @property
    def unknown_placeholders(self) -> list[str]:
        """What looks like a placeholder in the wrapper and would stay as it is."""
        found = _PLACEHOLDER.findall(" ".join(self.wrapper))
        return sorted({*found} - {*PLACES})

    @property
    def is_apart(self) -> bool:
        """Whether the programs may not see what this process sees."""
        return self.user is not None or bool(self.wrapper)

    def applied(self, job: Job, places: Mapping[str, Path]) -> Job:
        """Return the job so held; `{room}` and the like in the wrapper are these places."""
        named = {**places, "folder": job.folder}

        def filled(word: str) -> str:
            return _PLACEHOLDER.sub(lambda found: str(named[found[0][1:-1]]), word)

        words = tuple(map(filled, self.wrapper))
        return replace(job, limits=self.limits, user=self.user, wrapper=words)

    def let_read(self, folder: Path) -> None:
        """Let the user's group list a folder, and read the files in it, which stay ours."""
        if self.user is None:
            return
        for path, mode in ((folder, 0o750), *((file, 0o640) for file in folder.iterdir())):
            os.chown(path, -1, self.user.gid)
            path.chmod(mode)

    def take_back(self, folder: Path) -> None:
        """Close a folder to the user, who may own what is in it."""
        if self.user is not None:
            os.chown(folder, os.geteuid(), os.getegid())
            folder.chmod(0o700)

    def give(self, *folders: Path) -> None:
        """Make the user the owner of folders, with all that is in them.

        What is the user's already is left alone, and a folder comes after what is in it: programs
        of the user could put a link into its place meanwhile, as long as they can write above it.
        """
        if self.user is None:
            return
        for folder in folders:
            if folder.lstat().st_uid == self.user.uid:
                continue
            below = (
                os.path.join(parent, name)
                for parent, inner, files in os.walk(folder, topdown=False)
                for name in (*inner, *files)
            )
            for path in (*below, str(folder)):
                os.chown(path, self.user.uid, self.user.gid, follow_symlinks=False)
