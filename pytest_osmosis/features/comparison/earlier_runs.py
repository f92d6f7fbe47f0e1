"""The baseline's runs of the rows that changed: what people read beside the runs of the session."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmosis_ai.secret import redact

from ...escaping import shown_path
from ...run_result import RunResult, SuiteInfo, passes

if TYPE_CHECKING:
    from ...suite_results import SuiteResult
    from .results import Comparison

CALLS_SHOWN = 20
"""Calls of tools that are kept of a run."""
ARGUMENTS_SHOWN = 200
"""Characters of a call's arguments."""
_PLACE = re.compile(rb'"row_index":(\d+),.*?"run_index":(\d+),')
"""In the line of a conversation; a text in it has its quotes escaped."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run of the baseline."""

    result: RunResult
    """As far as reports have it, with the row's index in this session's data."""
    tools: tuple[str, ...] = ()
    """The tools that it called, with their arguments, as far as its conversation is there."""


EarlierRuns = Mapping[int, tuple[EarlierRun, ...]]
"""By row index in this session's data."""
Tools = Mapping[tuple[int, int], tuple[str, ...]]
"""What runs called, by row and run."""
ToolsOf = Callable[[Collection[int]], Tools]
"""Returns what the runs of some rows called; OSError or ValueError where that cannot be read."""
SAVED = (
    "run_index",
    "success",
    "passed",
    "scores",
    "reasons",
    "error",
    "error_type",
    "error_kind",
    "answer",
)
"""Fields of the result that reports have."""


def earlier_runs(
    comparisons: Iterable[Comparison],
    there: SuiteResult,
    info: SuiteInfo,
    tools_of: ToolsOf | None,
) -> EarlierRuns:
    """Return the runs of each row that differs in any eval function, held to `info`'s thresholds.

    Without `tools_of` nothing is said of the tools that they called.
    """
    index_there = {
        change.row_index: change.baseline_row_index
        for each in comparisons
        for change in each.changes
    }
    rows = {row.row_index: row.runs for row in there.rows}
    called = tools_of(set(index_there.values())) if tools_of and index_there else {}
    return {
        here: tuple(
            earlier_run(
                _held(run, there.info, info),
                called.get((index, run.run_index), ()),
                suite=info.name,
                row_index=here,
            )
            for run in rows.get(index, ())
        )
        for here, index in index_there.items()
    }


def earlier_run(run: object, tools: Iterable[str], *, suite: str, row_index: int) -> EarlierRun:
    """Return a run of the baseline with the row it stands beside; it has what reports have."""
    own = {name: getattr(run, name) for name in SAVED}
    return EarlierRun(RunResult(suite=suite, row_index=row_index, **own), tuple(tools))


def _held(run: RunResult, there: SuiteInfo, info: SuiteInfo) -> RunResult:
    """Return a run as it passes by the thresholds of this session, where they are others."""
    limits = [(each.pass_threshold, dict(each.thresholds)) for each in (there, info)]
    shared = [name for name in there.eval_fns if name in info.eval_fns]
    if limits[0] == limits[1] or not shared or not run.success:
        return run
    least = {name: info.thresholds.get(name, info.pass_threshold) for name in shared}
    return replace(run, passed=all(passes(run.scores.get(name), at) for name, at in least.items()))


def tools_called(path: Path, suite: str, rows: Collection[int]) -> Tools:
    """Return the tools that the runs of these rows called, by row and run.

    `path`: a `.trajectories.jsonl`; nothing where it is gone. Raises OSError or ValueError where it
    cannot be read.
    """
    found: defaultdict[str, dict[tuple[int, int], tuple[str, ...]]] = defaultdict(dict)
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            place = _PLACE.search(line)
            if place is None:
                raise ValueError(f"{shown_path(path)}:{number}: not the line of a conversation")
            row, run = int(place[1]), int(place[2])
            if row in rows:
                said = json.loads(line)
                found[said["suite"]][row, run] = calls(said["messages"])
    alone = next(iter(found), "") if len(found) == 1 else suite
    return found.get(suite) or found[alone]


def calls(messages: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the tools that are called in a conversation, with their arguments, without secrets."""
    asked = [
        call.get("function") or {}
        for message in messages
        for call in message.get("tool_calls") or ()
    ]
    return tuple(
        redact(f"{each.get('name', '?')}({str(each.get('arguments') or '')[:ARGUMENTS_SHOWN]})")
        for each in asked[:CALLS_SHOWN]
    )
