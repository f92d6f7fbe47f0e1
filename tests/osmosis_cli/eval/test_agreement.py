"""`osmosis eval agreement`: eval functions against what people said of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from pytest_osmosis.features.labels.run_labels import RunLabel, change_labels
from pytest_osmosis.reports import json_writer
from pytest_osmosis.run_result import RunId
from tests.support.made_results import result_of, suite_of


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report of ten rows with two runs each; the runs 0 pass in rows 0 to 6."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "r.json"
    suite = suite_of([[float(row < 7), 0.0] for row in range(10)])
    json_writer.write(result_of(suite), path)
    return path


def label(report: Path, marks: dict[int, bool], note: str = "") -> None:
    for row, is_right in marks.items():
        run = RunId("data.jsonl", row, 0)
        change_labels(
            report, lambda now, run=run, said=is_right: now.with_run(run, RunLabel(said, note))
        )


def agreement(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["eval", "agreement", *words])
    return done.exit_code, done.output


def test_kappa_counts_and_the_runs_to_look_at_next(report: Path):
    label(report, {row: row < 5 or row == 9 for row in range(10)}, "no unit")
    status, out = agreement("r.json", "--json")
    found = json.loads(out)
    [function] = found["eval_fns"]
    assert (status, found["labelled"], function["labelled"]) == (0, 10, 10)
    assert (function["passes_but_wrong"], function["fails_but_right"]) == (2, 1)
    assert function["agreement"]["observed"] == pytest.approx(0.7)
    assert function["agreement"]["kappa"] == pytest.approx((0.7 - 0.54) / 0.46)
    interval = function["agreement"]["interval"]
    assert interval["low"] < function["agreement"]["kappa"] < interval["high"]
    assert [each["run"] for each in found["next"][:3]] == [
        *("row-5[run-0]", "row-6[run-0]", "row-9[run-0]")
    ]
    assert "passes what people call wrong: no unit" in found["next"][0]["why"]
    assert found["next"][3]["why"].startswith("not marked")
    status, out = agreement()
    assert status == 0
    for part in ("people call 6 runs right, 4 wrong", "kappa", "0.348", "70%", "look at next"):
        assert part in out, part


def test_runs_that_would_balance_what_is_marked_come_first(report: Path):
    label(report, {0: True, 1: True, 2: True})
    _, out = agreement("--json", "--next", "4")
    passed = {f"row-{row}[run-0]" for row in range(7)}
    assert [each["run"] in passed for each in json.loads(out)["next"]] == [False, True, False, True]


def test_a_label_of_a_run_that_was_repeated_counts_no_more(report: Path):
    label(report, {0: True})
    run = RunId("data.jsonl", 1, 0)
    change_labels(report, lambda now: now.with_run(run, RunLabel(False, "", started_at=1.0)))
    _, out = agreement("r.json", "--json")
    assert json.loads(out)["labelled"] == 1


def test_what_cannot_be_compared_is_said(report: Path):
    assert "no run here is marked as right or wrong" in agreement()[1]
    status, out = agreement("r.jsn")
    assert status != 0 and "no evaluation 'r.jsn' here. Did you mean 'r.json'?" in out
    (report.parent / "r.json.labels").write_text("{}")
    assert "r.json.labels: is no file of labels" in agreement()[1]
    labels = report.parent / "r.json.labels"
    labels.unlink()
    label(report, {0: True})
    labels.write_text(labels.read_text().replace("true", '"no"'))
    assert 'is_right is true, false or null, not "no"' in agreement()[1]
    labels.unlink()
    labels.mkdir()
    assert "r.json.labels: cannot be read: Is a directory" in agreement()[1]
