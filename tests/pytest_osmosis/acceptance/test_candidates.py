"""Several models and agents in one session: the same rows, one load, one table."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from osmosis_cli.eval.compare import compare_command
from osmosis_cli.eval.merge import merge_command
from osmosis_cli.eval.report import report_command
from pytest_osmosis import read_report
from tests.support.endpoints import Ask
from tests.support.modes import each_mode
from tests.support.project import KEPT, Project, Session

MODELS = ("a", "b", "c", "d")
TWO = ("--osmosis-model=a", "--osmosis-model=org/b:1")


def by_chance(ask: Ask) -> str:
    """The answer of a model, seed and row: the same in every session."""
    share = random.Random(f"{ask.model} {ask.body.get('seed')} {ask.row}").random()
    return ask.row if share < 0.2 + 0.2 * "abcd".find(ask.model) else "no"


@pytest.fixture
def rows(project: Project) -> Project:
    project.endpoint.answers = by_chance
    project.rows(*[f"question {index}" for index in range(3)])
    return project


def suites(report: dict[str, Any]) -> dict[str, Any]:
    return {suite["config"]["label"]: suite for suite in report["suites"]}


def summary(session: Session) -> str:
    return "\n".join(session.section("osmosis summary"))


@pytest.mark.slow
@each_mode
def test_four_models_have_the_figures_of_four_sessions_and_the_pairs_of_compare(
    project: Project, workers: int
):
    project.endpoint.answers = by_chance
    project.rows(*[f"question {index}" for index in range(50)])
    project.endpoint.full_at = 8
    options = ["--n=3", "--osmosis-seed=1", "--batch-size=8", "--osmosis-no-journal", "--tb=no"]
    several = [f"--osmosis-model={name}" for name in MODELS]
    found = suites(project.run(*several, *options, workers=workers, model=None).report)
    assert project.endpoint.by_model == dict.fromkeys(MODELS, 150)
    assert project.endpoint.max_in_flight == 8
    for name in MODELS:
        project.run(*options, workers=workers, model=name, output=f"{name}.json")
        alone = json.loads(Path(f"{name}.json").read_text())
        assert found[name]["summary"]["eval_fns"] == alone["summary"]["eval_fns"]
    files = [f"{name}.json" for name in MODELS]
    compared = CliRunner().invoke(
        compare_command, [*files, "--json", f"--confidence={1 - 0.05 / 3}"]
    )
    for name, each in zip(MODELS[1:], json.loads(compared.stdout)["comparisons"], strict=True):
        here = found[name]["baseline"]["eval_fns"]["rewards:exact"]["differences"]
        there = [every["paired"] for every in each["suites"][0]["eval_fns"][0]["differences"]]
        figures = [(one["difference"]["value"], one["difference"]["low"], one["p"]) for one in here]
        assert figures == [
            (p["difference"], p["interval"]["low"], min(1.0, 3 * p["p"])) for p in there
        ]


@each_mode
def test_rows_are_named_by_candidate_and_each_is_a_suite(rows: Project, workers: int):
    session = rows.run(*TWO, "-v", "--n=2", workers=workers, model=None)
    assert "data.jsonl::row-2[a][run-1] " in session.out
    assert "data.jsonl::row-2[org/b-1][run-0] " in session.out
    report = session.report
    assert report["config"]["model"] == "a, org/b:1"
    assert {row["suite"] for row in report["rows"]} == {"data.jsonl", "data.jsonl (org/b-1)"}
    first, second = suites(report).values()
    assert (first["baseline"], second["baseline"]["source"]) == (None, "a")
    assert second["config"]["candidate_of"] == first["name"] == "data.jsonl"
    again = rows.run(
        "data.jsonl::row-2[org/b-1][run-0]", *TWO, "--n=2", workers=workers, model=None
    )
    assert [run["run_index"] for run in again.runs] == [0]
    selected = rows.run("-k", "[a] and run-1", *TWO, "--n=2", workers=workers, model=None)
    assert [run["run_index"] for run in selected.runs] == [1, 1, 1]


def test_agents_and_models_are_crossed_and_kept_apart(rows: Project):
    one = "def {}(question, model, base_url, api_key): return model\n"
    rows.write("other.py", one.format("agent_loop") + one.format("b"))
    agents = ["--osmosis-agent=other:agent_loop", "--osmosis-agent=other:b"]
    session = rows.run(*TWO, *agents, agent=None, model=None)
    labels = ["agent_loop,a", "agent_loop,org/b-1", "b,a", "b,org/b-1"]
    assert list(suites(session.report)) == labels
    kept = [path.name for path in (rows.path / ".osmosis/runs").iterdir() if path.is_dir()]
    assert sorted(kept) == [
        f"other.{agent}-data-{model}" for agent in ("agent_loop", "b") for model in ("a", "org-b-1")
    ]
    again = rows.run(*TWO, *agents, "--osmosis-extend", agent=None, model=None)
    assert sum(run["cached"] for run in again.runs) == 12


@pytest.mark.parametrize(
    ("gates", "outcomes", "ret"),
    [
        (["mean[model=org/b:1] <= 0"], ["passed"], 0),
        (["mean[exact, model=a] >= 0.9"], ["failed"], 1),
        (["mean - baseline >= -0.5", "errors[agent=agent_loop] == 0"], ["passed"] * 3, 0),
    ],
    ids=str,
)
def test_a_gate_names_a_candidate_or_decides_on_each(
    rows: Project, gates: list[str], outcomes: list[str], ret: int
):
    session = rows.run(*TWO, *[f"--osmosis-gate={gate}" for gate in gates], model=None)
    assert [gate["outcome"] for gate in session.report["gates"]] == outcomes
    assert session.report["summary"]["verdict"] == ("failed" if ret else "passed")
    assert session.ret == ret
    assert session.outcomes.get("failed", 0) == outcomes.count("failed")


def test_reports_have_one_table_of_candidates_also_when_they_are_read_back(rows: Project):
    files = ["--osmosis-markdown=out.md", "--osmosis-html=out.html"]
    session = rows.run(*TWO, *files, "--n=3", model=None)
    written = [(rows.path / f"out.{name}").read_text() for name in ("md", "html")]
    assert "mean against a" in summary(session)
    assert all("candidates on data.jsonl, rewards:exact" in text.lower() for text in written)
    assert 'id="cells"' in written[1]
    found = read_report(rows.path / "out.json")
    assert [row.suite for row in found.rows] == ["data.jsonl"] * 3 + ["data.jsonl (org/b-1)"] * 3
    shown = CliRunner().invoke(report_command, [str(rows.path / "out.json")]).stdout.splitlines()
    table = [line for line in summary(session).splitlines() if line.startswith("org/b-1 ")]
    assert len(table) == 2 and set(table) <= {*shown}


@pytest.mark.slow
def test_shards_of_candidates_are_merged_with_their_pairs(rows: Project):
    options = [*TWO, "--n=3", "--osmosis-seed=3"]
    whole = rows.run(*options, model=None).report
    for part in ("1", "2"):
        rows.run(*options, f"--osmosis-shard={part}/2", model=None, output=f"s{part}.json")
    CliRunner().invoke(merge_command, ["s1.json", "s2.json", "-o", "merged.json"])
    merged = json.loads(Path("merged.json").read_text())
    for one, other in zip(whole["suites"], merged["suites"], strict=True):
        assert one["summary"]["eval_fns"] == other["summary"]["eval_fns"]
        assert one["baseline"] == other["baseline"]


def test_a_name_in_the_ini_file_is_one_candidate_and_a_list_several(rows: Project):
    rows.write(
        "pytest.ini", "[pytest]\nosmosis_model =\n    a\n    b\nosmosis_agent = agent:agent_loop\n"
    )
    session = rows.run(model=None, agent=None)
    assert list(suites(session.report)) == ["a", "b"]
    assert (rows.path / ".osmosis/runs" / KEPT.replace("-m", "-b")).is_dir()
    assert rows.run(model="c", agent=None).report["suites"] == []
