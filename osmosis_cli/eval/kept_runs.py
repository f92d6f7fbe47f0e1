"""The evaluations kept on this machine as commands list them, read from their journals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.fingerprint import EvalFingerprint, RunPlan
from pytest_osmosis.storage.journal import FILE, JournalError, OtherFormat, Replay, replay
from pytest_osmosis.storage.kept_result import kept_suite
from pytest_osmosis.storage.resume import is_unfinished


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation that is kept."""

    name: str
    state: str
    """`complete`, `unfinished`, `ended` (but not complete), `in use`, `damaged`, or `other version`
    where that has written it."""
    done: int
    total: int
    started_at: float
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


def read_run(folder: Path, *, with_figures: bool = True, locks: bool = True) -> Run:
    """Return what there is to say of an evaluation, damaged or not.

    Without `locks` no lock is tried: a session that starts at that moment would find it taken.
    """
    user = run_directory.user_of if locks else run_directory.holder_of
    pid = None if run_directory.is_archived(folder) else user(folder)
    common: dict[str, Any] = {
        "archived": run_directory.is_archived(folder),
        "bytes": sum(map(_size, folder.rglob("*"))),
        "pid": pid,
    }
    try:
        kept = replay(folder)
        identity = EvalFingerprint.from_json({**kept.header, "plan": kept.plan})
        figures = _figures(kept) if with_figures else {}
    except (JournalError, OSError, KeyError, TypeError) as error:
        changed = (folder / FILE).stat().st_mtime
        state = "other version" if isinstance(error, OtherFormat) else "damaged"
        return Run(folder.name, state, 0, 0, changed, problem=str(error), **common)
    planned = set(identity.plan.runs())
    done = sum(place.is_done for key, place in kept.runs.items() if key in planned)
    state = "in use" if pid is not None else _state(kept, identity.plan, done)
    info = identity.info
    return Run(
        folder.name,
        state,
        done,
        len(planned),
        kept.header["created_at"],
        agent=info.agent,
        data=info.data,
        model=info.model,
        eval_fn=next(iter(info.eval_fns), None),
        pass_threshold=info.pass_threshold,
        mean=figures.get("mean"),
        pass_at_1=figures.get("pass@1"),
        **common,
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a session that is running has renamed it meanwhile
        return 0


def _figures(kept: Replay) -> Mapping[str, float | None]:
    """The figures of the first eval function; none where nothing has ended."""
    functions = kept_suite(kept).functions if kept.runs else ()
    return {name: each.value for each_fn in functions[:1] for name, each in each_fn.figures.items()}


def _state(kept: Replay, plan: RunPlan, done: int) -> str:
    if done == plan.total:
        return "complete"
    return "unfinished" if is_unfinished(kept, plan) else "ended"
