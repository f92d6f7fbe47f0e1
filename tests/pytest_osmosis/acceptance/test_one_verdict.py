"""One evaluation with gates, looked at in every place: one verdict."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from osmosis_cli.eval.viewer.library import Library
from osmosis_cli.main import cli
from pytest_osmosis.reports.charts import charts_of
from pytest_osmosis.reports.view import view_of
from tests.support.project import Project


def runs(project: Project, *words: str) -> str:
    done = CliRunner().invoke(
        cli, ["eval", "runs", "--run-dir", str(project.path / ".osmosis/runs"), *words]
    )
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("gate", "status", "verdict"),
    [("mean >= 0.25", 0, "passed"), ("mean >= 0.9", 1, "failed")],
)
def test_it_is_that_of_the_exit_status(
    project: Project, gate: str, status: int, verdict: str
) -> None:
    project.endpoint.answers = lambda ask: ask.row if ask.row in ("a", "b") else "no"
    project.rows("a", "b", "c", "d")
    session = project.run(f"--osmosis-gate={gate}")
    assert session.ret == status
    assert [told["outcome"] for told in session.report["gates"]] == [verdict]
    [listed] = json.loads(runs(project, "list", "--json"))["runs"]
    assert (listed["verdict"], listed["state"]) == (verdict, "complete")
    shown = runs(project, "show", listed["name"])
    assert f"complete, {verdict}, 4/4 runs" in shown
    assert f"gate  {gate}" in shown
    assert "2 passed, 2 below" in shown.replace("2 below, 2 passed", "2 passed, 2 below")
    library = Library(project.path)
    found = {entry.kind: entry for entry in library.entries()}
    assert {entry.run.verdict for entry in found.values()} == {verdict}
    for kind in ("run", "report"):
        result = library.view(found[kind]).result
        assert view_of(result).state == verdict
        [chart] = charts_of(result.suites[0])
        assert [bar.state for bar in chart.scores.bars] == ["below", "passed"]


def test_a_run_that_ends_later_makes_the_kept_gates_void(project: Project) -> None:
    project.rows("a", "b")
    assert project.run("--osmosis-gate=mean >= 0.9").ret == 0
    project.endpoint.answers = lambda ask: "no"
    assert project.run("--osmosis-fresh").ret == 1
    listed = json.loads(runs(project, "list", "--json"))["runs"]
    assert [run["verdict"] for run in listed] == ["passed", "failed"]
