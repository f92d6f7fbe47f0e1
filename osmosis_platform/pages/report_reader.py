"""Reports of runs read for pages, as a program: `… report_reader KIND FILES… TARGET`.

What a model wrote is in them. It has limits of memory and time, and the platform reads what it has
made of them: rows one after the other, so that others are answered in between.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_osmosis.reports.json_reader import UnreadableReport, read_result
from pytest_osmosis.reports.saved_conversations import asked_in, beside
from pytest_osmosis.run_result import is_counted
from pytest_osmosis.suite_results import RowData, RowResult, SuiteResult

UNREADABLE = 3
"""The exit status for a report that this version does not read."""


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

    def fits(self, wanted: str) -> bool:
        """Return whether one of its runs came to an outcome, or it is mixed; "" is anything."""
        return self.row.is_mixed if wanted == "mixed" else not wanted or wanted in self.outcomes

    def has(self, text: str) -> bool:
        """Return whether a text is in its name, its question, its truth or an answer."""
        asked = self.asked or RowData("", "", {})
        said = [run.answer or run.error for run in self.row.runs]
        texts = (self.row.row_id, str(self.row.row_index), asked.user_prompt, asked.ground_truth)
        return any(text in each.lower() for each in (*texts, *said) if each)


def main(kind: str, *names: str) -> int:
    """Read reports, each with the conversations beside it; return the exit status."""
    *reports, target = map(Path, names)
    with target.open("wb") as file:
        try:
            if kind == "html":
                file.write(_page(reports[0]).encode("utf-8", "replace"))
            else:
                for each in _rows(reports[0]) if kind == "rows" else _comparison(*reports):
                    pickle.dump(each, file)
        except UnreadableReport:
            return UNREADABLE
    return 0


def _suite(report: Path, *, figures: bool) -> SuiteResult:
    return read_result(report, figures=figures).suites[0]


def _rows(report: Path) -> Iterator[RowView]:
    """Yield the rows, the worst first."""
    suite, asked = _suite(report, figures=False), _questions(report)
    rows = (
        RowView(row, [each.outcome for each in row.runs], asked.get(row.row_index))
        for row in suite.rows
    )
    yield from sorted(rows, key=lambda row: row.rank)


def _comparison(run: Path, baseline: Path) -> Iterator[Any]:
    """Yield the suites without their rows, the questions, notes, and then each function."""
    from pytest_osmosis.features.comparison.baseline import compare_suites

    suite, before = _suite(run, figures=True), _suite(baseline, figures=True)
    report = compare_suites(suite, before, baseline.stem)
    yield [replace(before, rows=()), replace(suite, rows=())]
    yield [_questions(run), _questions(baseline)]
    yield report.notes
    yield from report.comparisons


def _questions(report: Path) -> dict[int, RowData]:
    """Return what was asked in each row, as far as conversations are there."""
    found: dict[int, RowData] = {}
    try:
        with beside(report).open("rb") as lines:
            for line in map(json.loads, lines):
                if line["row_index"] not in found:
                    found[line["row_index"]] = asked_in(line["messages"], line.get("ground_truth"))
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}  # a program of the run wrote something else beside its report
    return found


def _page(report: Path) -> str:
    """Return the report's page."""
    from pytest_osmosis.features.html import report as html
    from pytest_osmosis.reports.saved_report import read_saved

    try:
        saved = read_saved(report)
    except UnreadableReport:  # perhaps for what a program of the run wrote beside it
        beside(report).unlink(missing_ok=True)
        saved = read_saved(report)
    return html.render(saved.result, saved.sections, saved.conversations)


if __name__ == "__main__":
    # By the name of the module its classes are found again.
    sys.exit(import_module("osmosis_platform.pages.report_reader").main(*sys.argv[1:]))
