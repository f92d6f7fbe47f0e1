"""A journal that is read: what was asked, and every run as the sessions left it.

A torn line at the end of a file is cut; a damaged one before the end is refused. Without its head,
the header and the first session with its plan, a journal says nothing of its runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmosis_ai.models.errors import FATAL_KINDS

from ..run_result import RolloutRecord, RunResult, may_differ
from .journal import FILE, FORMAT, worker_files
from .run_lines import Place, RowRun, read_record, result_of, verify_checksum

if TYPE_CHECKING:
    from ..verdicts import EvalVerdict


class JournalError(Exception):
    """A journal that cannot be used; `str()` is the sentence for the user.

    Exception
      JournalError      a line before the end is damaged
        UnknownRuns     nothing says what its runs are of
          OtherFormat   another version of this project wrote it
    """


class UnknownRuns(JournalError):
    """A journal that does not say what its runs are of; `reason` says why without its place."""

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class OtherFormat(UnknownRuns):
    """A journal that another version wrote."""

    def __init__(self, path: Path, version: str) -> None:
        super().__init__(path, f"{version} version of pytest-osmosis wrote the journal")


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run as a session left it, and what decides whether it must be run again."""

    result: RunResult
    session: int
    """Number of the session that wrote it, from 1."""
    place: Place
    """Of its lines; of a result that was written alone, those of what was said."""
    whole: bool
    """Whether its conversation is there as it was."""

    @property
    def is_done(self) -> bool:
        """Whether it has scores, or an error that repeating it cannot remove."""
        result = self.result
        return not may_differ(result.error_type, result.error_kind, fatal=result.fatal)

    def recorded(self) -> RolloutRecord | None:
        """Return it with what was said; None where that is not there as it was, or is damaged."""
        return read_record(self.place) if self.whole else None

    def is_repeated_by(self, later: KeptRun) -> bool:
        """Return whether a later session has run the same run again, and not scored it again."""
        began = self.result.started_at  # 0.0: it was lost
        return self.session < later.session and not (began and began == later.result.started_at)


@dataclass(slots=True)
class Replay:
    """What a journal holds."""

    header: Mapping[str, Any]
    sessions: list[Mapping[str, Any]] = field(default_factory=list)
    runs: dict[RowRun, KeptRun] = field(default_factory=dict)
    repeated: list[tuple[RowRun, KeptRun]] = field(default_factory=list)
    """Runs as they had ended before a later session repeated them."""
    last_session: int = 0
    """The number of the last session, also of one whose line is lost and whose workers ran."""
    torn: dict[Path, int] = field(default_factory=dict)
    """Bytes up to the end of the last whole line, of each file that has more."""
    dropped: int = 0
    """Torn lines at the ends of files."""
    gates: Sequence[Mapping[str, Any]] = ()
    """The results of the gates that decided on these runs, as `verdict_line` has them."""
    verdict: EvalVerdict | None = None
    """What the last session made of these runs; None before it has."""
    git: Mapping[str, Any] = field(default_factory=dict)
    """The `commit` and `branch` of the last session, where they are known."""
    clusters: Mapping[str, Any] | None = None
    """By which `column` rows belonged together in the last session, and the `rows` of each value.

    Empty where they did not; None where no session has said so.
    """
    ended: bool = False
    """Whether the last session was not cut short."""

    def is_done(self, run: KeptRun) -> bool:
        """Return whether a run has scores, or an error that repeating it cannot remove.

        Where no run had an answer, a refusal may be one of every row.
        """
        is_refused = run.result.error_kind in FATAL_KINDS and run.result.error_type == "provider"
        return run.is_done and not (is_refused and not self._has_answer)

    @property
    def _has_answer(self) -> bool:
        runs = (run.result for run in self.runs.values())
        return any(run.llm_calls or run.success for run in runs)

    @property
    def plan(self) -> Mapping[str, Any]:
        """The rows and runs that were last asked for."""
        return next(session["plan"] for session in reversed(self.sessions) if session["plan"])

    def reopen(self) -> None:
        """Forget what was decided."""
        self.gates, self.verdict = (), None

    def take(self, run: KeptRun, *, alone: bool) -> None:
        """Add a run; the sessions come in their order, and in each the workers before the rest.

        `alone`: it is a result without what was said, which stays where it is.
        """
        self.reopen()  # what was decided knew nothing of it
        key = run.result.row_index, run.result.run_index
        before = self.runs.get(key)
        if before is not None and before.is_repeated_by(run):
            self.repeated.append((key, before))
        elif before is not None and alone:
            if run.result.error_type == "worker_lost":
                return  # it had ended, and its worker was lost before that was heard
            run = replace(run, place=before.place, whole=before.whole)
        self.runs[key] = run


def replay(folder: Path) -> Replay:
    """Read a journal from end to end.

    Raises:
        JournalError: when a line before the last one is damaged, or the head is.
        OSError: when it cannot be read.
    """
    found = Replay(read_header(folder))
    by_session: dict[int, list[Path]] = {}
    for path in worker_files(folder):
        by_session.setdefault(int(path.name.partition("-")[0]), []).append(path)
    for place, entry in _lines(folder / FILE, found):
        if "session" in entry:
            found.sessions.append(entry["session"])
            _begin_session(found, entry["session"]["number"], by_session)
        elif "gates" in entry:
            found.gates, found.verdict = entry["gates"], entry["verdict"]
            found.git, found.clusters = entry.get("git") or {}, entry.get("clusters")
        elif "session_ended" in entry:
            found.ended = True
        elif "run" in entry:
            _take(found, place, entry)
    if by_session:
        _begin_session(found, max(by_session), by_session)
    return found


def _begin_session(found: Replay, number: int, by_session: dict[int, list[Path]]) -> None:
    """Take the runs of a session's workers, and before them those of sessions without a line."""
    found.ended = False
    found.reopen()
    for found.last_session in sorted(each for each in by_session if each <= number):
        for path in by_session.pop(found.last_session):
            for place, entry in _lines(path, found):
                _take(found, place, entry)
    found.last_session = number


def _take(found: Replay, place: Place, entry: Mapping[str, Any]) -> None:
    result = result_of(entry, found.header["info"]["name"])
    run = KeptRun(result, found.last_session, place, whole=entry["whole"])
    found.take(run, alone=not entry["said"])


def _lines(path: Path, found: Replay) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the objects of a file's lines, with their places; note how its end is torn.

    What was said in runs is passed over.
    """
    number = damaged = dropped = whole = 0
    with path.open("rb") as file:
        written = os.fstat(file.fileno()).st_size
        for line in iter(file.readline, b""):
            number += 1
            entry = verify_checksum(line)
            if entry is None:
                damaged = damaged or number
                dropped += 1
                continue
            if damaged:
                where = f"{path}:{damaged}"
                raise JournalError(f"{where}: this line is damaged, and others follow it")
            said = entry.get("said", 0)
            begin, end = whole, whole + len(line) + said
            if end > written:
                dropped += 1
                break
            number += bool(said)
            file.seek(said, os.SEEK_CUR)
            whole = end
            yield Place(path, begin, end - begin), entry
    if dropped:
        found.torn[path] = whole
        found.dropped += dropped


def read_header(folder: Path) -> Mapping[str, Any]:
    """The first line alone; raises like `replay`."""
    path = folder / FILE
    with path.open("rb") as file:
        header, first = (verify_checksum(file.readline()) for _ in range(2))
    if header is not None and (written := header.get("osmosis_journal", FORMAT)) != FORMAT:
        version = "a newer" if written > FORMAT else "an earlier"
        raise OtherFormat(path, version)
    if header is None or "osmosis_journal" not in header or "session" not in (first or ()):
        raise UnknownRuns(path, "the first lines of the journal are lost")
    return header


def cut_torn(kept: Replay) -> None:
    """Take off what torn writes left behind the last whole lines."""
    for path, size in kept.torn.items():
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
