"""The executor of this machine: each program is a child of a small supervisor process.

The supervisor ends the program when it is stopped, and also when this process dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO

from .job import EvaluationJob, Job, own_path

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_STOP_SLACK_S = 10.0


class LocalExecutor:
    """Runs programs as child processes."""

    def start(self, job: Job) -> LocalRun:
        """Start a program; raise OSError where none can be."""
        with contextlib.ExitStack() as files:
            output = files.enter_context(_appending(job.output))
            errors = files.enter_context(_appending(job.errors)) if job.errors else output
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SUPERVISOR)],
                cwd=job.folder,
                env={"PATH": own_path()},  # and of a command around the program
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # Ctrl-C of the platform is not theirs
            )
        started = LocalRun(process, job.grace_s)
        started.send(_order(job))
        return started

    def evaluate(self, evaluation: EvaluationJob) -> LocalRun:
        """Start an evaluation as one program."""
        return self.start(evaluation.job)


class LocalRun:
    """A program that was started on this machine."""

    def __init__(self, process: subprocess.Popen[bytes], grace_s: float) -> None:
        self._process = process
        self._grace_s = grace_s

    @property
    def pid(self) -> int:
        """The id of the supervisor's process."""
        return self._process.pid

    def send(self, words: bytes) -> None:
        """Say what to run; the pipe stays open as long as it is to continue."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has died: its exit status says so
            self._process.stdin.write(words)
            self._process.stdin.flush()

    def wait(self, timeout_s: float) -> int | None:
        """Return the exit status, 128 and more for a signal's; None while it runs."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        self.stop()
        return 128 - status if status < 0 else status

    def stop(self) -> None:
        """Ask it to end, and end it when it has not within its grace; do not wait. Idempotent."""
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return
        self.send(b"stop\n")
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def __enter__(self) -> LocalRun:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        if self.wait(self._grace_s + _STOP_SLACK_S) is None:
            self._process.kill()  # its child is ended by the kernel
            self._process.wait()


def _appending(path: Path) -> IO[bytes]:
    return open(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "wb")


def _order(job: Job) -> bytes:
    order = {
        "words": [*job.words],
        "wrapper": [*job.wrapper],
        "folder": str(job.folder),
        "environment": dict(job.environment),
        "lock": None if job.lock is None else str(job.lock),
        "limits": asdict(job.limits),
        "grace_s": job.grace_s,
        "orphan_grace_s": job.orphan_grace_s,
        "user": None if job.user is None else asdict(job.user),
    }
    return json.dumps(order).encode("ascii") + b"\n"
