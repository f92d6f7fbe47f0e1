"""Rows in quarantine: run and shown, in no figure, gate or exit status."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from tests.support.endpoints import Ask, failure_reply
from tests.support.project import Project, Session


@pytest.fixture
def rows(project: Project) -> Project:
    """Two that pass, one that does not, one that the endpoint refuses; `q.txt` to be written."""

    def answer(ask: Ask) -> str | bytes:
        if ask.row == "refused":
            return failure_reply("come back later")
        return "no" if ask.row == "wrong" else ask.row

    project.endpoint.answers = answer
    names = ["a", "b", "wrong", "refused"]
    project.rows(
        *({"id": f"q-{name}", "user_prompt": name, "ground_truth": name} for name in names)
    )
    return project


def aside(project: Project, *lines: str, workers: int = 0, more: tuple[str, ...] = ()) -> Session:
    project.write("q.txt", "".join(f"{line}\n" for line in lines))
    return project.run("--osmosis-quarantine=q.txt", *more, workers=workers)


def figures(session: Session) -> tuple[float, int, int]:
    found = session.report["summary"]["eval_fns"]["rewards:exact"]
    return found["mean"], found["scored"], found["missing"]


@pytest.mark.parametrize("workers", [0, 2])
def test_such_rows_are_run_and_decide_nothing(rows: Project, workers: int):
    session = aside(rows, "# flaky", "q-wrong  # since July", "q-refused", workers=workers)
    assert session.ret == 0
    assert figures(session) == (1.0, 2, 0)
    assert session.outcomes == {"passed": 2, "below": 1, "errored": 1}
    assert [len(row["runs"]) for row in session.report["rows"]] == [1, 1, 1, 1]
    assert session.report["quarantine"] == {"rows": ["q-wrong", "q-refused"], "passing": []}
    assert session.report["summary"]["verdict"] == "passed"
    assert "quarantine: 2 rows left out of figures and gates: q-wrong, q-refused" in session.lines
    assert any(line.split() == ["rewards:exact", "1.000", "0.290", "..", "1.000", "2/2"]
               for line in session.lines)  # fmt: skip


def test_the_other_rows_decide_as_before(rows: Project):
    assert aside(rows, "q-refused").ret == 1
    assert aside(rows, "q-wrong").ret == 1


@pytest.mark.parametrize(
    ("lines", "status"),
    [(["q-wrong", "q-refused"], 0), (["q-refused"], 1), (["q-wrong"], 8)],
)
def test_gates_are_of_the_other_rows(rows: Project, lines: list[str], status: int):
    assert aside(rows, *lines, more=("--osmosis-gate=mean >= 0.8",)).ret == status


def test_a_row_that_passes_every_run_again_is_named(rows: Project):
    session = aside(rows, "q-a", "q-wrong", "q-refused", more=("--osmosis-n=2",))
    assert "quarantine: q-a passes every run now: take it out of it" in session.lines
    assert session.report["quarantine"]["passing"] == ["q-a"]


def test_kept_runs_are_used_whatever_is_in_quarantine(rows: Project):
    assert aside(rows, "q-wrong", more=("--osmosis-gate=mean >= 0.8",)).ret == 8
    asked: list[str] = []
    rows.endpoint.answers = lambda ask: asked.append(ask.row) or ask.row
    session = aside(rows, "q-b", "q-wrong", more=("--osmosis-gate=mean >= 0.8",))
    assert (session.ret, asked, figures(session)) == (0, ["refused"], (1.0, 2, 0))


def test_a_saved_report_has_the_same_figures(rows: Project):
    aside(rows, "q-wrong", "q-refused")
    done = CliRunner().invoke(cli, ["eval", "report", "out.json", "--markdown", "out.md"])
    assert done.exit_code == 0
    assert "2/2" in (text := (rows.path / "out.md").read_text())
    assert "2 rows left out of figures and gates" in text


def test_a_baseline_is_compared_over_the_other_rows(rows: Project):
    aside(rows, "q-refused", more=("--osmosis-fresh",))
    (rows.path / "out.json").rename(rows.path / "before.json")
    rows.endpoint.answers = lambda ask: ask.row
    gate = ["baseline=before.json", "gate=mean - baseline >= 0", "fresh"]
    more = tuple(f"--osmosis-{each}" for each in gate)
    session = aside(rows, "q-refused", "q-wrong", more=more)
    assert session.ret == 0
    comparison = session.report["baseline"]["eval_fns"]["rewards:exact"]
    assert comparison["rows"] == 2
    assert [each["difference"]["value"] for each in comparison["differences"]] == [0.0, 0.0]
    [note] = session.report["baseline"]["notes"]
    assert note == "1 row is only in the baseline and not compared: q-wrong"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["q-a", "q-b", "q-wrong", "q-refused"], "q.txt: names every row of data.jsonl"),
        (None, "absent.txt: cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_leaves_nothing_or_is_not_there_is_refused(
    rows: Project, lines: list[str] | None, said: str
):
    absent = "--osmosis-quarantine=absent.txt"
    session = rows.run(absent) if lines is None else aside(rows, *lines)
    assert session.ret == 4
    assert said in session.mistake
    assert rows.endpoint.requests == 0


def test_ids_of_no_row_are_named(rows: Project):
    session = aside(rows, "q-wrong", "Q-A", "q-refused")
    assert "osmosis: q.txt: 1 id of no row of this session: Q-A" in session.lines
    assert json.loads((rows.path / "out.json").read_text())["quarantine"]["rows"] == [
        "q-wrong",
        "q-refused",
    ]


def test_shards_may_hold_nothing_but_such_rows(rows: Project):
    for part in ("1/2", "2/2"):  # q-a and q-wrong, q-b and q-refused
        more = (f"--osmosis-shard={part}", f"--osmosis-output=part-{part[0]}.json")
        session = aside(rows, "q-b", "q-refused", more=more, workers=0)
        assert "of no row" not in session.out
    words = ["eval", "merge", "part-1.json", "part-2.json", "-o", "out.json"]
    assert CliRunner().invoke(cli, words).exit_code == 1
    whole = Session(0, "", "", rows.path)
    assert figures(whole) == (0.5, 2, 0)
    assert whole.report["quarantine"]["rows"] == ["q-b", "q-refused"]


def test_it_holds_for_what_is_scored_again(rows: Project):
    rows.run()
    rows.write("q.txt", "q-wrong\nq-refused\n")
    again = ["rescore=agent.agent_loop-data-m", "eval-fn=rewards:exact", "quarantine=q.txt"]
    more = [f"--osmosis-{each}" for each in again]
    session = rows.plain("-n0", *more, "--osmosis-output=out.json")
    assert (session.ret, figures(session)) == (0, (1.0, 2, 0))


def test_a_run_of_them_that_raised_counts_for_nothing(rows: Project):
    rows.rows("a", "raise")
    session = aside(rows, "row-1")
    assert figures(session) == (1.0, 1, 0)
    assert "1 run without a score, left out of every figure" in session.lines
    assert not any("as 0.0" in line for line in session.lines)


def test_figures_by_a_column_count_no_such_row(rows: Project):
    rows.rows(*({"id": f"q-{name}", "user_prompt": name, "ground_truth": name, "topic": "x"}
                for name in ("a", "b", "wrong")))  # fmt: skip
    session = aside(rows, "q-wrong", more=("--osmosis-by=topic",))
    (value,) = session.report["by"][0]["values"]
    assert (value["row_indices"], value["total_runs"]) == ([0, 1], 2)
    assert any(line.split()[:3] == ["x", "2", "1.000"] and line.endswith(" 2/2")
               for line in session.lines)  # fmt: skip
