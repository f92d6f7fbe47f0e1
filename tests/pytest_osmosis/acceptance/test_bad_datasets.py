"""What is wrong with a dataset, as the session tells it: one sentence, before any request.

The sentence itself is held where the dataset is loaded, for every fault.
"""

from __future__ import annotations

import json

import pytest

from tests.support.endpoints import Ask
from tests.support.modes import each_mode
from tests.support.project import Project


def test_rows_without_what_a_ready_scorer_compares_with_are_reported_before_any_request(
    project: Project,
):
    project.rows(*[{"user_prompt": "a", "expected": "a"}] * 2)
    mistake = project.run(eval_fn="includes").mistake
    assert "data.jsonl: 'ground_truth' is missing, and includes compares with it\n" in mistake
    assert mistake.endswith("-n0 --osmosis-map expected=ground_truth")
    project.rows({"user_prompt": "a", "ground_truth": 1}, *[{"user_prompt": "b"}] * 2)
    session = project.run(eval_fn=r"regex('(\d)', group=1)")
    assert ": 2 rows cannot be used\n  line 2: 'ground_truth' is missing, and r" in session.mistake
    assert (session.ret, project.endpoint.requests) == (4, 0)
    assert project.run(eval_fn="regex('.')").ret == 0


@each_mode
def test_ground_truths_that_a_ready_scorer_cannot_compare_with_are_reported_before_any_request(
    project: Project, workers: int
):
    def refused(eval_fn: str) -> str:
        session = project.run(eval_fn=eval_fn, workers=workers)
        assert (session.ret, project.endpoint.requests) == (4, 0)
        return session.mistake

    project.write("close.py", "from osmosis_ai import scorers\nclose = scorers.number()\n")
    for truth, eval_fn, fault in [
        ("", "exact", "'ground_truth' is blank, and exact compares with it"),
        ("\u00a0", "includes", "'ground_truth' is blank, and includes compares with it"),
        ("A", "includes", "is 'A', one letter, which is a word of many answers, and includes"),
        ("3, 6", "close:close", "is '3, 6', not one number, and close:close compares with it; "
         "exact compares any text"),
        ("{a", "json_equal", "is '{a', not JSON, and json_equal compares with it"),
    ]:  # fmt: skip
        project.rows({"user_prompt": "a", "ground_truth": "7"}, {"user_prompt": "b",
                     "ground_truth": truth})  # fmt: skip
        said = refused(eval_fn)
        assert "data.jsonl:2: " in said and fault in said
    project.rows(*[{"user_prompt": "a", "ground_truth": each} for each in ("7", " ", "x^2")])
    assert ": 2 rows cannot be used\n  line 2: 'ground_truth' is blank, and number" in refused(
        "number"
    )
    assert project.run("--osmosis-rows=0", eval_fn="number").ret == 1  # only rows that run count


@pytest.mark.fault(
    "a string holds U+2028, U+2029, U+0085 or a lone CR", "a prompt holds NUL or escape characters"
)
@each_mode
def test_odd_characters_in_a_prompt_are_data_and_never_reach_terminal_or_names(
    project: Project, workers: int
):
    texts = [f"one{c}two" for c in ("\u2028", "\u2029", "\u0085", "\r", "\x00", "\x1b[31m")]
    project.rows(*texts)
    lines = [{"system_prompt": "s", "user_prompt": t, "ground_truth": "x", "id": t} for t in texts]
    project.rows(*lines)
    session = project.run("-v", "--junitxml=out.xml", workers=workers)
    assert session.outcomes == {"failed": len(texts)}
    assert {ask.messages[-1]["content"] for ask in project.endpoint.seen} == set(texts)
    printed = session.out + session.err
    assert not any(c in printed for c in ("\x00", "\x1b[31m", "\u2028", "\u0085"))
    assert len(session.junit.findall(".//testcase")) == len(texts)
    assert [row["row_index"] for row in session.report["rows"]] == list(range(len(texts)))


@pytest.mark.fault("it has a million rows")
@pytest.mark.slow
def test_a_million_rows_cost_what_is_asked_for(project: Project):
    project.rows("a")
    line = (project.path / "data.jsonl").read_text()
    with (project.path / "data.jsonl").open("w") as file:
        for _ in range(100):
            file.write(line * 10_000)
    session = project.run("--osmosis-offset=999998", "--osmosis-limit=10", "-v")
    assert [row["row_index"] for row in session.report["rows"]] == [999_998, 999_999]
    past = project.run("--osmosis-offset=1000000")
    assert past.ret == 5
    assert "has 1000000 rows; an offset of 1000000 is past the last one" in past.out


@pytest.mark.fault("it changes between a session and the next, or under one")
def test_rows_that_change_under_a_session_are_errored_and_the_report_is_written(
    project: Project,
):
    def answer(ask: Ask) -> str:
        changed = {"system_prompt": "Answer.", "user_prompt": "x", "ground_truth": "x", "id": "c"}
        path = project.path / "data.jsonl"
        first, second, _ = path.read_text().splitlines()
        path.write_text("\n".join([first, second, json.dumps(changed)]) + "\n")
        return ask.row

    project.endpoint.answers = answer
    long = "x" * 2**16  # so that no row is read together with the one before it
    names = ("aaa", "bbb", "ccc")
    project.rows(*({"user_prompt": t, "ground_truth": t, "id": t, "long": long} for t in names))
    session = project.run("--batch-size=1")
    assert session.ret == 1
    assert [run["outcome"] for run in session.runs][:2] == ["passed", "passed"]
    assert "row 2 has changed since the session began" in session.runs[2]["error"]
    assert "INTERNALERROR" not in session.out
