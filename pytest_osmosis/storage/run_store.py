"""Where the runs of a session are kept, and those that earlier sessions kept. One a session, in the
process that reports.
"""

from __future__ import annotations

import errno
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..run_result import RunId, RunResult, SuiteInfo
from ..spec import Keeping
from . import journal, run_directory
from .atomic_write import is_special
from .fingerprint import EvalFingerprint
from .group_sync import sync_file
from .opened import Opened, new
from .run_directory import FileLock, InUse, NoLocks
from .run_log import RunFolder, RunLog

if TYPE_CHECKING:
    from ..suite_results import SuiteResult

_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class RunStore:
    """The journals of the session's suites."""

    def __init__(
        self,
        keeping: Keeping,
        *,
        root: Path,
        answers: bool = True,
        on_failure: Callable[[str], None],
    ) -> None:
        """Keep runs below `root`; `on_failure` is called once, when nothing more can be kept."""
        self._keeping = keeping
        self._root = root
        self._runs = run_directory.runs_folder(root, keeping.run_dir)
        self._answers = answers
        self._suites: dict[str, Opened] = {}
        self._locks: dict[Path, FileLock] = {}
        self.resumes = False
        """Whether any run is going to be reported as an earlier session left it."""
        self.log = RunLog(root=root, on_failure=on_failure)
        """The runs of this process."""
        self.lines: list[str] = []
        """Lines for the user about what was opened."""
        self._usual: set[str] = set()
        """Those of them that are left out of a quiet session."""
        self._others: dict[str, None] = {}
        """Suites whose runs are kept only until the session ends."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    # ---- at the start

    def open(self, identities: Sequence[EvalFingerprint]) -> None:
        """Find what is kept of these evaluations and decide what is to be done with it.

        Raises:
            ConfigurationError: when they cannot be resumed, or cannot be kept.
        """
        names = {
            identity.info.name: run_directory.name_for(identity.info, self._root)
            for identity in identities
        }
        every = list(names.values())
        for identity in identities:
            name = names[identity.info.name]
            if every.count(name) > 1:
                name = run_directory.with_mark(name, identity.info.name)
            with self._explained(self._runs / name):
                self._open(identity, self._runs / name)

    def _open(self, identity: EvalFingerprint, folder: Path) -> None:
        info = identity.info
        run_directory.make_private(folder.parent)
        self._lock(folder)
        opened = self._suites[info.name] = self._opened(identity, folder)
        if info.scored_by_test:  # its test runs again, and needs what was said
            lacking = [key for key, run in opened.cached.items() if run.recorded() is None]
            opened.repeated += [opened.cached.pop(key).result for key in lacking]
        self.resumes = self.resumes or bool(opened.cached)
        resuming = [note for note in opened.notes if note.startswith("resuming")]
        line = ", ".join([f"osmosis: journal {self._show_path(folder)}", *resuming])
        self.lines.append(line)
        if not resuming:
            self._usual.add(line)
        self.lines += [f"osmosis: {note}" for note in opened.notes if note not in resuming]

    def _opened(self, identity: EvalFingerprint, folder: Path) -> Opened:
        is_new = not (folder / journal.FILE).exists() and not journal.worker_files(folder)
        if is_new and not self._keeping.resume:
            return new(folder, identity, [])
        from .resume import open_folder

        return open_folder(folder, identity, self._keeping)

    def guard_report(self, path: Path) -> None:
        """Lock this report against other sessions; raises like `open`."""
        if is_special(path):
            return
        mark = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        try:
            run_directory.make_private(self._runs)
            self._locks[path] = run_directory.lock(self._runs / f"report-{mark}")
        except InUse as error:
            raise ConfigurationError(
                f"--osmosis-output {str(path)!r} is {error}: wait for it, or name another file"
            ) from None
        except (NoLocks, OSError):
            return  # what the journals meet as well, and tell

    def begin(self, suites: Iterable[str]) -> None:
        """Begin to keep suites whose runs are about to start; raises like `open`."""
        for name in suites:
            if (opened := self._suites.get(name)) is not None:
                with self._explained(opened.folder):
                    opened.begin()
        for name, there in self.places().items():
            self.log.begin(name, there)

    @contextmanager
    def _explained(self, folder: Path) -> Iterator[None]:
        """Raise what prevents an evaluation from being kept as a sentence for users."""
        try:
            yield
        except InUse as error:
            raise ConfigurationError(
                f"{self._show_path(folder)} is {error}: wait for it, or keep this evaluation "
                "elsewhere with --osmosis-run-dir=PATH"
            ) from None
        except ConfigurationError:
            self._forget(folder)
            raise
        except OSError as error:
            self._forget(folder)
            self._cannot_keep(error, self._show_path(folder))

    def _forget(self, folder: Path) -> None:
        left = {name: each for name, each in self._suites.items() if each.folder != folder}
        self._suites = left
        if (lock := self._locks.pop(folder, None)) is not None:
            lock.release()

    def _lock(self, folder: Path) -> None:
        try:
            self._locks[folder] = run_directory.lock(folder)
        except NoLocks as error:
            self.lines.append(
                f"osmosis: warning: {self._show_path(folder)} cannot be locked ({error}): do not "
                "run one evaluation twice at once, or give --osmosis-run-dir=PATH on a local disk"
            )

    def _cannot_keep(self, error: OSError, shown: str) -> None:
        reason = error.strerror or str(error)
        if error.errno not in _READ_ONLY or self._keeping.run_dir or self._keeping.resume:
            raise ConfigurationError(
                f"{shown}: the journal cannot be written: {reason}; name another place with "
                "--osmosis-run-dir=PATH, or keep none with --osmosis-no-journal"
            )
        self.lines.append(
            f"osmosis: warning: no journal, {shown} cannot be written ({reason}): a session that "
            "is cut short cannot be resumed; name a place with --osmosis-run-dir=PATH"
        )

    def take_lines(self, *, quiet: bool = False) -> list[str]:
        """Return the lines since the last call; `quiet`: only those that are not usual."""
        lines, self.lines = self.lines, []
        return [line for line in lines if not quiet or line not in self._usual]

    def add(self, suites: Iterable[str]) -> None:
        """Keep what is said in these suites until the session ends, where it is not kept longer."""
        self._others.update(dict.fromkeys(suites))

    def places(self) -> dict[str, RunFolder]:
        """Return where the runs of each suite are kept."""
        found = {
            name: RunFolder(str(each.folder), each.session, has_unscored=bool(each.unscored))
            for name, each in self._suites.items()
        }
        for number, name in enumerate(self._others):
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

    # ---- what earlier sessions kept

    def has(self, run: RunId) -> bool:
        """Return whether a run is reported as an earlier session left it."""
        opened = self._suites.get(run.suite)
        return opened is not None and (run.row_index, run.run_index) in opened.cached

    def kept_runs(self) -> dict[RunId, RunResult]:
        """Return the results of all runs that earlier sessions left."""
        every = (RunId(name, *key) for name, each in self._suites.items() for key in each.cached)
        return {run: kept for run in every if (kept := self.find(run)) is not None}

    def find(self, run: RunId) -> RunResult | None:
        """Return the result of a run that an earlier session left."""
        if not self.has(run):
            return None
        result = self._suites[run.suite].cached[run.row_index, run.run_index].result
        answer = result.answer if self._answers else None
        return replace(result, suite=run.suite, cached=True, answer=answer)

    def repeated(self, suite: str) -> list[RunResult]:
        """Return those runs of a suite that were, or are to be, run again, as they had ended."""
        opened = self._suites.get(suite)
        return [] if opened is None else [*opened.repeated, *opened.unscored.values()]

    def take_back(self, result: RunResult) -> bool:
        """Return whether a run that has ended was only scored again: then it is not repeated."""
        opened = self._suites.get(result.suite)
        if opened is None or not opened.unscored:
            return False
        key = result.row_index, result.run_index
        before = opened.unscored.get(key)
        if before is None or before.started_at != result.started_at:
            return False
        return opened.unscored.pop(key, None) is not None

    # ---- runs that end

    def keeps(self, suite: str) -> bool:
        """Return whether the runs of a suite are kept."""
        return suite in self._suites

    def flush(self) -> None:
        """Return once everything is on disk, also what workers have written: some may be lost."""
        self.log.flush()
        for opened in self._suites.values():
            for path in journal.worker_files(opened.folder, opened.session):
                try:
                    sync_file(path)
                except OSError as error:
                    self.log.fail(path, error)

    def keep_verdict(self, suite: SuiteResult, git: Mapping[str, Any] | None) -> None:
        """Keep what a suite came to, what gates decided on it, and of which commit it is."""
        opened = self._suites.get(suite.info.name)
        if opened is not None and opened.has_begun:
            self.log.write(suite.info.name, journal.verdict_line(suite, git))

    def end(self) -> None:
        """Note that the session was not cut short: its evaluations have ended."""
        for name, opened in self._suites.items():
            if opened.has_begun:
                self.log.write(name, journal.end_line())
        self.log.flush()

    def _show_path(self, path: Path) -> str:
        return str(path.relative_to(self._root)) if path.is_relative_to(self._root) else str(path)

    def close(self) -> None:
        """Write what waits, and release everything; harmless when repeated."""
        self.log.close()
        self._suites.clear()
        while self._locks:
            self._locks.popitem()[1].release()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
        self._others.clear()
