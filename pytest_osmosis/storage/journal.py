"""The journal of one evaluation: what was asked, and every run that has ended, a line each.

The first line is the header; a line for every session that worked on the evaluation follows, one
for every run that ended in it, and one that says that the session was not cut short. Of several
lines for one run the last one counts. A torn line at the end is what an interrupted write leaves,
and is cut; a damaged one before the end is refused.

Makes and reads the file and its lines. `group_commit` says when the line of a run reaches the disk,
and `run_store` who waits for that: `report` does, before pytest hears of the run, `keep` does not.
What makes an evaluation the same is in `fingerprint`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..run_result import may_differ
from .atomic_write import write_whole
from .excerpt import encode
from .group_commit import AppendFile
from .lines import RowRun, add_checksum, verify_checksum

FORMAT = 1
FILE = "journal.jsonl"


class JournalError(Exception):
    """A journal that cannot be used; `str()` is the sentence for the user.

    Exception
      JournalError      it is damaged, or no journal
        NewerJournal    a later version of this project wrote it
    """


class NewerJournal(JournalError):
    """A journal that a later version wrote."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A run's line in the journal, and what decides whether it must be run again."""

    offset: int
    length: int
    error_type: str | None
    passed: bool
    error_kind: str | None = None
    fatal: bool = False
    session: int = 0
    """Number of the session that wrote it, from 1."""
    started_at: float = 0.0
    """See `RunResult`; 0.0: it was lost."""

    @property
    def is_done(self) -> bool:
        """Whether it has scores, or an error that repeating it cannot remove."""
        return not may_differ(self.error_type, self.error_kind, fatal=self.fatal)

    def is_repeated_by(self, later: JournalEntry) -> bool:
        """Return whether a later session has run the same run again, and not scored it again."""
        is_same = self.started_at and self.started_at == later.started_at
        return self.session < later.session and not is_same


@dataclass(slots=True)
class Replay:
    """What a journal holds."""

    header: Mapping[str, Any]
    sessions: list[Mapping[str, Any]] = field(default_factory=list)
    runs: dict[RowRun, JournalEntry] = field(default_factory=dict)
    repeated: list[tuple[RowRun, JournalEntry]] = field(default_factory=list)
    """Runs as they had ended before a later session repeated them."""
    ended_in_last_session: set[RowRun] = field(default_factory=set)
    """Runs that the last session has written itself."""
    size: int = 0
    """Bytes up to the end of the last whole line."""
    dropped: int = 0
    """Torn lines at the end."""
    ended: bool = False
    """Whether the last session was not cut short."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """The rows and runs that were last asked for."""
        return next(session["plan"] for session in reversed(self.sessions) if session["plan"])


def create(path: Path, header: Mapping[str, Any], session: Mapping[str, Any]) -> None:
    """Make a journal with its first two lines, or none at all."""
    lines = add_checksum(encode({"osmosis_journal": FORMAT, **header})) + session_line(session)
    write_whole(path, lines, mode=0o600)


def session_line(session: Mapping[str, Any]) -> bytes:
    """The line that begins a session."""
    return add_checksum(encode({"session": session}))


def end_line() -> bytes:
    """The line that ends a session that was not cut short."""
    return add_checksum(encode({"session_ended": True}))


def run_line(result: str, why: str) -> bytes:
    """The line of a run: its result as JSON, and the text that explains why it did not pass."""
    more = f',"why":{encode(why)}' if why else ""
    return add_checksum(f'{{"run":{result}{more}}}')


def replay(path: Path) -> Replay:
    """Read a journal from end to end, holding only where its runs are.

    Raises:
        JournalError: when a line before the last one is damaged.
        OSError: when it cannot be read.
    """
    with path.open("rb") as file:
        found = Replay(_header(path, file.readline()))
        found.size = file.tell()
        torn = 0
        for number, line in enumerate(file, 2):
            record = verify_checksum(line)
            if record is None:
                torn = torn or number
            elif torn:
                raise JournalError(f"{path}:{torn}: this line is damaged, and others follow it")
            else:
                _take(found, record, len(line))
                found.size += len(line)
            found.dropped += record is None
    return found


def _take(found: Replay, record: Mapping[str, Any], length: int) -> None:
    if "session" in record:
        found.sessions.append(record["session"])
        found.ended_in_last_session = set()
        found.ended = False
    elif "session_ended" in record:
        found.ended = True
    elif "run" in record:
        run = record["run"]
        key = run["row_index"], run["run_index"]
        entry = JournalEntry(
            found.size,
            length,
            run.get("error_type"),
            run.get("passed", False),
            run.get("error_kind"),
            run.get("fatal", False),
            len(found.sessions),
            run.get("started_at", 0.0),
        )
        before = found.runs.get(key)
        if before is not None and before.is_repeated_by(entry):
            found.repeated.append((key, before))
        found.runs[key] = entry
        if entry.is_done:
            found.ended_in_last_session.add(key)


def read_header(path: Path) -> Mapping[str, Any]:
    """The first line alone; raises like `replay`."""
    with path.open("rb") as file:
        return _header(path, file.readline())


def _header(path: Path, line: bytes) -> Mapping[str, Any]:
    header = verify_checksum(line)
    if header is None or "osmosis_journal" not in header:
        raise JournalError(f"{path}:1: this is not the first line of a journal")
    if header["osmosis_journal"] > FORMAT:
        raise NewerJournal(f"{path}: a newer version of pytest-osmosis wrote it")
    return header


def add(path: Path, lines: Iterable[bytes]) -> None:
    """Append lines, and return once they are on disk."""
    file = AppendFile(path)
    try:
        file.write(b"".join(lines))
        file.sync()
    finally:
        file.close()


def cut(path: Path, size: int) -> None:
    """Take off what a torn write left behind `size`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Reader:
    """Reads single runs of a journal; from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def run(self, entry: JournalEntry) -> tuple[dict[str, Any], str]:
        """A run's fields, and its explanation."""
        record = verify_checksum(os.pread(self._descriptor, entry.length, entry.offset))
        if record is None:
            raise JournalError(f"{self._path}: it was changed while it was in use")
        return record["run"], record.get("why", "")

    def close(self) -> None:
        """Give the descriptor back. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
