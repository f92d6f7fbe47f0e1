"""The runs that one process makes, on disk as they end.

Each process of a session has a file of its own for each suite, so that a line is never mixed with
another's. What has ended is written at once: a process that is killed has lost nothing of it. What
is about to be reported is on disk before pytest hears of it. When that can no longer be done, no
further run is started: what is spent must be kept. Knows nothing of pytest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ..run_result import NO_JUDGEMENT, RolloutRecord, RunId, RunResult
from .group_sync import AppendFile, GroupSync
from .journal import FILE, worker_file
from .run_lines import Place, record_of, result_line, run_lines, said_in, verify_checksum

if TYPE_CHECKING:
    from .replay import KeptRun, Replay

REPORTING = "main"
"""The process that reports, whose runs are in the journal itself."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where the processes of a session keep the runs of a suite."""

    folder: str
    session: int
    has_unscored: bool = False
    """Whether earlier sessions left runs there that lack nothing but what a judge would say."""

    def file_of(self, process: str) -> Path:
        """Return where a process keeps its runs."""
        folder = Path(self.folder)
        return folder / FILE if process == REPORTING else worker_file(folder, self.session, process)


class RunLog:
    """The files of one process, one a suite; each is made when its first run ends."""

    def __init__(
        self, process: str = REPORTING, *, root: Path, on_failure: Callable[[str], None]
    ) -> None:
        """`root` is the project's; `on_failure` is called once, when nothing more can be kept."""
        self._process = process
        self._root = root
        self._on_failure = on_failure
        self._sync = GroupSync(on_failure=self._failed)
        self.has_unscored = False
        """Whether earlier sessions left runs that lack nothing but what a judge would say."""
        self._folders: dict[str, RunFolder] = {}
        self._paths: dict[str, Path] = {}
        self._files: dict[str, AppendFile] = {}
        self._opening = threading.Lock()
        self._kept: dict[RunId, tuple[int, RunResult]] = {}
        """Ticket and result of runs whose report is still to come."""
        self._places: dict[RunId, Place] = {}
        self._reading: dict[Path, BinaryIO] = {}
        self._earlier: dict[str, Replay] = {}
        """What sessions before this one have left, once asked for."""

    def begin(self, suite: str, there: RunFolder) -> None:
        """Keep the runs of a suite there."""
        self._folders[suite], self._paths[suite] = there, there.file_of(self._process)
        self.has_unscored = self.has_unscored or there.has_unscored

    def keep(
        self, run: RunId, record: RolloutRecord, lines: bytes | None = None
    ) -> tuple[int, int]:
        """Write a run that has ended, by its lines where these are made already.

        Return its place in the file: offset and size. From any thread.
        """
        lines = lines or run_lines(record)
        ticket, offset = self.write(run.suite, lines)
        self._kept[run] = ticket, record.result
        if run.suite in self._paths:
            self._places[run] = Place(self._paths[run.suite], offset, len(lines))
        return offset, len(lines)

    def note(self, run: RunId, worker: str, offset: int, size: int) -> None:
        """Note where a worker has written a run."""
        if (there := self._folders.get(run.suite)) is not None:
            self._places[run] = Place(there.file_of(worker), offset, size)

    def report(self, run: RunId, result: RunResult) -> None:
        """Return once a run that is about to be reported is on disk.

        What is reported may differ from how the run ended: a hook changed it, or the asserts of a
        test have decided. Then that is written as well.
        """
        if result.cached:
            return
        ticket, kept = self._kept.pop(run, (0, None))
        if kept is not result:
            ticket, _ = self.write(run.suite, result_line(result))
        self._sync.wait(ticket)

    def write(self, suite: str, lines: bytes) -> tuple[int, int]:
        """Append lines to the file of a suite, if there is one; return ticket and offset."""
        file = self._files.get(suite)
        if file is None:
            file = self._opened(suite)
        return (0, 0) if file is None else self._sync.write(file, lines)

    def _opened(self, suite: str) -> AppendFile | None:
        path = self._paths.get(suite)
        if path is None:
            return None
        try:
            with self._opening:
                if suite not in self._files:
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    self._files[suite] = AppendFile(path)
                return self._files[suite]
        except OSError as error:
            self._sync.fail(path, error)
            return None

    # ---- what was said

    def record(self, run: RunId) -> RolloutRecord | None:
        """Return a run of this session, or of an earlier one; None when it was not kept."""
        lines = self._read(run)
        return None if lines is None else record_of(lines)

    def is_whole(self, run: RunId) -> bool:
        """Return whether a run of this session is kept with its conversation as it was."""
        lines = self._read(run) if run in self._places else None
        told = None if lines is None else verify_checksum(lines[: lines.find(b"\n") + 1])
        return told is not None and told["whole"]

    def read_conversation(self, run: RunId) -> bytes | None:
        """Return what was said in a run as it is written: the fields of a JSON object."""
        lines = self._read(run)
        return None if lines is None else said_in(lines)

    def unscored(self, run: RunId) -> RolloutRecord | None:
        """Return a run that an earlier session has left without what a judge would say."""
        there = self._folders.get(run.suite)
        kept = self._earlier_run(run) if there is not None and there.has_unscored else None
        if kept is None or kept.result.error_kind not in NO_JUDGEMENT:
            return None
        record = kept.recorded()
        return record and replace(record, result=replace(kept.result, suite=run.suite))

    def _read(self, run: RunId) -> bytes | None:
        """Return the lines of a run; each file is opened once."""
        place = self._places.get(run)
        if place is None:
            kept = self._earlier_run(run)
            if kept is None:
                return None
            place = kept.place
        with self._opening:
            file = self._reading.get(place.path)
            if file is None:
                try:
                    file = self._reading[place.path] = place.path.open("rb")
                except FileNotFoundError:  # it was kept until its session ended, or was removed
                    return None
            file.seek(place.offset)
            return file.read(place.size)

    def _earlier_run(self, run: RunId) -> KeptRun | None:
        there = self._folders.get(run.suite)
        if there is None or there.session == 1:
            return None
        if run.suite not in self._earlier:
            from .replay import replay

            self._earlier[run.suite] = replay(Path(there.folder))
        return self._earlier[run.suite].runs.get((run.row_index, run.run_index))

    # ---- the end

    def flush(self) -> None:
        """Return once everything is on disk."""
        self._sync.flush()

    def fail(self, path: Path, error: OSError) -> None:
        """Write nothing again, since a file cannot be used."""
        self._sync.fail(path, error)

    def _failed(self, path: Path, error: OSError) -> None:
        shown = path.relative_to(self._root) if path.is_relative_to(self._root) else path
        self._on_failure(
            f"cannot write the journal {shown}: {error.strerror or error}; nothing more is "
            "started, so that nothing is spent that is not kept"
        )

    def close(self) -> None:
        """Put what was written on disk, and close. Idempotent."""
        self._sync.close()
        for files in (self._files, self._reading):
            while files:
                files.popitem()[1].close()
