"""Pass thresholds: one for all eval functions, and their own for some."""

from __future__ import annotations

import pytest

from pytest_osmosis.reports.json_reader import read_result
from tests.support.modes import each_mode
from tests.support.project import Project

HELD = ["--eval-fn=rewards:length", "--pass-threshold=0.9", "--pass-threshold=length=0.5"]


@each_mode
def test_an_eval_function_is_held_to_its_own_threshold(project: Project, workers: int):
    project.rows("abcde", "abcd")
    session = project.run(*HELD, "--junitxml=out.xml", workers=workers, n="2")
    assert session.outcomes == {"passed": 2, "failed": 2}, session.out
    assert "a run passes from 0.9 (rewards:length from 0.5)" in session.out
    assert "rewards:length scored 0.4, below the threshold 0.5" in session.out
    report = session.report
    assert report["config"]["pass_threshold"] == 0.9
    functions = report["summary"]["eval_fns"]
    assert functions["rewards:length"]["threshold"] == 0.5
    assert functions["rewards:length"]["pass_at_1"] == 0.5
    assert functions["rewards:exact"]["threshold"] is None
    assert functions["rewards:exact"]["pass_at_1"] == 1.0


def test_a_saved_report_is_read_with_the_thresholds(project: Project):
    project.rows("abcde", "abcd")
    project.run(*HELD)
    [suite] = read_result(project.path / "out.json").suites
    assert suite.info.thresholds == {"rewards:length": 0.5}
    assert suite.functions[1]["min"] == 0.4 and suite.threshold_of(suite.functions[1]) == 0.5


def test_a_rescored_evaluation_keeps_them_and_takes_new_ones(project: Project):
    project.rows("abcde", "abcd")
    project.run(*HELD)
    again = "--osmosis-rescore=agent.agent_loop-data-m"
    assert project.plain("-n0", again).outcomes == {"passed": 1, "failed": 1}
    lower = project.plain("-n0", again, "--pass-threshold=length=0.4")
    assert lower.outcomes == {"passed": 2}, lower.out


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="[tool.pytest] is new in pytest 9")
def test_the_ini_file_takes_a_number_or_a_list(project: Project):
    project.rows("abcde")
    project.write("pyproject.toml", "[tool.pytest]\nosmosis_pass_threshold = 0.9\n")
    assert project.run("--eval-fn=rewards:length").outcomes == {"failed": 1}
    several = '[tool.pytest]\nosmosis_pass_thresholds = ["0.9", "length=0.5"]\n'
    project.write("pyproject.toml", several)
    assert project.run("--eval-fn=rewards:length").outcomes == {"passed": 1}
