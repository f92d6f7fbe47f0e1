"""What the scripts of the HTML report read: rows, their runs, and conversations, as JSON.

A run is the JSON that its result is everywhere, with its outcome. Conversations are read one by
one and compressed many at a time, up to a limit: only what is compressed is held.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...dataset.rows import truth_text
from ...reports.formats import Conversations, Sections
from ...run_result import OWN_MODEL, RolloutRecord, RunId, RunResult
from ...storage.excerpt import encode, excerpt
from ...suite_results import EvalResult, OtherSide, RowResult, SuiteResult
from ...verdicts import ROW_VERDICTS

TEXT_LIMIT = 2_000
"""Characters of a question or a ground truth in the table of rows."""
VALUE_LIMIT = 200
"""Characters of a value of a column."""
COLUMNS = 40
"""Columns of a dataset that rows can be filtered by."""
TOGETHER = 64
"""Conversations that are compressed together: more are smaller, and slower to open one of."""
TOGETHER_SIZE = 1 << 19
"""Characters from which on no further one is added to them."""

Places = Mapping[RunId, tuple[int, int]]
"""Where conversations are: the part and the place in it, by run."""


_ASKED = dict.fromkeys(["temperature", "top_p", "max_tokens", "seed", "system_prompt", "map"])
_ASKED["max_turns"] = 10
"""Settings that a command needs to ask for a run as it was asked for, with what goes unsaid."""


def suites_json(result: EvalResult) -> str:
    """Return all suites with their rows and runs; ASCII."""
    return f"[{','.join(map(_suite, result.suites))}]"


def places_json(result: EvalResult, places: Places) -> str:
    """Return the place of the conversation of each run, in their order; 0 where there is none."""
    return encode([places.get(run.run_id, 0) for run in result.runs])


def _suite(suite: SuiteResult) -> str:
    columns = columns_of(suite)
    info = suite.info
    there = suite.companion
    others = {row.row_index: row for row in there.rows} if there is not None else {}
    sides = (section.other_side(suite) for section in suite.sections.values())
    side = next(filter(None, sides), None)
    fields: dict[str, Any] = {
        "name": info.name,
        "n": info.n,
        "threshold": info.pass_threshold,
        "gated": bool(suite.verdicts),
        "is_test": info.scored_by_test,
        "label": info.label,
        "group": info.group,
        "functions": [function.name for function in suite.functions],
        "thresholds": {
            function.name: function.pass_threshold
            for function in suite.functions
            if function.is_recorded
        },
        "own": dict(info.thresholds),
        "columns": columns,
        "against": side
        and {"word": side.word, "title": side.word.capitalize(), "source": side.source},
        "paired": side is not None and side.is_whole,
        "agent": info.agent,
        "data": _from_here(info.data),
        "model": info.model,
        "is_own": info.model == OWN_MODEL,
        "endpoint": info.endpoint if info.endpoint.startswith("http") else "",
        "scorers": list(info.eval_fns),
        "asked": {
            name: value
            for name, usual in _ASKED.items()
            if (value := info.settings.get(name)) not in (None, usual)
        },
        **{word: sorted(side.changed[word]) if side else [] for word in ROW_VERDICTS},
    }
    rows = ",".join(
        _row(
            row,
            info.eval_fns,
            columns,
            others.get(row.row_index),
            side,
            side.means.get(row.row_index) if side else None,
        )
        for row in suite.rows
    )
    return f'{encode(fields)[:-1]},"rows":[{rows}]}}'


def columns_of(suite: SuiteResult) -> list[str]:
    """Return the columns of the dataset that the page chooses rows by."""
    names = dict.fromkeys(name for row in suite.rows if row.data for name in row.data.columns)
    return list(names)[:COLUMNS]


def _from_here(data: str) -> str:
    path = Path(data)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _row(
    row: RowResult,
    eval_fns: Sequence[str],
    columns: list[str],
    other: RowResult | None,
    side: OtherSide | None,
    means: Mapping[str, float] | None,
) -> str:
    data = row.data
    fields: dict[str, Any] = {"index": row.row_index}
    if row.row_id:
        fields["id"] = row.row_id
    if means:
        fields["before"] = means
    if data is not None:
        fields["question"] = _cut(data.user_prompt, TEXT_LIMIT)
        fields["truth"] = None if data.ground_truth is None else _cut(data.ground_truth, TEXT_LIMIT)
        if columns:
            fields["values"] = [value_text(data.columns.get(name)) for name in columns]
    runs = ",".join(_run(run, eval_fns) for run in row.runs)
    earlier = side.runs.get(row.row_index, ()) if side else ()
    tools = side.tools if side else {}
    there = ",".join(
        _run(run, eval_fns, tools.get((row.row_index, run.run_index), ()))
        for run in (other.runs if other else earlier)
    )
    before = f',"other":[{there}]' if there else ""
    return f'{encode(fields)[:-1]},"runs":[{runs}]{before}}}'


def _run(run: RunResult, eval_fns: Sequence[str], tools: Sequence[str] = ()) -> str:
    """Return a run with its outcome, and the functions whose missing score counts as 0.0.

    And with the tools that it called, where its conversation is not on the page.
    """
    zero = [name for name in eval_fns if run.counted_score(name) == 0.0 and name not in run.scores]
    more = f',"zero":{encode(zero)}' if zero else ""
    more += f',"tools":{encode(list(tools))}' if tools else ""
    return f'{run.to_json()[:-1]},"outcome":"{run.outcome}"{more}}}'


def value_text(value: str | float | bool | None) -> str:
    """Return a value of a column as text: two that read alike are one to filter by."""
    if value is None:
        return ""
    return _cut(value if isinstance(value, str) else json.dumps(value), VALUE_LIMIT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} …"


@dataclass(slots=True)
class Packed:
    """The conversations of a page."""

    room: int
    """Characters that further parts may have."""
    parts: list[str] = field(default_factory=list)
    """Lists of conversations: JSON, compressed, in base64."""
    places: dict[RunId, tuple[int, int]] = field(default_factory=dict)
    """The part and the place in it, by run."""
    left_out: int = 0
    """Runs whose conversations there was no room for."""
    waiting: list[str] = field(default_factory=list)
    runs: list[RunId] = field(default_factory=list)
    size: int = 0

    def add(self, run: RunId, text: str) -> None:
        """Take a conversation; what is compressed together is, once it is enough."""
        self.waiting.append(text)
        self.runs.append(run)
        self.size += len(text)
        if len(self.waiting) >= TOGETHER or self.size >= TOGETHER_SIZE:
            self.flush()

    def flush(self) -> None:
        """Compress what waits; leave it out where there is no room for it."""
        if not self.waiting:
            return
        part = compressed(f"[{','.join(self.waiting)}]")
        if len(part) > self.room:
            self.left_out += len(self.runs)
        else:
            self.room -= len(part)
            self.places |= {run: (len(self.parts), at) for at, run in enumerate(self.runs)}
            self.parts.append(part)
        self.waiting, self.runs, self.size = [], [], 0


def packed(
    runs: Iterable[RunResult], conversations: Conversations, sections: Sections, *, room: int
) -> Packed:
    """Return the conversations of runs, the first ones where there is no room for all.

    `room`: characters that the parts may have together.
    """
    packing = Packed(room)
    for run in runs:
        if packing.left_out:  # what is read no more is not known to be there
            packing.left_out += 1
            continue
        record = conversations(run.run_id)
        section = sections(run.run_id) or "" if record is None else ""
        if said := describe_run(record, section):
            packing.add(run.run_id, encode(said))
    packing.flush()
    return packing


def describe_run(record: RolloutRecord | None, section: str = "") -> dict[str, Any]:
    """Return what a page tells of a run beside its result, as JSON can hold it.

    `section` is what the run's item printed, where nothing else is known.
    """
    if record is None:
        return {"frames": section} if section else {}
    messages, left_out = excerpt(record.messages)
    found = {
        "messages": messages,
        "left_out": left_out,
        "calls": list(record.calls),
        "ground_truth": "" if record.ground_truth is None else truth_text(record.ground_truth),
        "reasons": dict(record.reasons),
        "frames": record.frames,
    }
    return {name: value for name, value in found.items() if value}


def compressed(text: str) -> str:
    """Return ASCII text as a page holds it: zlib's format in base64."""
    return base64.b64encode(zlib.compress(text.encode("ascii"), 6)).decode("ascii")
