"""The evaluations kept on this machine, and the runs of one row, read from their journals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_osmosis.dataset.rows import truth_text
from pytest_osmosis.escaping import counted
from pytest_osmosis.reports.line_markup import hanging
from pytest_osmosis.reports.text_table import columns
from pytest_osmosis.rollouts.failure_text import conversation
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.fingerprint import EvalFingerprint, RunPlan
from pytest_osmosis.storage.journal import FILE
from pytest_osmosis.storage.kept_result import kept_suite
from pytest_osmosis.storage.replay import JournalError, KeptRun, OtherFormat, Replay, replay
from pytest_osmosis.storage.resume import is_unfinished
from pytest_osmosis.storage.run_lines import read_record
from pytest_osmosis.suite_results import SuiteResult

from ..errors import CommandError
from ..lazy_group import nearest


@dataclass(frozen=True, slots=True)
class KeptSummary:
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
    verdict: str = ""
    """`passed`, `failed` or `inconclusive`, as the session's exit status had it; "" before that."""


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

    def summary(self, *, with_figures: bool = True, locks: bool = True) -> KeptSummary:
        """Return what lists show of it, damaged or not.

        Without `locks` no lock is tried: a session that starts at that moment would find it taken.
        """
        is_archived = run_directory.is_archived(self.folder)
        user = run_directory.user_of if locks else run_directory.holder_of
        run = KeptSummary(
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

    def _read(self, run: KeptSummary, *, with_figures: bool) -> KeptSummary:
        plan, info = self.identity.plan, self.identity.info
        has_figures = with_figures and bool(self.journal.runs)
        functions = self.suite.functions[:1] if has_figures else ()
        figures = {name: each.value for one in functions for name, each in one.figures.items()}
        planned = set(plan.runs())
        done = sum(
            self.journal.is_done(run) for key, run in self.journal.runs.items() if key in planned
        )
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
            verdict=self.journal.verdict or "",
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a session that is running has renamed it meanwhile
        return 0


_RUN = re.compile(r"(?P<row>.*)\[run-(?P<run>\d+)[^]]*\]")


def row_lines(kept: Replay, asked: str) -> Iterator[str]:
    """Yield the runs of a row, a line each, then the conversation of the one to look at first.

    Raise CommandError when there is no such row or run.
    """
    row, runs, chosen = _find_runs(kept, asked)
    for run in runs:
        yield f"{row}[run-{run.result.run_index}]  {_summary(run.result)}"
    yield ""
    yield f"{row}[run-{chosen.result.run_index}]"
    said = list(_run_text(chosen.result, read_record(chosen.place)))
    width = columns()
    for line in said:
        yield from [line] if width is None else hanging(line, width)


def _run_text(result: RunResult, record: RolloutRecord | None) -> Iterator[str]:
    """Yield what is known of a run: what was raised, its conversation, and what it was held to."""
    if result.error:
        yield from (result.error if record is None else record.frames or result.error).splitlines()
        yield ""
    if record is None or not record.messages:
        yield "its conversation was not kept"
        return
    yield from conversation(record.messages, limit=None).splitlines()
    if record.ground_truth is not None:
        yield from ("", f"  ground truth  {truth_text(record.ground_truth)}")
    for name, reasons in record.reasons.items():
        yield from (f"  reason        {name}: {reason}" for reason in reasons)


def row_document(kept: Replay, asked: str) -> dict[str, Any]:
    """Return the same as JSON."""
    row, runs, chosen = _find_runs(kept, asked)
    record = read_record(chosen.place)
    shown = ("run_index", "outcome", "scores", "reasons", "error", "tokens", "duration_ms")
    return {
        "row": row,
        "row_index": chosen.result.row_index,
        "runs": [{name: getattr(run.result, name) for name in shown} for run in runs],
        "run_index": chosen.result.run_index,
        "ground_truth": None if record is None else record.ground_truth,
        "messages": None if record is None else record.messages,
    }


def _find_runs(kept: Replay, asked: str) -> tuple[str, list[KeptRun], KeptRun]:
    """Return the row's name, its runs, and the run that was named or else did not pass."""
    plan = RunPlan.from_json(kept.plan)
    name = asked.rpartition("::")[2]
    match = _RUN.fullmatch(name)
    row = match["row"] if match else name
    rows = plan.row_of_name
    index = int(row) if row.isdecimal() and row not in rows else rows.get(row)
    if index is None or index not in plan.indices:
        raise CommandError(f"there is no row {row!r}.{nearest(row, list(rows))}", code="not_found")
    row = next(each for each, at in rows.items() if at == index)
    there = (kept.runs.get((index, run)) for run in range(plan.n))
    runs = [run for run in there if run is not None]
    if not runs:
        raise CommandError(f"no run of {row} has ended", code="not_found")
    wanted = None if match is None else int(match["run"])
    chosen = [run for run in runs if run.result.run_index == wanted]
    if wanted is not None and not chosen:
        raise CommandError(f"{row} has no run {wanted} that has ended", code="not_found")
    return row, runs, (chosen or [run for run in runs if not run.result.passed] or runs)[0]


def _summary(result: RunResult) -> str:
    """What became of a run: outcome, scores, what it took."""
    scores = [f"{name} {score:g}" for name, score in result.scores.items()]
    turns = counted(result.llm_calls, "turn")
    tokens = [] if result.tokens is None else [f"{result.tokens} tokens"]
    took = f"{result.duration_ms / 1000:.2f} s"
    error = [result.error.partition("\n")[0]] if result.error else []
    return "  ".join([f"{result.outcome:<6}", *scores, *error, ", ".join([turns, *tokens, took])])
