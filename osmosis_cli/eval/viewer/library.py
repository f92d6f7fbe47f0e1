"""What there is to view: evaluations that are kept, and JSON reports, each under a key.

An entry is read when it is asked for, and again when its file has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from pytest_osmosis.features.labels.run_labels import Labels, read_labels
from pytest_osmosis.reports.json_reader import UnreadableReport, read_result
from pytest_osmosis.reports.saved_conversations import asked_in
from pytest_osmosis.reports.saved_report import read_saved, with_dataset
from pytest_osmosis.run_result import RolloutRecord, RunId
from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.journal import FILE, files_of
from pytest_osmosis.storage.run_lines import read_record
from pytest_osmosis.suite_results import EvalResult, RowResult, SuiteResult

from ...errors import CommandError
from ..kept_runs import Kept, KeptSummary, nearest_runs

Stamp = tuple[int, int]
"""When a file was changed, and its size."""


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A report or an evaluation that is kept."""

    key: str
    kind: Literal["run", "report"]
    path: Path
    """The folder of an evaluation, or the file of a report."""
    family: str
    """The same for all that are of one evaluation, at different times."""
    run: KeptSummary
    """What the list shows of it."""
    began: float | None = None
    """When its first run began: the same for a kept evaluation and its report."""
    source: str = ""
    """The commit that it was of, and the branch."""
    report: ViewEntry | None = None
    """The report of a kept evaluation, of the same runs."""

    def with_report(self, report: ViewEntry | None) -> ViewEntry:
        """Return the entry with the report of the same runs, if there is one."""
        if report is None:
            return self
        return replace(self, report=report, source=self.source or report.source)

    @property
    def places(self) -> list[Path]:
        """Where it is, itself first, then its report."""
        return [self.path, *(self.report.places if self.report else [])]

    @property
    def names(self) -> list[str]:
        """Its name, and that of its report."""
        return [self.run.name, *(self.report.names if self.report else [])]

    @property
    def title(self) -> str:
        """Its name, without the time at which an evaluation was put aside."""
        return self.run.name.partition("@")[0] if self.kind == "run" else self.run.name

    @property
    def is_finished(self) -> bool:
        """Whether every run that was wanted is there."""
        return self.run.state == "complete"

    @property
    def pass_at_1(self) -> float | None:
        """Of the first eval function; the mean where rows have one run."""
        return self.run.mean if self.run.pass_at_1 is None else self.run.pass_at_1

    @property
    def stamp(self) -> Stamp:
        """What changes when it does."""
        return _stamp(self.path)

    @property
    def is_live(self) -> bool:
        """Whether a session works on it now."""
        return self.kind == "run" and run_directory.holder_of(self.path) is not None


@dataclass(frozen=True, slots=True)
class Viewed:
    """An entry as it was read."""

    result: EvalResult
    conversations: Callable[[RunId], RolloutRecord | None]


class Library:
    """The entries of a place."""

    def __init__(self, place: Path | None) -> None:
        """Look at a folder or a report; None: at the project's evaluations and reports here."""
        self._report = place if place is not None and place.is_file() else None
        self._folder = Path.cwd() if place is None else place
        self._entries: dict[Path, tuple[Stamp, ViewEntry | None]] = {}
        if place is not None and not place.exists():
            raise CommandError(f"{place}: there is no such file or folder", code="not_found")
        if self._report is not None:
            read_result(self._report)
        elif not self._folder.is_dir():
            raise CommandError(f"{place}: is neither a file nor a folder", code="not_found")
        else:
            self._check_readable()

    def _check_readable(self) -> None:
        closed = None if os.access(self._folder, os.R_OK | os.X_OK) else self._folder
        try:
            list(self._places())
        except PermissionError as error:
            closed = closed or error.filename
        if closed is not None:
            raise CommandError(f"{closed}: permission denied", code="not_readable")

    @property
    def only(self) -> ViewEntry | None:
        """The one report that was asked for."""
        return None if self._report is None else self._entry(self._report, _report_entry)

    def entries(self) -> list[ViewEntry]:
        """Return what there is, the newest first; an evaluation and its report are one."""
        found = [self._entry(path, read) for path, read in self._places()]
        there = [entry for entry in found if entry is not None]
        reports = {_runs_of(each): each for each in there if each.kind == "report" and each.began}
        runs = [
            each.with_report(reports.pop(_runs_of(each), None))
            for each in there
            if each.kind == "run"
        ]
        joined = {each.report.key for each in runs if each.report is not None}
        others = [each for each in there if each.kind == "report" and each.key not in joined]
        return sorted([*runs, *others], key=lambda entry: -entry.run.started_at)

    def whole(self, entry: ViewEntry) -> ViewEntry:
        """Return the entry of the list that it stands in."""
        listed = [] if self._report else self.entries()
        keys = ((each, {each.key, each.report.key if each.report else ""}) for each in listed)
        return next((each for each, known in keys if entry.key in known), entry)

    def labels(self, entry: ViewEntry) -> Labels:
        """Return what people say of it."""
        return read_labels(self.whole(entry).places)

    def get(self, key: str) -> ViewEntry | None:
        """Return the entry with a key."""
        found = (self._entry(path, read) for path, read in self._places() if key_of(path) == key)
        return next(found, None)

    def _places(self) -> Iterator[tuple[Path, Callable[[Path], ViewEntry | None]]]:
        """Yield what may be an entry, and what reads it."""
        if self._report is not None:
            yield self._report, _report_entry
            return
        yield from ((folder, _run_entry) for folder in run_directory.kept_in(self._runs()))
        for path in sorted(self._folder.glob("*.json")):
            if path.is_file():  # a pipe would never end
                yield path, _report_entry

    def _runs(self) -> Path:
        """Return where evaluations are: the folder itself, or as `eval runs` finds them."""
        if any(self._folder.glob(f"*/{FILE}")):
            return self._folder
        if (self._folder / FILE).exists():
            return self._folder.parent
        return nearest_runs(self._folder.absolute())

    def _entry(self, path: Path, read: Callable[[Path], ViewEntry | None]) -> ViewEntry | None:
        stamp = _stamp(path)
        known = self._entries.get(path)
        if known is None or known[0] != stamp or (known[1] and known[1].run.state == "in use"):
            known = self._entries[path] = stamp, read(path)
        return known[1]

    def view(self, entry: ViewEntry) -> Viewed:
        """Read an entry; raise UnreadableReport or JournalError for a damaged one."""
        return _viewed(entry.kind, entry.path, entry.stamp)


@lru_cache(maxsize=2)  # a report may be large
def _viewed(kind: str, path: Path, stamp: Stamp) -> Viewed:
    return _run(path) if kind == "run" else _report(path)


def _stamp(path: Path) -> Stamp:
    """Return when a report or any file of an evaluation was last changed, and their size."""
    try:
        found = [each.stat() for each in (files_of(path) if path.is_dir() else [path])]
    except OSError:
        return 0, 0
    return max(each.st_mtime_ns for each in found), sum(each.st_size for each in found)


def key_of(path: Path) -> str:
    """Return the key of an entry: it names the entry in addresses and says nothing of the disk."""
    return sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _runs_of(entry: ViewEntry) -> tuple[object, ...]:
    """What a kept evaluation and its report have in common."""
    return entry.began, entry.run.done, entry.run.eval_fn, entry.run.model


def _run_entry(folder: Path) -> ViewEntry:
    kept = Kept(folder)
    run = kept.summary(locks=False)
    is_read = run.problem is None
    began, source = (_began(kept.suite), _source(kept.journal.git)) if is_read else (None, "")
    return ViewEntry(key_of(folder), "run", folder, run.name.partition("@")[0], run, began, source)


def _source(git: Mapping[str, Any]) -> str:
    return " ".join(filter(None, [(git.get("commit") or "")[:10], git.get("branch")]))


def _began(*suites: SuiteResult) -> float | None:
    started = (run.started_at for suite in suites for row in suite.rows for run in row.runs)
    return min(filter(None, started), default=None)


def _report_entry(path: Path) -> ViewEntry | None:
    """Return a JSON file as an entry; None where it is no report."""
    try:
        result = read_result(path)
    except UnreadableReport:
        return None
    suites = result.suites
    function = next((each for suite in suites[:1] for each in suite.functions), None)
    first = None if function is None else function.figures.get("pass@1")
    began = _began(*suites)
    done, total = sum(s.finished for s in suites), sum(s.info.total_runs for s in suites)
    run = KeptSummary(
        path.name,
        state="complete" if done == total else "ended",
        done=done,
        total=total,
        started_at=began or path.stat().st_mtime,
        model=", ".join(dict.fromkeys(suite.info.model for suite in suites)),
        eval_fn=None if function is None else function.name,
        pass_threshold=suites[0].info.pass_threshold if suites else None,
        mean=None if function is None else function.mean,
        pass_at_1=None if first is None else first.value,
        verdict=result.state,
    )
    family = " ".join(f"{s.info.agent} {s.info.group} {s.info.model}" for s in suites)
    source = _source((result.environment or {}).get("git") or {})
    return ViewEntry(key_of(path), "report", path, family, run, began, source)


def _report(path: Path) -> Viewed:
    saved = read_saved(path)
    return Viewed(with_dataset(saved.result)[0], saved.conversations)


def _run(folder: Path) -> Viewed:
    """Return an evaluation that is kept, as far as it has come."""
    kept = Kept(folder)
    digests = kept.identity.plan.digest_of
    suite = kept.suite.with_rows(lambda row: replace(row, digest=digests.get(row.row_index, "")))
    result, _ = with_dataset(EvalResult((suite,), 0))

    def read(run: RunId) -> RolloutRecord | None:
        found = kept.journal.runs.get((run.row_index, run.run_index))
        return None if found is None else read_record(found.place)

    return Viewed(result.with_suites(partial(_fill_questions, read=read)), read)


def _fill_questions(
    suite: SuiteResult, read: Callable[[RunId], RolloutRecord | None]
) -> SuiteResult:
    """The suite with the questions of rows that the dataset does not hold any more."""

    def filled(row: RowResult) -> RowResult:
        record = None if row.data or not row.runs else read(row.runs[0].run_id)
        if record is None:
            return row
        return replace(row, data=asked_in(record.messages, record.ground_truth))

    return suite.with_rows(filled)
