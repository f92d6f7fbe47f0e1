"""The report of a run: its rows, the worst first, and its HTML page, as a child reads them."""

from __future__ import annotations

import io
import logging
import os
import pickle
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sized
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from osmosis_executors.job import MIB, JobLimits
from pytest_osmosis.reports.saved_conversations import beside

from ..database.models import Run
from ..errors import Refused
from ..execution.outcome import open_conversations
from ..limited import Turns, run_limited
from ..runs.records import report_text
from . import report_reader
from .context import PageContext
from .report_reader import RowView

PAGE = 50
_KEPT = 8
_RUNS = 50_000  # whose rows are shown: 10,000 take about a second
MOST_BYTES = 256 * 1024 * 1024
"""Of conversations that are looked through for a page."""
_LIMITS = JobLimits(file_bytes=256 * MIB, memory_bytes=2048 * MIB)
TIME_S = 60.0
"""How long a report may take to be read."""
T = TypeVar("T", bound=Sized)
_log = logging.getLogger(__name__)


class Recent(Turns, Generic[T]):
    """What was made last of reports: of a large one that takes seconds, a workspace at a time."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._made: OrderedDict[str, T] = OrderedDict()

    def get(self, run: Run, make: Callable[[], T]) -> T:
        """Return what was made of the report of a run, or make it; keep no longer one."""
        key = f"{run.id} {run.status}"
        with self.turn(run.workspace_id):
            found = self._made.pop(key, None) or make()
            if len(found) <= self._most:
                self._made[key] = found
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            return found


def list_rows(context: PageContext, run: Run) -> dict[str, Any]:
    """Return the rows that an address asks for, and how many rows have which outcome."""
    if (run.metrics or {}).get("overview", {}).get("completed_samples", 0) > _RUNS:
        raise Refused(422, "too_many", f"rows of more than {_RUNS:,} runs are only in the report")
    recent: Recent[list[RowView]] = context.request.app.state.rows
    rows = recent.get(run, lambda: _rows(context, run))
    outcomes = [outcome for row in rows for outcome in {*row.outcomes}]
    counts = {name: outcomes.count(name) for name in sorted({*outcomes})}
    if mixed := sum(row.row.is_mixed for row in rows):
        counts["mixed"] = mixed
    wanted, text, offset = (
        context.query("rows"),
        context.query("find").lower(),
        context.whole("from"),
    )
    found = [row for row in rows if row.fits(wanted) and row.has(text)]
    shown = found[offset : offset + PAGE]
    return {"rows": shown, "total": len(found), "counts": counts, "page_size": PAGE}


def _rows(context: PageContext, run: Run) -> list[RowView]:
    return [*_unpickled(read(context, "rows", run))]


def compare(context: PageContext, run: Run, baseline: Run) -> Iterator[Any]:
    """Yield what `report_reader` says of a run against another one."""
    recent: Recent[list[RowView]] = context.request.app.state.rows
    with recent.turn(run.workspace_id):
        return _unpickled(read(context, "comparison", run, baseline))


def _unpickled(text: bytes) -> Iterator[Any]:
    """Yield what our own program has written, one after the other."""
    file = io.BytesIO(text)
    while file.tell() < len(text):
        yield pickle.load(file)


def render_report(context: PageContext, run: Run) -> str:
    """Return the report's page."""
    return read(context, "html", run).decode("utf-8")


def report_of(context: PageContext, run: Run) -> bytes:
    """Return the report, which is not parsed; refuse a run without one."""
    text = report_text(context.session, run)
    if text is None:
        raise Refused(404, "no_report", f"the run {run.name} has no report: it is {run.status}")
    return text


def read(context: PageContext, kind: str, *runs: Run) -> bytes:
    """Return what a program makes of the reports of runs; refuse what it cannot read."""
    with TemporaryDirectory(prefix="osmosis-report-") as name:
        folder = Path(name)
        for run in runs:
            _write(context, run, folder / f"{run.name}.json")
        files = [f"{run.name}.json" for run in runs]
        status, printed = run_limited(
            "-m",
            report_reader.__name__,
            kind,
            *files,
            "found",
            folder=folder,
            time_s=TIME_S,
            limits=_LIMITS,
        )
        if status == report_reader.UNREADABLE:
            message = f"the report of {runs[0].name} is not one that this version reads"
            raise Refused(422, "unreadable_report", message)
        if status:
            printed = printed.strip()[-500:]
            _log.warning("a report is not read: exit status %s: %s", status, printed)
        if status != 0:
            message = f"the report of {runs[0].name} is too large to be shown: download it"
            raise Refused(422, "too_large", message)
        return (folder / "found").read_bytes()


def _write(context: PageContext, run: Run, report: Path) -> None:
    """Write a report, with the conversations beside it where there are some, and not too many."""
    report.write_bytes(report_of(context, run))
    said = open_conversations(context.settings.data, run)
    if said is None:
        return
    with said, beside(report).open("wb") as file:
        if os.fstat(said.fileno()).st_size <= MOST_BYTES:
            shutil.copyfileobj(said, file)
