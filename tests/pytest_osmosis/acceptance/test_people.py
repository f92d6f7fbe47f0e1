"""Judges against people, through the front door: corrected means, and gates on agreement."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_osmosis.features.labels.run_labels import RunLabel, change_labels
from pytest_osmosis.run_result import RunId
from tests.support.endpoints import Ask, Endpoint
from tests.support.project import Project, Session

JUDGES = """
def honest(solution_str, ground_truth, extra_info):
    return float(extra_info["right"])


def lenient(solution_str, ground_truth, extra_info):
    return max(float(extra_info["right"]), float(extra_info["liked"]))
"""
ROWS = 60
GATE = "--osmosis-gate=agreement(judges:{}) >= 0.6"


def right(row: int) -> bool:
    """Two of three."""
    return row % 3 > 0


@pytest.fixture
def judged(project: Project) -> Project:
    project.write("judges.py", JUDGES)
    project.rows(
        *(
            {
                "user_prompt": f"q{row}", "ground_truth": "x", "right": right(row),
                "liked": row % 4 > 0, "doc": f"d{row // 5}",
            }
            for row in range(ROWS)
        )
    )  # fmt: skip
    return project


def mark(
    project: Project, session: Session, rows: range, says: Callable[[int], bool] = right
) -> None:
    """Say of these rows' first runs whether they are right, as the viewer keeps it."""
    suite = session.report["config"]["name"]
    began = {run["row_index"]: run for run in _runs(session)}
    for row in rows:
        run = began[row]
        label = RunLabel(says(row), "", run["started_at"], run["rubrics"])
        change_labels(
            project.path / "out.json",
            lambda now, row=row, label=label: now.with_run(RunId(suite, row, 0), label),
        )


def _runs(session: Session) -> list[dict]:
    rows = session.report["rows"]
    return [{**run, "row_index": row["row_index"]} for row in rows for run in row["runs"]]


def people(session: Session, judge: str) -> dict:
    return session.report["people"][f"judges:{judge}"]


def test_a_biased_judge_is_corrected_and_its_agreement_gated(judged: Project):
    both = "--osmosis-eval-fn=judges:lenient"
    first = judged.run(GATE.format("honest"), both, eval_fn="judges:honest")
    assert first.ret == 8
    assert "no run is marked by people: mark runs in osmosis eval view" in " ".join(
        first.out.split()
    )
    assert first.report["people"] is None
    mark(judged, first, range(5))
    few = judged.run(GATE.format("honest"), "--osmosis-extend", both, eval_fn="judges:honest")
    assert few.ret == 8 and any("5 marked rows: an interval takes 10" in x for x in few.lines)
    assert people(few, "honest")["corrected"]["interval"] is None
    mark(judged, few, range(40))
    options = ["--osmosis-extend", "--osmosis-html=out.html", "--osmosis-markdown=out.md"]
    passed = judged.run(GATE.format("honest"), *options, both, eval_fn="judges:honest")
    assert passed.ret == 0
    failed = judged.run(GATE.format("lenient"), *options, both, eval_fn="judges:honest")
    assert failed.ret == 1
    unsure = judged.run(
        GATE.format("lenient").replace("0.6", "0.3"), "--osmosis-confidence=0.95", *options,
        both, eval_fn="judges:honest",
    )  # fmt: skip
    assert unsure.ret == 8
    plain = failed.report["summary"]["eval_fns"]["judges:lenient"]["mean"]
    found = people(failed, "lenient")["corrected"]
    assert plain == pytest.approx(55 / 60)
    assert found["value"] == pytest.approx(2 / 3, abs=0.02)
    assert found["interval"]["low"] < 2 / 3 < found["interval"]["high"] < plain
    assert len(people(failed, "lenient")["marks"]) == 40
    # By hand: of 40 marks 26 are right, all passed; of 14 wrong ones 10 passed.
    kappa = people(failed, "lenient")["agreement"]["kappa"]
    by_chance = (26 * 36 + 14 * 4) / 1600
    assert kappa == pytest.approx((30 / 40 - by_chance) / (1 - by_chance))
    shown = "mean corrected by people"
    for text in (failed.out, *((judged.path / f"out.{x}").read_text() for x in ("html", "md"))):
        assert shown in text and "40 marks in 40 rows" in " ".join(text.split())
    by_document = judged.run("--osmosis-cluster=doc", *options, both, eval_fn="judges:honest")
    wide = people(by_document, "lenient")["corrected"]["interval"]
    assert wide["high"] - wide["low"] != found["interval"]["high"] - found["interval"]["low"]
    (judged.path / "aside.txt").write_text("\n".join(f"row-{row}" for row in range(35)))
    aside = judged.run("--osmosis-quarantine=aside.txt", *options, both, eval_fn="judges:honest")
    assert len(people(aside, "honest")["marks"]) == 5
    (judged.path / "out.json.labels").write_text("{")
    assert (
        "out.json.labels: is no file of labels"
        in judged.run(*options, both, eval_fn="judges:honest").err
    )


def test_marks_made_by_another_rubric_are_not_used_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    text = """
import os
from osmosis_ai import scorers

kind = scorers.judge({!r}, model="openai/m", api_base=os.environ["JUDGE_BASE"])
"""
    project.write("judging.py", text.format("Is it kind?"))
    project.rows(*(f"q{row}" for row in range(12)))
    monkeypatch.setenv("OPENAI_API_KEY", "judge-key-0123456789")
    with Endpoint(lambda ask: '{"score": 1, "explanation": "so"}') as judge:
        monkeypatch.setenv("JUDGE_BASE", judge.base_url)
        first = project.run(eval_fn="judging:kind")
        [digest] = {run["rubrics"]["judging:kind"] for run in _runs(first)}
        mark(project, first, range(12))
        same = project.run("--osmosis-extend", eval_fn="judging:kind")
        assert same.report["people"]["judging:kind"]["rows"] == 12
        [kept] = [x.name for x in (project.path / ".osmosis/runs").iterdir() if x.is_dir()]
        project.write("judging.py", text.format("Is it kind and short?"))
        other = project.apart(
            f"--osmosis-rescore={kept}", "--osmosis-output=out.json",
            "--osmosis-gate=agreement >= 0.5",
        )  # fmt: skip
    assert {run["rubrics"]["judging:kind"] for run in _runs(other)} != {digest}
    assert other.ret == 8
    assert other.report["people"]["judging:kind"]["other_rubric"] == 12
    assert "12 marks were made by another text of its rubric and not used" in " ".join(other.lines)


def test_what_a_gate_on_agreement_cannot_say_is_refused(judged: Project):
    for gate, said in {
        "agreement(judges:honest) <= 0.6": "agreement takes >= or >",
        "agreement(nobody) >= 0.6": "'nobody' is not an eval function here",
        "agreement(judges:honest) >= 1.5": "agreement is at most 1",
        "agreement(judges:honest) - baseline >= 0": "compare with a baseline, not agreement",
    }.items():
        assert said in judged.run(f"--osmosis-gate={gate}", eval_fn="judges:honest").err


def test_labels_damaged_while_the_session_runs_cost_no_report(project: Project):
    project.rows("a", "b")
    first = project.run()
    mark(project, first, range(2), lambda row: True)
    labels = project.path / "out.json.labels"

    def answer(ask: Ask) -> str:
        labels.write_text("{")
        return ask.row

    project.endpoint.answers = answer
    session = project.run("--osmosis-fresh", "--osmosis-gate=agreement(exact) >= 0.6")
    assert session.ret == 1
    assert "ERROR: no marks are used: " in session.out + session.err
    assert session.report["summary"]["eval_fns"]["rewards:exact"]["mean"] == 1.0
    assert session.report["people"] is None
