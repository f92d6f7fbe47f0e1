"""What an evaluation has left: its JSON report and conversations, or why it has none."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from osmosis_executors.job import MIB, JobLimits
from pytest_osmosis.reports.saved_conversations import beside

from ..database.models import Run
from ..limited import run_limited
from . import report_taking
from .run_folder import RunFolder
from .tail import copy_masked, open_written, remove

_TIME_S = 120.0
LIMITS = JobLimits(file_bytes=256 * MIB, memory_bytes=2048 * MIB)
"""Of a child that reads what a run has left."""
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


def read_outcome(
    run_folder: RunFolder, clean: Callable[[str], str], check: Callable[[], None]
) -> ReportedOutcome | None:
    """Return what the report of a run holds; None where there is none. A child reads it.

    Raises:
        ReportProblem: for one that is too large, or no report of this version.
        Exception: what `check` raises, which is called meanwhile.
    """
    taken = run_folder.folder / "report-taken"
    try:
        status, _ = run_limited(
            "-m",
            report_taking.__name__,
            run_folder.report,
            taken,
            folder=run_folder.folder,
            time_s=_TIME_S,
            limits=LIMITS,
            check=check,
        )
        if status == report_taking.ABSENT:
            return None
        if status == report_taking.NO_REPORT:
            raise ReportProblem("the report is not one of this version")
        if status != report_taking.TAKEN:
            raise ReportTooLarge("the report is too large to be read; the journal has the figures")
        found = _masked(taken.read_text("utf-8"), clean)
    finally:
        taken.unlink(missing_ok=True)
    return ReportedOutcome(found.get("report"), found["metrics"], found["halted"])


def _masked(text: str, clean: Callable[[str], str]) -> Any:
    """Return a document that is masked as a text, or else the texts in it."""
    try:
        return json.loads(clean(text))
    except ValueError:  # a secret is a number that the report has too
        return _texts_masked(json.loads(text), clean)


def _texts_masked(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_texts_masked(each, clean) for each in value]
    if isinstance(value, dict):
        return {clean(name): _texts_masked(each, clean) for name, each in value.items()}
    return value


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


_SUITE = re.compile(r'^(\{"suite": ?)"\.\./', re.MULTILINE)
"""The name of the evaluation begins with the path of its dataset, from the work tree."""


def take_conversations(run_folder: RunFolder, redact: Callable[[str], str]) -> None:
    """Take the file of conversations, a line of JSON for each run of a row, masked."""
    written = beside(run_folder.report)
    remove(run_folder.conversations)
    try:
        source = open_written(written)
    except FileNotFoundError:
        return
    with source:
        change = partial(_SUITE.sub, r'\1"')
        copy_masked(source, run_folder.conversations, lambda text: redact(change(text)))
    written.unlink(missing_ok=True)


def open_conversations(data: Path, run: Run) -> BinaryIO | None:
    """Return the conversations of a run; None where there are none, or not any more."""
    try:
        return open_written(RunFolder.of_run(data, run.id).conversations)
    except FileNotFoundError:
        return None
