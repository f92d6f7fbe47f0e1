"""What an evaluation has left: its JSON report and conversations, or why it has none."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy.orm import Session

from osmosis_ai.secret import Redactor

from ..database.models import Run
from ..vault.cipher import Vault
from ..vault.records import resolve
from .run_figures import metrics_of
from .run_folder import RunFolder
from .tail import open_written

REPORT_BYTES = 512 * 1024 * 1024
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


@dataclass(frozen=True, slots=True)
class ReportedOutcome:
    """A report, and what it says."""

    report: dict[str, Any]
    metrics: dict[str, Any]
    halted: str
    """What ended the evaluation before its end; empty for nothing."""


def read_outcome(path: Path, clean: Callable[[str], str]) -> ReportedOutcome | None:
    """Return what the file of a report holds; None where there is none.

    Raises:
        ReportProblem: for one that is too large, or no report of this version.
    """
    from pytest_osmosis.reports.json_models import Report

    try:
        with open_written(path) as file:
            if os.fstat(file.fileno()).st_size > REPORT_BYTES:
                raise ReportProblem("the report is larger than the platform takes")
            found = _without_surrogates(clean(file.read(REPORT_BYTES).decode("utf-8")))
        report = Report.model_validate_json(found)
        metrics = metrics_of(report)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):  # no UTF-8, no JSON, not the models', contradictory
        raise ReportProblem("the report is not one of this version") from None
    return ReportedOutcome(json.loads(found), metrics, report.summary.halted or "")


def _without_surrogates(text: str) -> bytes:
    """Return the JSON with `?` for each half of a character, which no database or answer holds.

    A model's text may have them, and our reports keep them as escapes.
    """
    return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")


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


_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is no conversation: it and what follows it is left out."""
_SUITE = re.compile(rb'^(\{"suite": ?)"\.\./')
"""The name of the evaluation begins with the path of its dataset, from the work tree."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """A file of conversations, a line of JSON for each run of a row; read once."""

    file: BinaryIO
    redact: Redactor = field(repr=False)

    @property
    def size(self) -> int:
        """Its bytes."""
        return os.fstat(self.file.fileno()).st_size

    def lines(self) -> Iterator[bytes]:
        """Yield the lines, and close the file."""
        with self.file:
            while (line := self.file.readline(_LINE_BYTES)) and len(line) < _LINE_BYTES:
                text = _SUITE.sub(rb'\1"', line, count=1).decode("utf-8", "replace")
                yield self.redact(text).encode("utf-8", "replace")


def open_conversations(
    session: Session, vault: Vault, data: Path, run: Run
) -> Conversations | None:
    """Return the conversations of a run; None where there are none, or not any more."""
    from pytest_osmosis.reports.saved_conversations import beside

    try:
        file = open_written(beside(RunFolder.of_run(data, run.id).report))
    except FileNotFoundError:
        return None
    names = run.submission.get("secrets", {}).get("required", [])
    secrets, _ = resolve(session, vault, run.workspace_id, run.creator_id, names)
    return Conversations(file, Redactor(secrets))
