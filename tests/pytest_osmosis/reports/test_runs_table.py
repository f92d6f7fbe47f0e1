"""The table of runs: a line a run, told as CSV and as Parquet."""

from __future__ import annotations

import csv

import pyarrow.parquet as parquet

from pytest_osmosis.reports import runs_table
from tests.made_results import EXACT, NASTY, result_of, suite_of

RESULT = result_of(suite_of([[1.0, 0.25], ["503, overloaded"]], answer=NASTY))


def test_csv_has_a_line_a_run_whatever_the_answers_hold(tmp_path):
    runs_table.write(RESULT, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row[f"score[{EXACT}]"] for row in rows] == ["1.0", "0.25", ""]
    assert [row["outcome"] for row in rows] == ["passed", "failed", "error"]
    assert rows[0]["answer"] == NASTY
    assert rows[2]["error"] == "503, overloaded"


def test_parquet_has_the_same_with_types_and_nulls(tmp_path):
    runs_table.write(RESULT, tmp_path / "runs.PARQUET")
    table = parquet.read_table(tmp_path / "runs.PARQUET")
    rows = table.to_pylist()
    assert [row[f"score[{EXACT}]"] for row in rows] == [1.0, 0.25, None]
    assert rows[1] | {"row_index": 0, "run_index": 1, "passed": False, "tokens": 184} == rows[1]
    assert rows[0]["answer"] == NASTY
    assert str(table.schema.field("error_type").type) == "string"


def test_parquet_takes_half_characters_and_no_runs(tmp_path):
    runs_table.write(result_of(suite_of([[0.0]], answer="\ud800")), tmp_path / "a.parquet")
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist()[0]["answer"] == "\\ud800"
    runs_table.write(result_of(suite_of([[None]], n=1)), tmp_path / "b.parquet")
    assert parquet.read_table(tmp_path / "b.parquet").num_rows == 0
