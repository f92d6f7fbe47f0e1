"""Which rows and errors are shown first."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.features.html import report as html
from pytest_osmosis.features.markdown.report import render
from pytest_osmosis.reports.highlights import (
    error_kind,
    lowest_rows,
    row_name,
    some_error_kinds,
    unscored_rows,
)
from pytest_osmosis.reports.json_writer import write
from pytest_osmosis.reports.summary import summary
from pytest_osmosis.run_result import RunResult
from tests.support.made_results import EXACT, RunSpec, result_of, suite_of


def test_the_lowest_rows_are_those_with_the_fewest_passes_then_the_lowest_scores():
    suite = suite_of([[1.0, 1.0], [0.5, 0.5], [1.0, 0.0], [0.0, 0.0]])
    assert [(row_name(low.row), low.passed) for low in lowest_rows(suite)] == [
        ("row-3", 0), ("row-1", 0), ("row-2", 1)
    ]  # fmt: skip


def test_a_run_without_a_score_says_nothing_about_its_row():
    suite = suite_of([[1.0, "overloaded"], [1.0, 0.0], ["overloaded", "overloaded"], [0.0, 0.0]])
    assert [row_name(low.row) for low in lowest_rows(suite)] == ["row-3", "row-1"]
    lines = summary(result_of(suite))
    assert "lowest rows: row-3 0/2, row-1 1/2" in lines
    markdown = render(result_of(suite))
    assert "<code>row-0</code> 1 of 2 runs has no score" in markdown
    assert "<code>row-2</code> 2 of 2 runs have no score" in markdown


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]], "1 of 3 rows mixed (some runs pass, others fail)"),
        ([[1.0, "overloaded"], [0.0, "overloaded"], [1.0, None]], ""),
        ([[1.0], [0.0]], ""),
    ],
)
def test_a_row_is_mixed_where_runs_that_count_pass_and_fail(
    rows: list[list[RunSpec]], said: str, tmp_path: Path
):
    result = result_of(suite_of(rows))
    line = next(line for line in summary(result) if line.startswith("runs: "))
    assert line.partition("; ")[2] == said
    for report in render(result), html.render(result):
        assert ("1 of 3 rows mixed" in report) == bool(said)
    write(result, tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["mixed_rows"] == bool(said)


def test_what_the_agent_raised_is_a_run_that_fails():
    suite = suite_of([[1.0, "boom"], [1.0, "boom"]])
    causes = ["agent", "eval_fn"]
    rows = [
        replace(row, runs=(row.runs[0], replace(row.runs[1], error_type=cause, error_kind=None)))
        for row, cause in zip(suite.rows, causes, strict=True)
    ]
    assert replace(suite, rows=tuple(rows)).mixed_rows == len(causes)


def test_a_row_and_its_count_stay_on_one_line():
    suite = suite_of([[1.0, 0.0]] * 5)
    for width in range(30, 60):
        lines = summary(result_of(suite), width=width)
        at = next(at for at, line in enumerate(lines) if line.startswith("lowest rows: "))
        listed = [line for line in lines[at : at + 5] if "row-" in line]
        assert all(line.rstrip(",").endswith(" 1/2") for line in listed), width
        assert max(map(len, listed)) <= width


def ended(row: int, **fields: object) -> RunResult:
    return RunResult("data.jsonl", row, 0, **fields)  # type: ignore[arg-type]


def test_no_row_is_lowest_for_a_judge_that_failed_but_for_a_function_that_did():
    suite = suite_of([[1.0], [1.0], [0.0]], eval_fns=(EXACT, "ev:s"))
    broken = [
        ended(
            row,
            scores={EXACT: score},
            error="503",
            error_type="eval_fn",
            error_kind="judge_failed",
            judge_errors={"ev:s": "judge_failed"},
        )
        for row, score in enumerate((1.0, 1.0, 0.0))
    ]
    broken = aggregate(suite.info, broken, selected=3)
    assert [(row_name(low.row), str(low)) for low in lowest_rows(broken)] == [
        ("row-2", "0 of 1 run passed")
    ]
    assert "<code>row-0</code> 1 of 1 run has no score" in render(result_of(broken))
    raised = [replace(run, judge_errors={}, error_kind=None) for run in broken.runs]
    failed = lowest_rows(aggregate(suite.info, raised, selected=3))
    assert [row_name(low.row) for low in failed] == ["row-2", "row-0", "row-1"]


def test_no_row_is_lowest_where_no_run_has_a_score():
    suite = suite_of([[1.0], [1.0]])
    runs = [ended(row, error="ValueError: no", error_type="agent") for row in (0, 1)]
    broken = aggregate(suite.info, runs, selected=2)
    assert lowest_rows(broken) == []
    assert unscored_rows(broken) == []  # they count as 0.0
    partly = aggregate(suite.info, [runs[0], suite.rows[1].runs[0]], selected=2)
    assert [row_name(low.row) for low in lowest_rows(partly)] == ["row-0"]


def test_the_terminal_and_markdown_name_the_lowest_rows_in_one_order():
    suite = suite_of([[1.0, 0.9], [1.0, 0.0]])
    assert "lowest rows: row-1 1/2, row-0 1/2" in summary(result_of(suite))
    markdown = render(result_of(suite))
    assert markdown.index("<code>row-1</code>") < markdown.index("<code>row-0</code>")


def test_errors_have_kinds_and_the_rare_ones_are_summed_up():
    kinds = [f"Kind{letter}Error" for letter in "ABCDEFG"]
    runs = [
        RunResult("s", row, 0, error=f"{kind}: boom", error_type="agent")
        for row, kind in enumerate([kinds[0], *kinds])
    ]
    lines = some_error_kinds(runs)
    assert lines[0] == "raised KindAError 2"
    assert lines[-1] == "others 2"
    assert len(lines) == 6


def test_what_an_error_is_called():
    def run(**fields: object) -> RunResult:
        return RunResult("s", 0, 0, **fields)  # type: ignore[arg-type]

    assert error_kind(run(error_type="timeout", error="the agent timed out")) == "timeout"
    assert error_kind(run(error_type="provider", error_kind="auth")) == "provider auth"
    assert error_kind(run(error_type="eval_fn", error="`m:f` raised KeyError: 'x'")) == (
        "eval_fn KeyError"
    )
    assert error_kind(run(error_type="agent", error="there was no way")) == "raised"


def test_a_budget_that_is_spent_before_any_run_has_ended_shows_no_figures():
    nothing = replace(result_of(suite_of([[None], [None]], n=1)), halted="the time budget is spent")
    assert summary(nothing) == ["stopped: the time budget is spent; no run had ended"]
