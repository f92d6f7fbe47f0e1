"""The recipes for CI: their shell lines run in the suite that the page shows.

`tox -e docs` checks the files themselves by the schemas of GitHub and GitLab.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from .blocks import ROOT, blocks
from .shell import Shell

PAGE = ROOT / "docs" / "guides" / "ci.md"
FILES = {block.file: block.text for block in blocks(PAGE) if block.file}
LINES_OF_JENKINS = re.findall(r"sh '''\n(.*?)'''", FILES["Jenkinsfile"], re.S)


@pytest.fixture
def suite(shell: Shell, pytester: pytest.Pytester) -> Shell:
    (pytester.path / "pyproject.toml").write_text(FILES["pyproject.toml"])
    rows = (pytester.path / "test_data.jsonl").read_text().splitlines(keepends=True)
    (pytester.path / "test_data.jsonl").write_text("".join(rows[:8]))
    return shell


def steps(file: str, job: str) -> Iterator[str]:
    """The shell lines of a job of GitHub Actions."""
    workflow: dict[str, Any] = yaml.safe_load(FILES[file])
    for step in workflow["jobs"][job]["steps"]:
        yield from lines(step.get("run", ""))


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def run(shell: Shell, lines: list[str]) -> None:
    for line in lines:
        command, _, _ = line.partition(" || test $?")
        assert shell(command) == 0, f"{line}\n{shell.printed}"


def complete(shell: Shell, pytester: pytest.Pytester) -> None:
    report = json.loads((pytester.path / "results.json").read_text())
    assert report["summary"]["complete"]
    assert [gate["outcome"] for gate in report["gates"]] == ["passed", "passed"]


def test_a_pull_request_is_evaluated_on_github(suite: Shell, pytester: pytest.Pytester):
    run(suite, [*steps(".github/workflows/evaluate.yml", "evaluate")])
    complete(suite, pytester)
    assert "2 of 2 gates passed" in (pytester.path / "comment.md").read_text()
    assert (pytester.path / "report.html").exists()


AGAINST_MAIN = ".github/workflows/evaluate-against-main.yml"
OF_GITLAB = yaml.safe_load(FILES[".gitlab/evaluate-against-main.yml"])


@pytest.mark.parametrize(
    ("of_main", "of_pull_request"),
    [
        ([*steps(AGAINST_MAIN, "main")], [*steps(AGAINST_MAIN, "pull-request")]),
        (OF_GITLAB["main"]["script"], OF_GITLAB["merge-request"]["script"]),
    ],
    ids=["GitHub", "GitLab"],
)
def test_a_worse_agent_fails_a_pull_request_and_the_same_agent_does_not(
    suite: Shell, pytester: pytest.Pytester, of_main: list[str], of_pull_request: list[str]
):
    def last_status(script: list[str], model: str) -> int:
        config = FILES["pyproject.toml"].replace("embedded/perfect", model)
        (pytester.path / "pyproject.toml").write_text(config)
        statuses = [suite(line.partition(" || test $?")[0]) for line in script]
        return max(statuses)

    assert last_status(of_main, "embedded") in (0, 1)  # is sometimes wrong
    assert last_status(of_pull_request, "embedded") == 0, suite.printed
    assert "no fall shown" in (pytester.path / "comment.md").read_text()
    assert last_status(of_pull_request, "embedded/broken") == 1
    comment = (pytester.path / "comment.md").read_text()
    assert "1 of 2 gates failed" in comment
    assert "regressed: <code>row-0</code>" in comment


@pytest.mark.slow
def test_shards_of_a_matrix_on_github_are_merged(
    suite: Shell, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    file = ".github/workflows/evaluate-in-shards.yml"
    for shard in yaml.safe_load(FILES[file])["jobs"]["shard"]["strategy"]["matrix"]["shard"]:
        monkeypatch.setenv("SHARD", str(shard))
        run(suite, [*steps(file, "shard")])
    run(suite, [*steps(file, "merge")])
    complete(suite, pytester)


@pytest.mark.slow
def test_shards_of_a_pipeline_on_gitlab_are_merged(
    suite: Shell, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
):
    pipeline = yaml.safe_load(FILES[".gitlab-ci.yml"])
    monkeypatch.setenv("CI_NODE_TOTAL", str(pipeline["evaluate"]["parallel"]))
    for shard in range(1, pipeline["evaluate"]["parallel"] + 1):
        monkeypatch.setenv("CI_NODE_INDEX", str(shard))
        run(suite, pipeline["evaluate"]["script"])
    run(suite, pipeline["judge"]["script"])
    complete(suite, pytester)


def test_a_build_of_jenkins_evaluates(suite: Shell, pytester: pytest.Pytester):
    [script] = LINES_OF_JENKINS
    run(suite, lines(script))
    complete(suite, pytester)
