"""Keeps every run that ends, and knows those that earlier sessions kept. One a session, in the
process that reports.

A run's line is appended as soon as the run has ended, and is on disk before pytest hears of the
run. When that can no longer be done, no further run is started: what is spent must be kept.
"""

from __future__ import annotations

import errno
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..run_result import CachedRun, RolloutRecord, RunId, RunResult, SuiteInfo
from ..spec import Keeping
from . import journal, run_directory
from .atomic_write import is_special
from .fingerprint import EvalFingerprint, RunPlan
from .group_commit import AppendFile, GroupCommit
from .journal import FILE, Reader
from .lines import RowRun, result_of
from .resume import Opened, open_folder
from .run_directory import InUse, NoLocks
from .transcripts import RunFolder, Transcripts

if TYPE_CHECKING:
    from filelock import FileLock

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@dataclass(slots=True)
class _Suite:
    folder: Path
    plan: RunPlan
    lock: FileLock | None
    reader: Reader | None = None
    """There when an earlier session has left runs."""
    file: AppendFile | None = None
    """There once the first run may end."""
    opened: Opened = field(init=False)
    repeated: list[RunResult] = field(default_factory=list)
    """Runs as earlier sessions left them that were, or are to be, run again."""
    unscored: dict[RowRun, RunResult] = field(default_factory=dict)
    """Runs that earlier sessions left without a score, and that have not been scored since."""


class RunStore:
    """The journals of the session's suites."""

    def __init__(
        self,
        keeping: Keeping,
        *,
        root: Path,
        answers: bool = True,
        transcribes: bool = False,
        on_failure: Callable[[str], None],
    ) -> None:
        """Keep runs below `root`; with `transcribes`, conversations even where no run is kept.

        `on_failure` is called once, with the reason, when nothing more can be kept.
        """
        self._keeping = keeping
        self._root = root
        self._runs = run_directory.runs_folder(root, keeping.run_dir)
        self._answers = answers
        self._suites: dict[str, _Suite] = {}
        self._locks: list[FileLock] = []
        self._ended: dict[RunId, tuple[int, RunResult, str]] = {}
        """Ticket, result and explanation of runs whose report is still to come."""
        self._on_failure = on_failure
        self._commit = GroupCommit(on_failure=self._failed)
        self.lines: list[str] = []
        """Lines for the user about what was opened."""
        self._transcribes = transcribes
        self._transcribed: dict[str, None] = {}
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._usual: set[str] = set()
        """Those of them that are left out of a quiet session."""

    # ---- at the start

    def open(self, identities: Sequence[EvalFingerprint]) -> None:
        """Find what is kept of these evaluations and decide what is to be done with it.

        Raises:
            ConfigurationError: when they cannot go on, or cannot be kept.
        """
        names = {
            identity.info.name: run_directory.name_for(identity.info, self._root)
            for identity in identities
        }
        every = list(names.values())
        for identity in identities:
            name = names[identity.info.name]
            if every.count(name) > 1:
                name = run_directory.marked(name, identity.info.name)
            with self._explained(self._runs / name):
                self._open(identity, self._runs / name)

    def _open(self, identity: EvalFingerprint, folder: Path) -> None:
        info = identity.info
        run_directory.make_private(folder.parent)
        kept = _Suite(folder, identity.plan, self._locked(folder))
        self._suites[info.name] = kept
        kept.opened = opened = open_folder(folder, identity, self._keeping)
        if opened.cached or opened.repeated or opened.unscored:
            kept.reader = Reader(folder / FILE)
        if info.marked and opened.cached:  # its test runs again, and needs what was said
            said = Transcripts(folder)
            for key in [key for key in opened.cached if not said.has_messages(key)]:
                opened.repeated.append(opened.cached.pop(key))
        if kept.reader is not None:
            read = kept.reader.run
            kept.repeated = [result_of(read(each)[0], info.name) for each in opened.repeated]
            kept.unscored = {
                key: result_of(read(each)[0], info.name) for key, each in opened.unscored.items()
            }
        resuming = [note for note in opened.notes if note.startswith("resuming")]
        line = ", ".join([f"osmosis: journal {self._shown(folder)}", *resuming])
        self.lines.append(line)
        if not resuming:
            self._usual.add(line)
        self.lines += [f"osmosis: {note}" for note in opened.notes if note not in resuming]

    def guard_report(self, path: Path) -> None:
        """Lock this report against other sessions; raises like `open`."""
        if is_special(path):
            return
        mark = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        try:
            run_directory.make_private(self._runs)
            self._locks.append(run_directory.lock(self._runs / f"report-{mark}"))
        except InUse as error:
            raise ConfigurationError(
                f"--osmosis-output {str(path)!r} is {error}: wait for it, or name another file"
            ) from None
        except (NoLocks, OSError):
            return  # what the journals meet as well, and tell

    def begin(self, suites: Iterable[str]) -> None:
        """Open the journals of suites whose runs are about to start; raises like `open`."""
        for name in suites:
            kept = self._suites.get(name)
            if kept is not None and kept.file is None:
                with self._explained(kept.folder):
                    kept.opened.begin()
                    kept.file = AppendFile(kept.folder / FILE)

    @contextmanager
    def _explained(self, folder: Path) -> Iterator[None]:
        """Raise what prevents an evaluation from being kept as a sentence for users."""
        try:
            yield
        except InUse as error:
            raise ConfigurationError(
                f"{self._shown(folder)} is {error}: wait for it, or keep this evaluation "
                "elsewhere with --osmosis-run-dir PATH"
            ) from None
        except ConfigurationError:
            self._forget(folder)
            raise
        except OSError as error:
            self._forget(folder)
            self._cannot_keep(error, self._shown(folder))

    def _forget(self, folder: Path) -> None:
        for name in [n for n, kept in self._suites.items() if kept.folder == folder]:
            _close(self._suites.pop(name))

    def _locked(self, folder: Path) -> FileLock | None:
        try:
            return run_directory.lock(folder)
        except NoLocks as error:
            self.lines.append(
                f"osmosis: warning: {self._shown(folder)} cannot be locked ({error}): do not run "
                "the same evaluation twice at once, or give --osmosis-run-dir PATH on a local disk"
            )
            return None

    def _cannot_keep(self, error: OSError, shown: str) -> None:
        reason = error.strerror or str(error)
        if error.errno not in _READ_ONLY or self._keeping.run_dir or self._keeping.resume:
            raise ConfigurationError(
                f"{shown}: the journal cannot be written: {reason}; name another place with "
                "--osmosis-run-dir PATH, or keep none with --osmosis-no-journal"
            )
        self.lines.append(
            f"osmosis: warning: no journal, {shown} cannot be written ({reason}): a session that "
            "is cut short cannot be resumed; name a place with --osmosis-run-dir PATH"
        )

    def take_lines(self, *, quiet: bool = False) -> list[str]:
        """Return the lines since the last call; `quiet`: only those that are not usual."""
        lines, self.lines = self.lines, []
        return [line for line in lines if not quiet or line not in self._usual]

    def transcribe(self, suites: Iterable[str]) -> None:
        """Have these suites' conversations written, also those whose runs are not kept."""
        if self._transcribes:
            self._transcribed.update(dict.fromkeys(suites))

    def places(self) -> dict[str, RunFolder]:
        """Return where conversations go, by suite."""
        found = {
            name: RunFolder(
                str(suite.folder), suite.opened.session, has_unscored=bool(suite.opened.unscored)
            )
            for name, suite in self._suites.items()
        }
        for number, name in enumerate(self._transcribed):
            if name not in found:
                if self._temporary is None:
                    self._temporary = tempfile.TemporaryDirectory(prefix="osmosis-")
                found[name] = RunFolder(f"{self._temporary.name}/{number}", 1)
        return found

    def folder_of(self, info: SuiteInfo) -> Path:
        """Return where a suite's evaluations are kept, also when this session keeps none."""
        suite = self._suites.get(info.name)
        found = self._runs / run_directory.name_for(info, self._root)
        return found if suite is None else suite.folder

    def export(self, path: Path) -> None:
        """Write the conversations of all suites to one file; OSError leaves what was there."""
        from .trajectories import export

        export(path, (Path(there.folder) for there in self.places().values()))

    def conversations(self) -> Callable[[RunId], RolloutRecord | None]:
        """Return what reads the conversation of a run, one at a time."""
        kept = {name: Transcripts(Path(there.folder)) for name, there in self.places().items()}

        def read(run: RunId) -> RolloutRecord | None:
            return (
                kept[run.suite].read((run.row_index, run.run_index)) if run.suite in kept else None
            )

        return read

    # ---- what earlier sessions kept

    def resumes(self) -> bool:
        """Return whether any run is going to be reported as an earlier session left it."""
        return any(suite.opened.cached for suite in self._suites.values())

    def has(self, run: RunId) -> bool:
        """Return whether a run is reported as an earlier session left it."""
        kept = self._suites.get(run.suite)
        return kept is not None and (run.row_index, run.run_index) in kept.opened.cached

    def kept(self, run: RunId) -> CachedRun | None:
        """Return the run that an earlier session left."""
        if not self.has(run):
            return None
        found = self._suites[run.suite]
        assert found.reader is not None
        fields, why = found.reader.run(found.opened.cached[run.row_index, run.run_index])
        result = result_of(fields, run.suite, cached=True)
        return CachedRun(result if self._answers else replace(result, answer=None), why)

    def repeated(self, suite: str) -> list[RunResult]:
        """Return those runs of a suite that were, or are to be, run again, as they had ended."""
        kept = self._suites.get(suite)
        return [] if kept is None else [*kept.repeated, *kept.unscored.values()]

    def take_back(self, result: RunResult) -> bool:
        """Return whether a run that has ended was only scored again: then it is not repeated."""
        kept, key = self._suites.get(result.suite), (result.row_index, result.run_index)
        before = None if kept is None else kept.unscored.get(key)
        if kept is None or before is None or before.started_at != result.started_at:
            return False
        return kept.unscored.pop(key, None) is not None

    def plans(self) -> Mapping[str, RunPlan]:
        """Return the rows and runs of every suite that is kept."""
        return {name: suite.plan for name, suite in self._suites.items()}

    # ---- runs that end

    def keep(self, result: RunResult, text: str, why: str = "") -> None:
        """Append a run that has ended; `text` is its JSON. From any thread."""
        suite = self._suites.get(result.suite)
        if suite is not None and suite.file is not None:
            ticket = self._commit.append(suite.file, journal.run_line(text, why))
            self._ended[result.run_id] = ticket, result, why

    def report(self, result: RunResult) -> None:
        """Return once a run that is about to be reported is on disk.

        What pytest reports may differ from how the run ended: a hook changed it, or the asserts of
        a test have decided. Then that is appended as well.
        """
        if result.cached:
            return
        ended = self._ended.pop(result.run_id, None)
        if ended is None or ended[1] != result:
            self.keep(result, result.to_json(), ended[2] if ended else "")
            kept = self._ended.pop(result.run_id, None)
            ended = ended or kept
        if ended is not None:
            self._commit.wait(ended[0])

    def keeps(self, suite: str) -> bool:
        """Return whether the runs of a suite are kept."""
        return suite in self._suites

    def flush(self) -> None:
        """Return once everything is on disk."""
        self._commit.flush()

    def end(self) -> None:
        """Note that the session was not cut short: its evaluations have ended."""
        for suite in self._suites.values():
            if suite.file is not None:
                self._commit.append(suite.file, journal.end_line())
        self._commit.flush()

    def _failed(self, path: Path, error: OSError) -> None:
        self._on_failure(
            f"cannot write the journal {self._shown(path)}: {error.strerror or error}; nothing "
            "more is started, so that nothing is spent that is not kept"
        )

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)

    def close(self) -> None:
        """Write what waits, and release everything; harmless when repeated."""
        self._commit.close()
        while self._suites:
            _close(self._suites.popitem()[1])
        while self._locks:
            self._locks.pop().release()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
        self._transcribed.clear()


def _close(suite: _Suite) -> None:
    for held in (suite.file, suite.reader):
        if held is not None:
            held.close()
    if suite.lock is not None:
        suite.lock.release()
