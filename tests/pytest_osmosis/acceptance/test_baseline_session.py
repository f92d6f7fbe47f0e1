"""A session compared with an earlier one, with its own last one, and with another model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.endpoints import Ask, failure_reply
from tests.support.modes import each_mode
from tests.support.project import Project, Session

NAMES = [f"question {number}" for number in range(6)]
COMPARE = "--osmosis-baseline=base.json"


class Model:
    """Repeats the question; answers `no` to what it gets wrong, by model."""

    def __init__(self) -> None:
        self.wrong: dict[str, set[str]] = {}
        self.down: set[str] = set()

    def __call__(self, ask: Ask) -> str | bytes:
        if ask.row in self.down:
            return failure_reply("come back later")
        return "no" if ask.row in self.wrong.get(ask.model, ()) else ask.row


@pytest.fixture
def model(project: Project) -> Model:
    """The model of a project of six rows."""
    model = project.endpoint.answers = Model()
    project.rows(*NAMES)
    return model


@pytest.fixture
def compared(project: Project, model: Model) -> Project:
    """A project with a baseline, in which another row is wrong than now."""
    model.wrong["m"] = {NAMES[1]}
    assert project.run("--osmosis-no-journal", output="base.json", n="2").ret == 1
    model.wrong["m"] = {NAMES[4]}
    return project


def exact(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["baseline"]["eval_fns"]["rewards:exact"]
    return found


def summary(session: Session) -> str:
    return "\n".join(session.section("osmosis summary"))


@pytest.mark.slow
@each_mode
def test_rows_that_changed_are_named_with_both_answers(
    compared: Project, model: Model, workers: int
):
    model.wrong["m"] = {NAMES[1]}
    compared.run("--osmosis-no-journal", output="base.json", n="5")
    model.wrong["m"] = {NAMES[4]}
    session = compared.run(
        COMPARE, "--osmosis-gate=mean - baseline >= -0.02", workers=workers, n="5"
    )
    found = exact(session.report)
    assert session.ret == 0
    assert found["rows"] == 6
    [mean, *_] = found["differences"]
    assert (mean["metric"], mean["current"], mean["baseline"]) == ("mean", 5 / 6, 5 / 6)
    assert mean["difference"]["value"] == 0.0
    assert mean["difference"]["low"] < 0.0 < mean["difference"]["high"]
    assert (mean["p"], mean["p_method"]) == (1.0, "agresti-min")
    lines = [
        (change["name"], change["verdict"], change["baseline_passes"], change["passes"],
         change["baseline_answer"], change["answer"])
        for change in found["changes"]
    ]  # fmt: skip
    assert sorted(lines) == [
        ("row-1", "improved", 0, 5, "no", NAMES[1]), ("row-4", "regressed", 5, 0, NAMES[4], "no")
    ]  # fmt: skip
    text = summary(session)
    assert "against the baseline base.json" in text
    assert "rows: 1 regressed, 1 improved" in text
    assert "regressed  row-4  5/5 → 0/5, p of its runs 0.008" in text


def test_rows_that_chance_explains_are_listed_by_v(compared: Project, model: Model):
    model.wrong["m"] = {NAMES[1]}
    compared.run("--osmosis-no-journal", output="base.json")
    model.wrong["m"] = set()
    usual, verbose = (compared.run(COMPARE, *more) for more in ((), ("-v",)))
    line = "changed    row-1  0/1 → 1/1"
    assert [line in summary(session) for session in (usual, verbose)] == [False, True]


def test_every_row_that_differs_has_the_baselines_runs(compared: Project, model: Model):
    model.wrong["m"] = {NAMES[1]}
    compared.run("--osmosis-no-journal", output="base.json")
    said = compared.path / "base.trajectories.jsonl"
    call = {"function": {"name": "look_up", "arguments": '{"of": "it"}'}}
    lines = [json.loads(line) for line in said.read_text().splitlines()]
    for line in lines:
        line["messages"][-1]["tool_calls"] = [call]
    said.write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))
    model.wrong["m"] = {NAMES[4]}

    def earlier(*options: str) -> list[tuple[object, ...]]:
        report = compared.run(COMPARE, *options, "--osmosis-no-journal").report
        runs = [
            (row["row_index"], run) for row in report["baseline"]["runs"] for run in row["runs"]
        ]
        return sorted((row, run["answer"], run["passed"], tuple(run["tools"])) for row, run in runs)

    tools = ('look_up({"of": "it"})',)
    assert earlier() == [(1, "no", False, tools), (4, NAMES[4], True, tools)]
    assert earlier("--osmosis-no-answers") == [(1, None, False, ()), (4, None, True, ())]
    said.write_text("{\n")
    session = compared.run(COMPARE, "--osmosis-no-journal")
    [note] = session.report["baseline"]["notes"]
    assert note.endswith("base.trajectories.jsonl:1: not the line of a conversation")
    said.unlink()
    assert earlier() == [(1, "no", False, ()), (4, NAMES[4], True, ())]


def test_a_fall_fails_a_gate_and_the_bound_is_that_of_the_difference(compared: Project):
    gates = ["mean - baseline >= 0", "pass@2 - baseline >= 0.1", "pass^2 - baseline < 0.1"]
    options = [f"--osmosis-gate={gate}" for gate in gates]
    usual = compared.run(COMPARE, *options, n="2")
    assert usual.ret == 0
    assert [gate["detail"] for gate in usual.report["gates"]] == [
        "no fall shown",
        "no fall shown: 6 rows say too little of how large one would be",
        "no rise shown",
    ]
    session = compared.run(COMPARE, *options, "--osmosis-confidence=none", n="2")
    assert [gate["outcome"] for gate in session.report["gates"]] == ["passed", "failed", "passed"]
    assert session.ret == 1
    second = session.report["gates"][1]
    assert (second["metric"], second["figure"]["value"]) == ("pass@2 - baseline", 0.0)


class TestLast:
    """The suite's previous complete evaluation."""

    def test_it_is_of_the_same_agent_model_and_data(self, project: Project, model: Model):
        assert project.run(output=None, model="org/m").ret == 0
        session = project.run("--osmosis-baseline=last", model="org-m")
        assert session.report["baseline"] is None
        assert "no earlier complete evaluation of data.jsonl to compare with" in session.out

    @pytest.mark.slow
    def test_it_is_the_one_before_however_that_was_reported(self, project: Project, model: Model):
        model.wrong["m"] = set(NAMES[:3])
        assert project.run(output=None, n="2").ret == 1
        model.wrong["m"] = set()
        session = project.run(
            "--osmosis-baseline=last", "--osmosis-gate=mean - baseline > 0.4", n="2"
        )
        assert session.ret == 0
        assert len(exact(session.report)["changes"]) == 3
        assert "osmosis: data.jsonl is compared with m of " in session.out

    @pytest.mark.slow
    def test_one_that_was_not_complete_is_passed_over(self, project: Project, model: Model):
        project.run()
        model.down = {NAMES[0]}
        project.run()
        model.down, model.wrong["m"] = set(), {NAMES[5]}
        session = project.run("--osmosis-baseline=last", "--osmosis-fresh")
        assert [row["name"] for row in exact(session.report)["changes"]] == ["row-5"]

    def test_the_first_time_there_is_none_and_a_gate_on_it_is_inconclusive(
        self, project: Project, model: Model
    ):
        gates = ["--osmosis-gate=mean - baseline >= 0", "--osmosis-gate=mean == 1"]
        session = project.run("--osmosis-baseline=last", *gates)
        assert session.ret == 8
        assert "no earlier complete evaluation of data.jsonl to compare with" in session.out
        gate = session.report["gates"][0]
        assert (gate["outcome"], gate["figure"]) == ("inconclusive", None)
        assert gate["sentence"] == "there is no earlier evaluation to compare with"


@each_mode
class TestModel:
    """The same rows with a second model, in the same session."""

    def test_both_models_run_every_row_and_are_compared(
        self, project: Project, model: Model, workers: int
    ):
        model.wrong = {"m": {NAMES[0]}, "Qwen/other": set(NAMES[:3])}
        session = project.run(
            "--osmosis-baseline-model=Qwen/other", "--osmosis-gate=mean - baseline >= 0.2",
            "-v", workers=workers,
        )  # fmt: skip
        assert session.ret == 0
        assert project.endpoint.by_model == {"m": 6, "Qwen/other": 6}
        for name in ("row-0[m][run-0]", "row-5[Qwen/other][run-0]"):
            assert f"data.jsonl::{name} " in session.out
        report = session.report
        assert report["config"]["model"] == "m"
        assert report["summary"]["total_runs"] == 6
        assert report["baseline"]["source"] == "Qwen/other"
        assert [row["name"] for row in exact(report)["changes"]] == ["row-1", "row-2"]
        [other] = report["baseline_models"]
        assert other["config"]["model"] == "Qwen/other"
        assert other["summary"]["eval_fns"]["rewards:exact"]["mean"] == 0.5
        assert len(other["rows"]) == 6

    def test_without_a_gate_only_the_model_under_test_can_fail(
        self, project: Project, model: Model, workers: int
    ):
        model.wrong = {"other": set(NAMES)}
        session = project.run("--osmosis-baseline-model=other", workers=workers)
        assert session.ret == 0
        assert (session.outcomes["passed"], session.outcomes["below"]) == (6, 6)


@pytest.mark.parametrize(
    ("asked", "baseline", "shown"),
    [
        ("m", "openai/gpt-5-mini", "openai/gpt-5-mini at openai"),
        ("m", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B at HERE"),
        ("m", "embedded/perfect", "embedded/perfect"),
        (
            "openai/gpt-5",
            "anthropic/claude",
            "anthropic/claude at HERE (its provider: --osmosis-baseline-base-url provider)",
        ),
    ],
)
def test_the_header_says_where_the_baseline_model_is_asked(
    project: Project, asked: str, baseline: str, shown: str
):
    project.rows("a")
    option = f"--osmosis-baseline-model={baseline}"
    session = project.run("--collect-only", option, model=asked)
    here = project.endpoint.netloc
    assert f"osmosis: {asked} at {here}, 1 in flight" in session.lines
    assert f"osmosis: baseline {shown.replace('HERE', here)}" in session.lines


def test_what_has_no_score_on_a_side_is_reported(compared: Project, model: Model):
    model.down = {NAMES[0]}
    text = summary(compared.run(COMPARE, n="2"))
    assert "2 runs here without a score for rewards:exact left out" in text
