"""A saved report says what the session said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_osmosis.analysis.score_table import score_table_of
from pytest_osmosis.features.comparison.baseline import baseline_of, compared
from pytest_osmosis.reports.json_writer import write
from pytest_osmosis.reports.saved_report import SavedReport, read_saved
from pytest_osmosis.reports.view import view_of
from pytest_osmosis.run_result import RunId
from pytest_osmosis.suite_results import SuiteResult
from tests.support.made_results import result_of, suite_of

NAME, OTHER = "data.jsonl", "data.jsonl (calc-1b)"


@pytest.fixture
def suite() -> SuiteResult:
    """A suite with a baseline model: a row is broken, and one of its runs has no score."""
    other = suite_of([[1.0, 1.0], [0.0, 0.0]], name=OTHER, model="calc-1b", companion_of=NAME)
    now = suite_of([[0.0, "busy"], [0.0, 0.0]])
    table, against = score_table_of(now), baseline_of(other, "calc-1b")
    changes = compared(now, table, baseline=against, confidence=0.95)
    return replace(now, sections={"baseline": changes}, companion=other)


@pytest.fixture
def saved(suite: SuiteResult, tmp_path: Path) -> SavedReport:
    """The suite's report, read back with the conversations of both models."""
    write(result_of(suite), tmp_path / "out.json")
    lines = [
        {"suite": name, "row_index": 0, "run_index": 0, "ground_truth": "2",
         "messages": [{"role": "user", "content": asked}]}
        for name, asked in ((NAME, "1 + 1?"), (OTHER, "Asked of the other."))
    ]  # fmt: skip
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / "out.trajectories.jsonl").write_text(text)
    return read_saved(tmp_path / "out.json")


def test_what_the_baseline_model_said_is_not_taken_for_the_models(saved: SavedReport):
    run = RunId(NAME, 0, 0)
    record = saved.conversations(run)
    assert record is not None
    assert [message["content"] for message in record.messages] == ["1 + 1?"]
    section = saved.sections(run)
    assert section is not None and "Asked of the other." not in section


def test_a_row_that_changed_has_the_runs_that_it_had(suite: SuiteResult, saved: SavedReport):
    for each in (suite, saved.result.suites[0]):
        [change] = each.sections["baseline"].comparisons[0].changes
        assert (change.verdict, change.figures) == ("changed", "2/2 → 0/1")


def test_what_the_baseline_model_took_is_said_too(suite: SuiteResult, saved: SavedReport):
    for result in (result_of(suite), saved.result):
        assert view_of(result).suites[0].facts[1:3] == [
            "4 rollouts, 736 tokens, $0.0040",
            "the baseline calc-1b: 4 rollouts, 736 tokens, $0.0040",
        ]
