"""Git as the platform runs it: nothing of a repository starts a program or leads elsewhere.

Every command is a child process of the executor, with a time limit, a limit on the size of files,
and an end when the run is stopped.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from osmosis_ai.platform.git_command import command, complaint, environment
from osmosis_executors.job import Executor, Job, JobLimits, own_path, wait_for_end

_SETTINGS = (
    ("core.symlinks", "false"),  # a symlink becomes a file that holds its target
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.unpackLimit", "1"),  # one file of objects, which the limit on files' sizes holds
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("filter.lfs.smudge", ""),
    ("filter.lfs.process", ""),
    ("filter.lfs.required", "false"),
)
_OUTPUT = "git-output"
_ERRORS = "git-errors"
_FILE_TOO_LARGE = 128 + signal.SIGXFSZ
_TOO_MUCH_FETCHED = "invalid index-pack output"
"""What `git fetch` says where its index-pack was ended by that signal."""


class GitProblem(Exception):
    """What git could not do, in a sentence without credentials."""


@dataclass(frozen=True, slots=True)
class GitProgram:
    """Runs commands of git in a folder."""

    executor: Executor
    room: Path
    """The folder for their output."""
    time_s: float
    """For each command."""
    file_bytes: int
    check: Callable[[], None]
    """Raises where the run is not to continue."""
    clock: Callable[[], float] = time.monotonic

    def run(self, folder: Path, *words: str, protocols: str = "", file_bytes: int = 0) -> str:
        """Run a command and return what it prints.

        Raises:
            GitProblem: where it fails, takes too long, or writes too much.
            Exception: what `check` raises.
        """
        output, errors = self.room / _OUTPUT, self.room / _ERRORS
        for path in (output, errors):
            path.unlink(missing_ok=True)
        limits = replace(JobLimits(), file_bytes=file_bytes or self.file_bytes)
        variables = {**environment(_SETTINGS, protocols), "PATH": own_path()}
        job = Job(command(*words), folder, variables, output, errors, limits=limits, grace_s=1.0)
        running = self.executor.start(job)
        status = wait_for_end(
            running, self.check, time_s=self.time_s, grace_s=job.grace_s, clock=self.clock
        )
        if status is None:
            raise GitProblem(f"`git {words[0]}` took longer than {self.time_s:g} s")
        if status:
            printed = errors.read_text("utf-8", "replace")
            raise GitProblem(_sentence(words[0], status, printed, file_bytes or self.file_bytes))
        return output.read_text("utf-8", "surrogateescape")


def _sentence(name: str, status: int, printed: str, file_bytes: int) -> str:
    if status == _FILE_TOO_LARGE or _TOO_MUCH_FETCHED in printed:
        return f"`git {name}` was ended: it wrote more than {file_bytes:,} bytes into a file"
    return f"`git {name}` failed: {complaint(printed) or f'exit status {status}'}"
