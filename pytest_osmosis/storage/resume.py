"""Whether an evaluation is resumed, or a new one starts: decided for one run folder.

An unfinished one is resumed when nothing that it is made of has changed; one that has ended
only when that is asked for. What is not resumed is moved aside, never deleted and never mixed with
anything. Knows journals; no pytest, and no runs going on.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from pathlib import Path

from ..errors import ConfigurationError
from ..run_result import NO_JUDGEMENT, RunResult
from ..spec import Keeping
from . import journal, run_directory
from .fingerprint import EvalFingerprint, RunPlan
from .journal import FILE
from .opened import Opened, new, session_of
from .replay import JournalError, KeptRun, Replay, UnknownRuns, cut_torn, read_header, replay
from .run_lines import RowRun

FRESH = "--osmosis-fresh:"
_DAMAGED = "move it away, or give --osmosis-fresh to keep it aside and start anew"


def open_folder(folder: Path, identity: EvalFingerprint, keeping: Keeping) -> Opened:
    """Go on with what is kept in `folder`, or start there anew; its lock is held.

    Raises:
        ConfigurationError: when that is refused.
        OSError: when it cannot be read or written.
    """
    if not (folder / FILE).exists():
        if keeping.resume:
            raise ConfigurationError(
                f"--osmosis-resume: nothing to resume: there is no {folder.name}"
            )
        if journal.worker_files(folder):
            return _archive(folder, identity, "the journal is lost")
        return new(folder, identity, [])
    try:
        kept = replay(folder)
    except UnknownRuns as error:
        if keeping.reuse_option:
            raise _refused(folder, keeping, error.reason) from None
        return _archive(folder, identity, error.reason)
    except JournalError as error:
        if not keeping.fresh:
            raise ConfigurationError(f"{error}; {_DAMAGED}") from None
        return _archive(folder, identity, FRESH)
    return _decide(folder, identity, keeping, kept)


def _decide(folder: Path, identity: EvalFingerprint, keeping: Keeping, kept: Replay) -> Opened:
    plan = RunPlan.from_json(kept.plan)
    unfinished = is_unfinished(kept, plan)
    if keeping.fresh:
        return _archive(folder, identity, FRESH, unfinished=unfinished)
    changes, sizes = identity.changes(kept.header, plan), identity.resized(plan)
    if sizes and not changes and not keeping.extend:
        sizes[-1] += " (with --osmosis-extend its runs are used)"
    if not keeping.extend:
        changes += sizes
    if changes and not keeping.reuse_option and not _has_done_run(kept):
        return _archive(folder, identity)  # there is nothing to continue from: nothing to say
    if changes and (keeping.reuse_option or unfinished):
        return _refuse_or_archive(folder, identity, keeping, changes)
    if unfinished or keeping.reuse_option:
        return _go_on(folder, identity, keeping, kept)
    return _archive(folder, identity, "; ".join(sizes) if changes == sizes else "")


def is_unfinished(kept: Replay, plan: RunPlan) -> bool:
    """Return whether the same command resumes with it: an evaluation that was cut short, also after
    its last run, or has runs that may end differently when they are repeated.
    """
    if not kept.ended:
        return True
    runs = map(kept.runs.get, plan.runs())
    return any(run is not None and not kept.is_done(run) for run in runs)


def _refuse_or_archive(
    folder: Path, identity: EvalFingerprint, keeping: Keeping, changes: list[str]
) -> Opened:
    reason = "; ".join(changes)
    if keeping.reuse_option:
        raise _refused(folder, keeping, reason)
    return _archive(folder, identity, reason, unfinished=True)


def _refused(folder: Path, keeping: Keeping, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{keeping.reuse_option}: {folder.name} cannot be resumed: {reason}; "
        "without the option it is kept aside and a new evaluation starts"
    )


def _archive(
    folder: Path, identity: EvalFingerprint, reason: str = "", *, unfinished: bool = False
) -> Opened:
    aside = run_directory.archive_path(folder, _stamp(folder))
    which = "the unfinished one" if unfinished else "the one before"
    anew = reason if reason == FRESH else f"starting anew: {reason};"
    notes = [f"{anew} {which} is kept as {aside.name}"] if reason else []
    return new(folder, identity, notes, aside=aside)


def _stamp(folder: Path) -> str:
    """When the evaluation was begun, for its name."""
    try:
        begun = read_header(folder)["created_at"]
    except (JournalError, FileNotFoundError, KeyError):
        begun = folder.stat().st_mtime
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(begun))


def _go_on(folder: Path, identity: EvalFingerprint, keeping: Keeping, kept: Replay) -> Opened:
    number = kept.last_session + 1
    notes = []
    if kept.dropped:
        lines = "1 unfinished line" if kept.dropped == 1 else f"{kept.dropped} unfinished lines"
        notes.append(f"{lines} dropped from the end of the journal")
        cut_torn(kept)
    cached = {key: run for key, run in kept.runs.items() if _stays(kept, run, keeping)}
    again = {key: run for key, run in kept.runs.items() if key not in cached}
    unscored = _unscored(identity, again)
    left = ((key, run) for key, run in again.items() if key not in unscored)
    repeated = planned([*kept.repeated, *left], identity.plan)
    asked = identity.plan.total
    have = sum(key in cached for key in identity.plan.runs())
    if have or unscored:
        more = f", {len(unscored)} to be scored again" if unscored else ""
        notes.insert(0, f"resuming: {have} of {asked} runs done{more}")

    def make() -> None:
        plan = identity.plan.to_json()
        same = plan == kept.plan
        journal.begin_session(folder, session_of(number, None if same else plan))

    return Opened(
        folder,
        identity.plan,
        number,
        make,
        cached=cached,
        repeated=repeated,
        unscored=unscored,
        notes=notes,
    )


def _unscored(
    identity: EvalFingerprint, again: Mapping[RowRun, KeptRun]
) -> dict[RowRun, RunResult]:
    """Return the runs whose judge failed, and whose conversation is all that is needed for another
    try: eval functions are given nothing else; a grader may look at what the agent has left.
    """
    if any(":" not in name for name in identity.info.eval_fns):
        return {}
    failed = {
        key: run.result
        for key, run in again.items()
        if run.whole and run.result.error_kind in NO_JUDGEMENT
    }
    wanted = set(identity.plan.runs() if failed else ())
    return {key: result for key, result in failed.items() if key in wanted}


def planned(runs: Collection[tuple[RowRun, KeptRun]], plan: RunPlan) -> list[RunResult]:
    """Return the results of those of the runs that a plan has."""
    wanted = set(plan.runs() if runs else ())
    return [run.result for key, run in runs if key in wanted]


def _stays(kept: Replay, run: KeptRun, keeping: Keeping) -> bool:
    """Whether a run is reported as it is, and not run again."""
    if not kept.is_done(run):
        return False
    if keeping.retry == "all":
        return run.result.passed
    return keeping.retry is None or run.result.error_type is None


def _has_done_run(kept: Replay) -> bool:
    return any(map(kept.is_done, kept.runs.values()))


def is_complete(kept: Replay) -> bool:
    """Return whether every run that was last asked for is done."""
    runs = map(kept.runs.get, RunPlan.from_json(kept.plan).runs())
    return all(run is not None and kept.is_done(run) for run in runs)
