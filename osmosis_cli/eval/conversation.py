"""One row of an evaluation that is kept: its runs, and the whole conversation of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_osmosis.escaping import counted, escape_control_chars
from pytest_osmosis.reports.line_markup import hanging
from pytest_osmosis.reports.text_table import columns
from pytest_osmosis.rollouts.failure_text import conversation
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage.fingerprint import RunPlan
from pytest_osmosis.storage.journal import KeptRun, Replay
from pytest_osmosis.storage.run_lines import read_record

from ..errors import CommandError
from ..lazy_group import nearest

_RUN = re.compile(r"(?P<row>.*)\[run-(?P<run>\d+)[^]]*\]")


def row_lines(kept: Replay, asked: str) -> Iterator[str]:
    """Yield the runs of a row, a line each, then the conversation of the one to look at first.

    Raise CommandError when there is no such row or run.
    """
    row, runs, chosen = _found(kept, asked)
    for run in runs:
        yield escape_control_chars(f"{row}[run-{run.result.run_index}]  {_summary(run.result)}")
    yield ""
    yield escape_control_chars(f"{row}[run-{chosen.result.run_index}]")
    said = list(_said(chosen.result, read_record(chosen.place)))
    width = columns()
    for line in map(escape_control_chars, said):
        yield from [line] if width is None else hanging(line, width)


def _said(result: RunResult, record: RolloutRecord | None) -> Iterator[str]:
    """Yield what is known of a run: what was raised, its conversation, and what it was held to."""
    if result.error:
        yield from (result.error if record is None else record.frames or result.error).splitlines()
        yield ""
    if record is None or not record.messages:
        yield "its conversation was not kept"
        return
    yield from conversation(record.messages, limit=None).splitlines()
    if record.ground_truth is not None:
        yield from ("", f"  ground truth  {record.ground_truth}")
    for name, reasons in record.reasons.items():
        yield from (f"  reason        {name}: {reason}" for reason in reasons)


def row_document(kept: Replay, asked: str) -> dict[str, Any]:
    """Return the same as JSON."""
    row, runs, chosen = _found(kept, asked)
    record = read_record(chosen.place)
    return {
        "row": row,
        "row_index": chosen.result.row_index,
        "runs": [_run(run.result) for run in runs],
        "run_index": chosen.result.run_index,
        "ground_truth": None if record is None else record.ground_truth,
        "messages": None if record is None else record.messages,
    }


def _run(result: RunResult) -> dict[str, Any]:
    return {
        "run_index": result.run_index,
        "outcome": result.outcome,
        "scores": dict(result.scores),
        "reasons": dict(result.reasons),
        "error": result.error,
        "tokens": result.tokens,
        "duration_ms": result.duration_ms,
    }


def _found(kept: Replay, asked: str) -> tuple[str, list[KeptRun], KeptRun]:
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
