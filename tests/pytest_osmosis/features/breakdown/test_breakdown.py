"""Figures by the values of a column: those of a suite of these rows alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.features.breakdown.results import (
    VALUES_SHOWN,
    Breakdown,
    Breakdowns,
    NoColumn,
    broken_down,
    check_column,
)
from pytest_osmosis.reports.json_writer import write
from pytest_osmosis.reports.saved_report import read_saved
from pytest_osmosis.reports.summary import summary
from pytest_osmosis.reports.tables import by_columns
from pytest_osmosis.suite_results import RowData, SuiteResult
from tests.support.made_results import EXACT, RunSpec, result_of, suite_of


def by_level(rows: Sequence[Sequence[RunSpec]], levels: Sequence[object]) -> SuiteResult:
    suite = suite_of(rows)
    data = [RowData("q", None, {"Level": level}) for level in levels]  # type: ignore[dict-item]
    with_data = (replace(row, data=data[row.row_index]) for row in suite.rows)
    return broken_down(replace(suite, rows=tuple(with_data)), ["level"], confidence=None)


def columns(suite: SuiteResult) -> tuple[Breakdown, ...]:
    section = suite.sections["by"]
    assert isinstance(section, Breakdowns)
    return section.columns


def test_each_value_has_the_figures_of_its_own_rows():
    rows: list[list[RunSpec]] = [[1.0, 0.0], [0.0, "busy"], [1.0, 1.0], ["busy", "busy"]]
    [found] = columns(by_level(rows, [10, 9, 10, None]))
    assert found.column == "Level"
    ten, nine, null = found.values
    assert (ten.value, ten.row_indices, ten.finished) == ("10", (0, 2), 4)
    assert ten.functions == suite_of([rows[0], rows[2]]).functions
    assert nine.functions == suite_of([rows[1]]).functions
    assert null.functions[0].mean is None


def test_numbers_are_in_order_of_size_and_texts_as_they_come():
    def values(*levels: object) -> list[str]:
        [found] = columns(by_level([[1.0]] * len(levels), levels))
        return [each.value for each in found.values]

    assert values(10, 9, 2.5, 10) == ["2.5", "9", "10"]
    assert values("two", "one", None, "two", True) == ["two", "one", "null", "true"]


def test_a_report_read_back_has_the_same_breakdown(tmp_path: Path):
    plain = by_level([[1.0, 0.5], [0.0, 0.0]], ["a", "b"])
    whole = aggregate(plain.info, plain.runs, selected=4, confidence=0.9)
    section = plain.sections["by"].joined([], whole)
    assert section is not None
    suite = replace(whole, sections={"by": section})
    write(result_of(suite), tmp_path / "out.json")
    document = json.loads((tmp_path / "out.json").read_text())
    assert read_saved(tmp_path / "out.json").result.suites[0].sections == suite.sections
    [value, _] = document["by"][0]["values"]
    assert (value["value"], value["row_indices"], value["total_runs"]) == ("a", [0], 2)
    assert value["eval_fns"][EXACT]["mean"] == 0.75


def test_tables_show_so_many_values_and_say_how_many_are_left():
    suite = by_level([[1.0]] * 25, [f"v{number}\x1b[31m" for number in range(25)])
    [table] = by_columns(suite)
    assert (len(table.table.rows), table.left_out) == (VALUES_SHOWN, 5)
    lines = summary(result_of(suite))
    assert "and 5 more values" in lines
    assert "\x1b" not in "".join(lines)


def test_a_column_that_no_row_has_is_named_with_those_there_are():
    rows = [{"level": 1}, {"Topic": "x"}]
    for name in ("LEVEL", "topic", "Ground_Truth", "system_prompt"):
        check_column(name, rows)
    columns = "Topic, ground_truth, level, system_prompt, user_prompt"
    said = f"no column 'levl', only {columns}; did you mean 'level'"
    with pytest.raises(NoColumn, match=said):
        check_column("levl", rows)
