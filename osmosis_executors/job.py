"""A program to run, what runs it, and one that is running: the interface of every executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Running(Protocol):
    """A program that was started."""

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, 128 and more for a signal's; None while it runs."""

    def stop(self) -> None:
        """Ask it to end, and end it when it has not within its grace; do not wait. Idempotent."""


class Executor(Protocol):
    """What runs programs."""

    def start(self, job: Job) -> Running:
        """Start a program; raise OSError where none can be."""
