"""The JSON report: its numbers, counted again from its rows, its form, and how it is written."""

from __future__ import annotations

import math
import os
import stat
import statistics
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.reports.json_models import Report
from tests.support import report_page
from tests.support.endpoints import Ask, completion, failure_reply, reply
from tests.support.modes import each_mode
from tests.support.project import Project, Session


def answers(ask: Ask) -> Any:
    """Wrong for some seeds, refused for one row, without usage or cut for others."""
    seed = ask.body.get("seed", 0)
    if ask.row == "refused":
        return failure_reply("no")
    if ask.row == "uncounted":
        return reply(200, completion(ask.row, usage=None))
    if ask.row == "cut":
        return reply(200, completion(ask.row, finish_reason="length"))
    return ask.row if (len(ask.row) * seed) % 3 else "wrong"


@pytest.fixture
def mixed(project: Project) -> Project:
    """Rows of every sort, of which some runs score and some do not."""
    project.endpoint.answers = answers
    project.rows("a", "bb", "ccc", "dddd", "refused", "uncounted", "cut", "raise", "boom")
    return project


def evaluated(project: Project, *args: str) -> Session:
    return project.run(
        *("--eval-fn=rewards:length", "--pass-threshold=0.4", "--osmosis-seed=1", *args),
        "--osmosis-no-journal",
        n="5",
        eval_fn="rewards:exact",
    )


def scores(report: dict[str, Any], name: str) -> Iterator[list[float]]:
    """The scores of each row's runs that count, 0.0 for what the agent broke."""
    for row in report["rows"]:
        runs = [run for run in row["runs"] if run["error_type"] != "provider"]
        yield [run["scores"].get(name, 0.0) for run in runs]


def drawn(passed: list[bool], k: int, enough: Any) -> Fraction:
    """The share of draws of k runs of which enough passed, by drawing them all."""
    draws = list(combinations(passed, min(k, len(passed))))
    return Fraction(sum(enough(draw) for draw in draws), len(draws))


def close(figure: float, truth: Fraction | float) -> bool:
    return math.isclose(figure, float(truth), rel_tol=1e-12, abs_tol=1e-15)


def test_every_number_can_be_counted_again_from_the_rows(mixed: Project):
    report = evaluated(mixed).report
    config, summary = report["config"], report["summary"]
    runs = [run for row in report["rows"] for run in row["runs"]]
    assert (summary["total_rows"], summary["total_runs"]) == (9, 45)
    assert summary["total_runs"] == len(runs)

    core = ["rewards:exact", "rewards:length"]
    assert (config["model"], config["n_runs"], config["pass_threshold"]) == ("m", 5, 0.4)
    assert config["eval_fns"] == core == list(summary["eval_fns"])
    assert isinstance(summary["total_duration_ms"], int) and summary["total_duration_ms"] > 0
    for number, row in enumerate(report["rows"]):
        assert row["row_index"] == number
        assert [run["run_index"] for run in row["runs"]] == [0, 1, 2, 3, 4]
    assert runs[0]["success"] is True and set(runs[0]["scores"]) == set(core)
    assert isinstance(runs[0]["duration_ms"], int) and isinstance(runs[0]["llm_ms"], int)
    assert (runs[0]["tokens"], runs[20]["success"]) == (15, False)

    for name in config["eval_fns"]:
        figures = summary["eval_fns"][name]
        by_row = [row for row in scores(report, name) if row]
        counted = [Fraction(score) for row in by_row for score in row]
        assert close(figures["mean"], Fraction(sum(counted), len(counted)))
        assert close(figures["std"], statistics.pstdev(counted))
        assert (figures["min"], figures["max"]) == (min(counted), max(counted))
        assert (figures["scored"], figures["missing"]) == (len(counted), len(runs) - len(counted))
        passed = [[score >= 0.4 for score in row] for row in by_row]
        for k in (1, 3, 5):
            any_of = [drawn(row, k, any) for row in passed]
            all_of = [drawn(row, k, all) for row in passed]
            assert close(figures[f"pass_at_{k}"], sum(any_of) / len(any_of))
            assert close(figures[f"pass_hat_{k}"], sum(all_of) / len(all_of))
        assert {key for key in figures if key.startswith("pass_")} == {
            f"pass_{kind}_{k}" for kind in ("at", "hat") for k in (1, 3, 5)
        }

    known = [run["tokens"] for run in runs if run["tokens"] is not None]
    assert summary["total_tokens"] == sum(known)
    assert summary["unknown_tokens"] == len(runs) - len(known) == 5
    assert summary["errors"] == {
        kind: sum(run["error_type"] == kind for run in runs) for kind in ("agent", "provider")
    }
    assert summary["finish_reasons"] == {"length": 5, "stop": 30}
    assert 0 < summary["eval_fns"]["rewards:exact"]["mean"] < 1

    text = (mixed.path / "out.json").read_text()
    assert Report.model_validate_json(text, strict=True)
    assert text.isascii() and text.endswith("}\n")


def test_rows_and_runs_are_sorted_whatever_order_they_finished_in(project: Project):
    project.endpoint.answers = lambda ask: [
        0.02 * (5 - int(ask.row)),
        reply(200, completion(ask.row)),
    ]
    project.rows(*"01234")
    report = project.run("--batch-size=5").report
    assert [row["row_index"] for row in report["rows"]] == [0, 1, 2, 3, 4]
    finished = [
        run["started_at"] + run["duration_ms"] / 1000
        for row in report["rows"]
        for run in row["runs"]
    ]
    assert finished != sorted(finished)


class TestAnswers:
    def test_they_can_be_left_out(self, project: Project):
        project.rows("not to be kept")
        session = project.run(
            "--osmosis-no-answers", "--junitxml=out.xml", "--osmosis-html=out.html"
        )
        assert session.runs[0]["answer"] is None
        page = report_page.page_of(project.path / "out.html")
        assert (page.runs[0].get("answer"), page.conversations) == (None, [])
        assert '"not to be kept"' not in (project.path / "out.json").read_text()


class TestWriting:
    @pytest.mark.fault("others can read the files")
    def test_its_mode_is_the_umasks_or_that_of_the_file_before(self, project: Project):
        project.rows("a")
        umask = os.umask(0o027)
        try:
            project.run("--osmosis-no-answers")
            path = project.path / "out.json"
            assert stat.S_IMODE(path.stat().st_mode) == 0o640
            path.chmod(0o600)
            project.run("--osmosis-no-answers")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            path.chmod(0o640)
            project.run("--osmosis-fresh")  # it holds answers
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        finally:
            os.umask(umask)

    def test_a_session_without_a_run_leaves_the_old_report_alone(self, project: Project):
        project.rows("a")
        project.write("out.json", "what was there")
        session = project.run("-k", "nothing")
        assert session.ret == 5 and "osmosis summary" not in session.out
        assert (project.path / "out.json").read_text() == "what was there"


def test_the_report_says_what_was_asked(project: Project):
    project.rows("a", "b", "c")
    session = project.run(temperature="0.5", seed="3", max_turns="4", limit="2", offset="1")
    assert [row["row_index"] for row in session.report["rows"]] == [1, 2]
    config = session.report["config"]
    assert config["agent"] == "agent:agent_loop"
    assert Path(config["data"]) == project.path / "data.jsonl"
    assert config["endpoint"] == project.endpoint.netloc
    settings = config["settings"]
    assert (settings["temperature"], settings["seed"]) == (0.5, 3)
    assert (settings["max_turns"], settings["limit"], settings["offset"]) == (4, 2, 1)


COUNTS_REPORTS = """
def pytest_terminal_summary(terminalreporter):
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    terminalreporter.write_line(f"reports: {len(reports)}")
"""


@each_mode
def test_a_run_has_one_report_and_three_where_somebody_looks_at_phases(
    project: Project, workers: int
):
    project.rows("a", {"user_prompt": "b", "ground_truth": "c"})
    project.write("conftest.py", COUNTS_REPORTS)
    assert "reports: 2" in project.run(workers=workers).lines
    assert "reports: 6" in project.run("--junitxml=out.xml", workers=workers).lines
