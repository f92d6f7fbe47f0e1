"""The table of runs: a line a run, written as CSV and as Parquet."""

from __future__ import annotations

import csv
from dataclasses import replace

import pyarrow.parquet as parquet

from pytest_osmosis.features.tables import runs_table
from pytest_osmosis.suite_results import RowData
from tests.support.made_results import EXACT, NASTY, result_of, suite_of

RESULT = result_of(suite_of([[1.0, 0.25], ["503, overloaded"]], answer=NASTY))


def test_csv_has_a_line_a_run_whatever_the_answers_hold(tmp_path):
    runs_table.write(RESULT, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row[f"score[{EXACT}]"] for row in rows] == ["1.0", "0.25", ""]
    assert [row["outcome"] for row in rows] == ["passed", "below", "error"]
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
    assert parquet.read_table(tmp_path / "a.parquet").to_pylist()[0]["answer"] == "\ufffd"
    runs_table.write(result_of(suite_of([[None]], n=1)), tmp_path / "b.parquet")
    assert parquet.read_table(tmp_path / "b.parquet").num_rows == 0


def test_columns_of_the_dataset_have_their_types_and_never_replace_a_field(tmp_path):
    suite = suite_of([[1.0], [0.0], [0.0]])
    columns = [
        {"level": 1, "ratio": 1, "mixed": 1, "error": "mine"},
        {"level": 2, "ratio": 0.5, "mixed": "two"},
    ]
    rows = [
        replace(row, data=RowData("What?", None, data))
        for row, data in zip(suite.rows, columns, strict=False)
    ]
    result = result_of(replace(suite, rows=(*rows, suite.rows[2])))
    runs_table.write(result, tmp_path / "runs.parquet")
    table = parquet.read_table(tmp_path / "runs.parquet")
    names = ["user_prompt", "ground_truth", "level", "ratio", "mixed", "error", "column[error]"]
    assert [tuple(row[name] for name in names) for row in table.to_pylist()] == [
        ("What?", None, 1, 1.0, "1", None, "mine"),
        ("What?", None, 2, 0.5, "two", None, None),
        (None, None, None, None, None, None, None),
    ]
    runs_table.write(result, tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="", encoding="utf-8") as file:
        assert [row["mixed"] for row in csv.DictReader(file)] == ["1", "two", ""]
