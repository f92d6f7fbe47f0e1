"""What is to run, what runs it, and what is running: the interface of every executor."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What a program's processes may use, each of them; None is no limit."""

    file_bytes: int | None = 1024 * MIB
    """Of each file that it writes."""
    memory_bytes: int | None = None
    """Of address space."""
    open_files: int | None = 4096
    cpu_s: int | None = None
    """Of processor time."""
    processes: int | None = None
    """Of their user altogether, threads counted."""


@dataclass(frozen=True, slots=True)
class RunAs:
    """A user of this machine that a program runs as; only root may choose one."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Job:
    """A program with its whole environment; nothing else reaches it."""

    words: Sequence[str]
    """The program and its arguments: no secret, as every user of the machine can read them."""
    folder: Path
    """Where it is started."""
    environment: Mapping[str, str] = field(repr=False)
    output: Path
    """The file that its output is added to."""
    errors: Path | None = None
    """The same for its stderr, where that is to be apart."""
    lock: Path | None = None
    """A file that is locked until its last process has ended: it starts once that is free."""
    limits: JobLimits = JobLimits()
    grace_s: float = 4.0
    """How long it may take to end after it was asked to."""
    orphan_grace_s: float = 0.5
    """The same once the process that started it has died: what is finished is written, and nothing
    new is paid for."""
    user: RunAs | None = None
    """None: the user of this process."""
    wrapper: Sequence[str] = ()
    """A command that runs the words after its own, the launcher of the program; started in `/`,
    without a variable of the program."""


def own_path() -> str:
    """Return the PATH of this process, without what leads from the folder of a program."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(filter(os.path.isabs, folders))


PYTEST = ("-m", "pytest")


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """An evaluation by the plugin; an executor runs it whole, or spreads it over machines.

    However it runs, its options say where the journal and the report go, `job.output` takes what it
    prints, and its exit status is pytest's.
    """

    job: Job
    """As one machine runs it: an interpreter, `-m pytest`, and the options."""
    secrets: Sequence[str] = ()
    """The names of the variables in the job's environment that hold secrets."""


class Running(Protocol):
    """A program that was started."""

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, 128 and more for a signal's; None while it runs."""

    def stop(self) -> None:
        """Ask it to end, and end it when it has not within its grace; do not wait. Idempotent."""


class Executor(Protocol):
    """What runs programs and evaluations."""

    def start(self, job: Job) -> Running:
        """Start a program on this machine; raise OSError where none can be."""

    def evaluate(self, evaluation: EvaluationJob) -> Running:
        """Start an evaluation; raise OSError where none can be."""


POLL_S = 0.25
ENDING_S = 10.0
"""How long what is killed may take to end."""


def wait_for_end(
    running: Running,
    check: Callable[[], None],
    *,
    time_s: float | None = None,
    grace_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> int | None:
    """Return the exit status; None for a program that was stopped because its time was over.

    `check` is called now and then; where it raises, the program is stopped. One that was stopped
    is given its grace to end, so that nothing of it is left when this returns.
    """
    end = None if time_s is None else clock() + time_s
    try:
        while (status := running.wait(POLL_S)) is None:
            check()
            if end is not None and clock() > end:
                return None
        return status
    finally:
        running.stop()
        running.wait(grace_s + ENDING_S)
