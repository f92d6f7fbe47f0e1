"""What an evaluation has left: its JSON report and conversations, or why it has none."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from osmosis_executors.job import MIB, JobLimits
from pytest_osmosis.reports.saved_conversations import beside

from ..database.models import Run
from ..limited import run_limited
from . import report_taking
from .run_folder import RunFolder
from .tail import new_file, open_written

_TIME_S = 120.0
_LIMITS = JobLimits(file_bytes=256 * MIB, memory_bytes=2048 * MIB)
_END_BYTES = 64 * 1024
"""Of the output, in which the mistake is looked for."""
_USAGE_ERROR = re.compile(r"^ERROR: (.+)(?:\nTraceback .*((?:\n.+)*))?", re.MULTILINE)
"""What pytest refuses, and the lines of the traceback of the user's code below it."""
_INSTEAD = {
    "export it, or name another variable with --osmosis-api-key-env": (
        "set it with `osmosis secret set`, and name it in [secrets]"
    ),
    r"give --osmosis-api-key-env \w+ to send it": "give its address with https://",
}
"""What a submitted run does in place of what a command line can."""
_SIGNALS: dict[int, str] = {
    signal.SIGXCPU: "a process of it used more processor time than the platform allows",
    signal.SIGXFSZ: "a process of it wrote a larger file than the platform allows",
    signal.SIGKILL: "it was killed, as the kernel does where the memory ends",
}


class ReportProblem(Exception):
    """A report that is not taken; a sentence."""


class ReportTooLarge(ReportProblem):
    """One that takes too much to read."""


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """A report, and what it says."""

    report: dict[str, Any] | None
    """None: it is too large to be kept."""
    metrics: dict[str, Any]
    halted: str
    """What ended the evaluation before its end; empty for nothing."""


def read_outcome(run_folder: RunFolder, clean: Callable[[str], str]) -> ReportedOutcome | None:
    """Return what the report of a run holds; None where there is none. A child reads it.

    Raises:
        ReportProblem: for one that is too large, or no report of this version.
    """
    taken = run_folder.folder / "report-taken"
    taken.unlink(missing_ok=True)
    words = ["-m", report_taking.__name__, str(run_folder.report), str(taken)]
    output = run_folder.folder / "report-output"
    output.unlink(missing_ok=True)
    try:
        status = run_limited(words, run_folder.folder, output, time_s=_TIME_S, limits=_LIMITS)
        if status == report_taking.ABSENT:
            return None
        if status == report_taking.NO_REPORT:
            raise ReportProblem("the report is not one of this version")
        if status != report_taking.TAKEN:
            raise ReportTooLarge("the report is too large to be read; the journal has the figures")
        found = json.loads(clean(taken.read_text("utf-8")))
    finally:
        for path in (taken, output):
            path.unlink(missing_ok=True)
    return ReportedOutcome(found.get("report"), found["metrics"], found["halted"])


def last_mistake(output: Path) -> str | None:
    """Return what pytest said last of a mistake, with the exception that made it one."""
    with output.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
        found = _USAGE_ERROR.findall(file.read().decode("utf-8", "replace"))
    if not found:
        return None
    mistake, lines = found[-1]
    for message, instead in _INSTEAD.items():
        mistake = re.sub(message, instead, mistake)
    exception = lines.rpartition("\n")[2]
    return f"{mistake}: {exception}" if exception else mistake


def exit_sentence(status: int) -> str:
    """Return why an evaluation ended with a status that is not one of its results."""
    message = _SIGNALS.get(status - 128)
    what = f"the evaluation ended with exit status {status}"
    return f"{what}: {message}" if message else f"{what}; the log has its output"


_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is no conversation: it and what follows it is left out."""
_SUITE = re.compile(rb'^(\{"suite": ?)"\.\./')
"""The name of the evaluation begins with the path of its dataset, from the work tree."""


def take_conversations(run_folder: RunFolder, redact: Callable[[str], str]) -> None:
    """Take the file of conversations, a line of JSON for each run of a row, masked."""
    written = beside(run_folder.report)
    run_folder.conversations.unlink(missing_ok=True)
    try:
        source = open_written(written)
    except FileNotFoundError:
        return
    with source, new_file(run_folder.conversations) as file:
        while (line := source.readline(_LINE_BYTES)) and len(line) < _LINE_BYTES:
            text = _SUITE.sub(rb'\1"', line, count=1).decode("utf-8", "replace")
            file.write(redact(text).encode("utf-8", "replace"))
    written.unlink(missing_ok=True)


def open_conversations(data: Path, run: Run) -> BinaryIO | None:
    """Return the conversations of a run; None where there are none, or not any more."""
    try:
        return open_written(RunFolder.of_run(data, run.id).conversations)
    except FileNotFoundError:
        return None
