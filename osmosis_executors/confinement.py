"""What holds a program that runs code of users: limits, another user, a command around it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .job import Job, JobLimits, RunAs

NAME = "{name}"
"""A word of the wrapper that holds it is repeated for each variable of the program."""
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
        return sorted({*found} - {NAME, *PLACES})

    @property
    def is_apart(self) -> bool:
        """Whether the programs may not see what this process sees."""
        return self.user is not None or bool(self.wrapper)

    def applied(self, job: Job, places: Mapping[str, Path]) -> Job:
        """Return the job so held; `{room}` and the like in the wrapper are these places."""
        named = {f"{{{name}}}": str(path) for name, path in places.items()}
        words = tuple(self._words(job, {**named, "{folder}": str(job.folder)}))
        return replace(job, limits=self.limits, user=self.user, wrapper=words)

    def _words(self, job: Job, places: Mapping[str, str]) -> Iterator[str]:
        for word in self.wrapper:
            text = word
            for name, path in places.items():
                text = text.replace(name, path)
            if NAME in text:
                yield from (text.replace(NAME, name) for name in sorted(job.environment))
            else:
                yield text

    def let_read(self, folder: Path) -> None:
        """Let the user's group list a folder, and read the files in it, which stay ours."""
        if self.user is None:
            return
        for path, mode in ((folder, 0o750), *((file, 0o640) for file in folder.iterdir())):
            os.chown(path, -1, self.user.gid)
            path.chmod(mode)

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
