"""The evaluations kept on this machine as commands list them, read from their journals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.fingerprint import EvalFingerprint
from pytest_osmosis.storage.journal import FILE, JournalError, OtherFormat, Replay, replay
from pytest_osmosis.storage.kept_result import kept_suite
from pytest_osmosis.storage.resume import is_unfinished
from pytest_osmosis.suite_results import SuiteResult


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation that is kept."""

    name: str
    state: str = "complete"
    """`complete`, `unfinished`, `ended` (but not complete), `in use`, `damaged`, or `other version`
    where that has written it."""
    done: int = 0
    total: int = 0
    started_at: float = 0.0
    """Seconds since 1970."""
    agent: str = ""
    data: str = ""
    model: str = ""
    archived: bool = False
    bytes: int = 0
    pid: int | None = None
    """The process that works on it."""
    problem: str | None = None
    eval_fn: str | None = None
    """The first eval function, which the figures are of."""
    pass_threshold: float | None = None
    mean: float | None = None
    """None where no run has a score."""
    pass_at_1: float | None = None
    """None where each row has one run."""


def nearest_runs(here: Path) -> Path:
    """Return where evaluations are kept: in a folder or in one above it; in it where in none."""
    for folder in (here, *here.parents):
        found = run_directory.runs_folder(folder, None)
        if found.is_dir():
            return found
    return run_directory.runs_folder(here, None)


class Kept:
    """An evaluation that is kept: its journal is read once, when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def journal(self) -> Replay:
        """Its journal; JournalError where it is damaged."""
        return replay(self.folder)

    @cached_property
    def identity(self) -> EvalFingerprint:
        """What was asked."""
        return EvalFingerprint.from_json({**self.journal.header, "plan": self.journal.plan})

    @cached_property
    def suite(self) -> SuiteResult:
        """Its result, as far as it has come."""
        return kept_suite(self.journal)

    def summary(self, *, with_figures: bool = True, locks: bool = True) -> Run:
        """Return what lists show of it, damaged or not.

        Without `locks` no lock is tried: a session that starts at that moment would find it taken.
        """
        is_archived = run_directory.is_archived(self.folder)
        user = run_directory.user_of if locks else run_directory.holder_of
        run = Run(
            self.folder.name,
            archived=is_archived,
            bytes=sum(map(_size, self.folder.rglob("*"))),
            pid=None if is_archived else user(self.folder),
        )
        try:
            return self._read(run, with_figures=with_figures)
        except (JournalError, OSError, KeyError, TypeError) as error:
            changed = (self.folder / FILE).stat().st_mtime
            state = "other version" if isinstance(error, OtherFormat) else "damaged"
            return replace(run, state=state, started_at=changed, problem=str(error))

    def _read(self, run: Run, *, with_figures: bool) -> Run:
        plan, info = self.identity.plan, self.identity.info
        functions = self.suite.functions[:1] if with_figures and self.journal.runs else ()
        figures = {name: each.value for one in functions for name, each in one.figures.items()}
        planned = set(plan.runs())
        done = sum(place.is_done for key, place in self.journal.runs.items() if key in planned)
        state = "unfinished" if is_unfinished(self.journal, plan) else "ended"
        return replace(
            run,
            state="in use" if run.pid else "complete" if done == plan.total else state,
            done=done,
            total=len(planned),
            started_at=self.journal.header["created_at"],
            agent=info.agent,
            data=info.data,
            model=info.model,
            eval_fn=next(iter(info.eval_fns), None),
            pass_threshold=info.pass_threshold,
            mean=figures.get("mean"),
            pass_at_1=figures.get("pass@1"),
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a session that is running has renamed it meanwhile
        return 0
