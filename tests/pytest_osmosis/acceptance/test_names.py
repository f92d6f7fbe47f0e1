"""What shares a name with something else has its own figures all the same."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.features.comparison.candidates import _labels
from pytest_osmosis.reports.formats import overviews
from pytest_osmosis.reports.saved_report import read_saved
from tests.support.modes import each_mode
from tests.support.project import Project

AGENT = "async def run(messages):\n    return '{0}'\n"
FUNCTION = """
def score(solution_str, ground_truth):
    return {0} if solution_str == ground_truth else {0} / 10
"""
ROW = {"user_prompt": "q"}


@pytest.fixture
def namesakes(project: Project) -> Project:
    """Two data files, agents and functions of one name each; rows that are equal."""
    for folder, weight in (("a", 0.5), ("b", 0.8)):
        project.write(f"{folder}/agent.py", AGENT.format(folder))
        project.write(f"{folder}/rewards.py", FUNCTION.format(weight))
    project.rows(*[{**ROW, "ground_truth": truth} for truth in "aaab"], name="x/q.jsonl")
    project.rows(*[{**ROW, "ground_truth": truth} for truth in "bbaa"], name="y/q.jsonl")
    return project


def options(project: Project, *more: str) -> list[str]:
    both = [
        f"--osmosis-{name}={folder}/{file}"
        for name, file, folders in (
            ("data", "q.jsonl", "xy"),
            ("agent", "agent.py:run", "ab"),
            ("eval-fn", "rewards.py:score", "ab"),
        )
        for folder in folders
    ]
    usual = project.options(agent=None, data=None, eval_fn=None, model=None, base_url=None)
    return [*usual, *both, "--pass-threshold=0.1", *more]


def mean(right: int, weight: float) -> float:
    return (right * weight + (4 - right) * weight / 10) / 4


@each_mode
def test_each_has_its_own_figures_everywhere(namesakes: Project, workers: int):
    asked = options(namesakes, "--osmosis-html=o.html", "--osmosis-runs-table=o.csv")
    session = namesakes.plain(f"-n{workers}", *asked)
    assert session.ret == 1, session.out + session.err
    rights = {("x", "a"): 3, ("x", "b"): 1, ("y", "a"): 2, ("y", "b"): 2}
    found: dict[tuple[str, str, str], float] = {}
    for suite in session.report["suites"]:
        place = suite["name"][0], suite["config"]["agent"][0]
        for name, figures in suite["summary"]["eval_fns"].items():
            found[(*place, name[0])] = figures["mean"]
    expected = {
        (*place, name): mean(right, weight)
        for place, right in rights.items()
        for name, weight in (("a", 0.5), ("b", 0.8))
    }
    assert found == pytest.approx(expected)
    result = read_saved(namesakes.path / "out.json").result
    shown = {each.title: [row[:2] for row in each.table.rows] for each in overviews(result)}
    assert shown == {
        f"candidates on {data}/q.jsonl, {name}/rewards.py:score": [
            [label, f"{expected[data, agent, name]:.3f}"]
            for label, agent in (("run", "a"), ("run@2", "b"))
        ]
        for data in "xy"
        for name in "ab"
    }
    with (namesakes.path / "o.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    assert [float(run["score[b/rewards.py:score]"]) for run in runs[:4]] == [0.8] * 3 + [0.08]
    page = (namesakes.path / "o.html").read_text()
    assert set(re.findall(r">mean ([ab]/rewards.py:score)<", page)) == {
        "a/rewards.py:score", "b/rewards.py:score",
    }  # fmt: skip


def test_another_session_is_compared_with_its_own(namesakes: Project):
    assert namesakes.plain("-n0", *options(namesakes)).ret == 1
    (namesakes.path / "out.json").rename(namesakes.path / "base.json")
    turned = [
        *(each for each in reversed(options(namesakes)) if "=x/" in each or "=y/" in each),
        *(each for each in options(namesakes) if "=x/" not in each and "=y/" not in each),
        "--osmosis-baseline=base.json", "--osmosis-gate=mean[a/rewards.py:score] - baseline >= 0",
    ]  # fmt: skip
    session = namesakes.plain("-n0", *turned)
    assert session.ret == 0, session.out + session.err
    for suite in session.report["suites"]:
        for each in suite["baseline"]["eval_fns"].values():
            assert (each["rows"], each["changes"]) == (4, [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--osmosis-gate=mean[score] >= 0"], "'score' is not an eval function here, only a/"),
        (
            ["--osmosis-gate=mean[a/rewards.py:score,agent=run] >= 0"],
            "several agents are called 'run': a/agent.py:run, b/agent.py:run; name one so",
        ),
        (["--pass-threshold=score=0.5"], "'score' is not one eval function here, only a/"),
        (
            ["--eval-fn=rewards:score"],
            "rewards.py is meant, but another module 'rewards' was imported before, from ",
        ),
    ],
)
def test_a_name_that_is_not_one_things_is_refused(namesakes: Project, given: list[str], said: str):
    session = namesakes.plain("-n0", *options(namesakes, *given))
    assert (session.ret, said in session.mistake) == (4, True), session.mistake
    assert namesakes.endpoint.requests == 0


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ("a", [""]),
        ("a b", ["a", "b"]),
        ("a a", ["a", "a@2"]),
        ("a@3 a a", ["a@3", "a", "a@4"]),
        ("a@2 a a a", ["a@2", "a", "a@3", "a@4"]),
    ],
)
def test_labels_are_distinguished(names: str, labels: list[str]):
    found = _labels(names.split())
    assert found == labels
    assert len(set(found)) == len(found)


def test_columns_that_are_called_like_fields_are_all_kept(project: Project):
    own: dict[str, Any] = {"column[answer]": "one", "answer": "two", "column[column[answer]]": "3"}
    project.rows({"user_prompt": "a", "ground_truth": "a", **own})
    project.run("--osmosis-runs-table=o.csv")
    with Path(project.path / "o.csv").open(newline="") as file:
        [run] = csv.DictReader(file)
    assert run["answer"] == "a"
    assert {"one", "two", "3"} <= set(run.values())
