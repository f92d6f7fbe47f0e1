"""The report of a run: its rows, the worst first, and its HTML page.

What a model wrote is in both.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from pytest_osmosis.run_result import is_counted
from pytest_osmosis.suite_results import RowData, RowResult, SuiteResult

from ..database.models import Run
from ..errors import Refused
from ..execution.outcome import open_conversations
from .context import PageContext

PAGE = 50
_KEPT = 8
_RUNS = 50_000  # whose rows are shown: 10,000 take about a second
MOST_BYTES = 256 * 1024 * 1024
"""Of conversations that are looked through for a page."""
T = TypeVar("T", bound=Sized)


class Recent(Generic[T]):
    """What was made last of reports: of a large one that takes seconds, a workspace at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._locks: dict[str, threading.Lock] = {}
        self._made: OrderedDict[str, T] = OrderedDict()

    def get(self, run: Run, make: Callable[[], T]) -> T:
        """Return what was made of the report of a run, or make it; keep no longer one."""
        key = f"{run.id} {run.status}"
        with self._locks.setdefault(run.workspace_id, threading.Lock()):
            found = self._made.pop(key, None) or make()
            if len(found) <= self._most:
                self._made[key] = found
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            return found


@dataclass(frozen=True, slots=True)
class RowView:
    """One row."""

    row: RowResult
    outcomes: Sequence[str]
    """Of its runs: passed, below, raised, …"""
    asked: RowData | None

    @property
    def rank(self) -> tuple[float, float, int]:
        """Where it stands: by the passes of its runs that count, then by their mean score."""
        runs = [run for run in self.row.runs if is_counted(run.error_type, run.error_kind)]
        scores = sum(sum(run.scores.values()) for run in runs) / max(1, len(runs))
        return self.outcomes.count("passed") / max(1, len(runs)), scores, self.row.row_index

    def has(self, text: str) -> bool:
        """Return whether a text is in its name, its question, its truth or an answer."""
        asked = self.asked or RowData("", "", {})
        said = [run.answer or run.error for run in self.row.runs]
        texts = (self.row.row_id, str(self.row.row_index), asked.user_prompt, asked.ground_truth)
        return any(text in each.lower() for each in (*texts, *said) if each)


def list_rows(context: PageContext, run: Run) -> dict[str, Any]:
    """Return the rows that an address asks for, and how many rows have which outcome."""
    if (run.metrics or {}).get("overview", {}).get("completed_samples", 0) > _RUNS:
        raise Refused(422, "too_many", f"rows of more than {_RUNS:,} runs are only in the report")
    recent: Recent[list[RowView]] = context.request.app.state.rows
    rows = recent.get(run, lambda: _rows(context, run))
    outcomes = [outcome for row in rows for outcome in {*row.outcomes}]
    counts = {name: outcomes.count(name) for name in sorted({*outcomes})}
    wanted, text, offset = (
        context.query("rows"),
        context.query("find").lower(),
        context.whole("from"),
    )
    found = [row for row in rows if (not wanted or wanted in row.outcomes) and row.has(text)]
    shown = found[offset : offset + PAGE]
    return {"rows": shown, "total": len(found), "counts": counts, "page_size": PAGE}


def _rows(context: PageContext, run: Run) -> list[RowView]:
    suite, asked = read_suite(run, figures=False), read_questions(context, run)
    rows = (
        RowView(row, [each.outcome for each in row.runs], asked.get(row.row_index))
        for row in suite.rows
    )
    return sorted(rows, key=lambda row: row.rank)


def report_of(run: Run) -> dict[str, Any]:
    """Return the report; refuse a run without one."""
    if run.report is None:
        raise Refused(404, "no_report", f"the run {run.name} has no report: it is {run.status}")
    return run.report


def read_suite(run: Run, *, figures: bool = True) -> SuiteResult:
    """Return what the report of a run has; refuse one that this version does not read."""
    from pytest_osmosis.reports.json_reader import checked, result_of

    try:
        return result_of(checked(report_of(run)), figures=figures).suites[0]
    except ValueError:
        message = f"the report of {run.name} is not one that this version reads"
        raise Refused(422, "unreadable_report", message) from None


def read_conversations(context: PageContext, run: Run) -> Sequence[bytes]:
    """Return what was said in the run, where this machine has it and it is not too much."""
    found = open_conversations(context.session, context.vault, context.settings.data, run)
    if found is None:
        return ()
    with found.file:
        return () if found.size > MOST_BYTES else [*found.lines()]


def read_questions(context: PageContext, run: Run) -> dict[int, RowData]:
    """Return what was asked in each row, as far as conversations are there."""
    from pytest_osmosis.reports.saved_conversations import asked_in

    found: dict[int, RowData] = {}
    try:
        for line in map(json.loads, read_conversations(context, run)):
            if line["row_index"] not in found:
                found[line["row_index"]] = asked_in(line["messages"], line.get("ground_truth"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}  # a program of the run wrote something else beside its report
    return found


def render_report(context: PageContext, run: Run) -> str:
    """Return the report's page."""
    from pytest_osmosis.reports import html
    from pytest_osmosis.reports.json_reader import UnreadableReport
    from pytest_osmosis.reports.saved_conversations import beside
    from pytest_osmosis.reports.saved_report import read_saved

    with TemporaryDirectory(prefix="osmosis-report-") as folder:
        path = Path(folder) / "report.json"
        path.write_text(json.dumps(report_of(run)), "utf-8")
        said = beside(path)
        said.write_bytes(b"".join(read_conversations(context, run)))
        try:
            try:
                saved = read_saved(path)
            except UnreadableReport:  # perhaps for what a program of the run wrote beside it
                said.unlink()
                saved = read_saved(path)
        except UnreadableReport:
            message = "the report is not one that this version reads"
            raise Refused(422, "unreadable_report", message) from None
        return html.render(saved.result, saved.sections, saved.conversations)
