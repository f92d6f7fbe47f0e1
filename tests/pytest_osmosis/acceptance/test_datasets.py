"""Datasets of several forms, evaluated: what the agent is sent, and what scores it."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_osmosis.reports import json_writer
from tests.support.endpoints import Ask
from tests.support.made_results import result_of, suite_of
from tests.support.modes import each_mode
from tests.support.project import Project

GSM = """\
Question,answer,level
"What is
6 x 7?",42,1
say 5,,2
say 6,6,3
"""
EXACT = """
def judge(messages, ground_truth, metadata):
    assert metadata["level"] in ("1", "3") and metadata["answer"] == ground_truth
    return float(messages[-1]["content"].split()[-1] == ground_truth)
"""


def answer_with(project: Project, answers: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """Return where the conversations appear that the endpoint is sent."""
    sent: list[list[dict[str, Any]]] = []

    def answer(ask: Ask) -> str:
        sent.append(ask.messages)
        return answers[ask.row]

    project.endpoint.answers = answer
    return sent


@each_mode
def test_a_csv_file_with_names_of_its_own_is_evaluated(project: Project, workers: int):
    project.write("gsm.csv", "\ufeff" + GSM)
    project.write("level.py", EXACT)
    pairs = "question=user_prompt\n  answer=ground_truth\n  none=system_prompt"
    project.write("pytest.ini", f"[pytest]\nosmosis_map = {pairs}\n")
    sent = answer_with(project, {"What is\n6 x 7?": "42", "say 6": "it is 6"})
    session = project.run(
        "--osmosis-rows=0,2", workers=workers, data="gsm.csv", eval_fn="level:judge"
    )
    assert session.ret == 0, session.out
    assert [row["row_index"] for row in session.report["rows"]] == [0, 2]
    assert [len(messages) for messages in sent] == [1, 1]  # no system message


def test_rows_with_messages_and_labels_are_evaluated_those_of_a_report(project: Project):
    chat = [
        {"role": "user", "content": "Say 7."},
        {"role": "assistant", "content": "7"},
        {"role": "user", "content": "again"},
    ]
    first = {"messages": [{"role": "user", "content": "other"}], "label": "8"}
    rows = [first, {"messages": chat, "label": "7"}]
    project.write("chat.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    json_writer.write(result_of(suite_of([[], [1.0]])), project.path / "last.json")
    sent = answer_with(project, {"again": "7"})
    for words in (
        ["--osmosis-rows=@last.json"],
        *(["--osmosis-rows", f"{at}last.json"] for at in ("", "@")),
    ):
        sent.clear()
        session = project.run(*words, "--osmosis-fresh", data="chat.jsonl")
        assert session.ret == 0, session.out
        assert sent == [chat]
        assert session.report["config"]["settings"]["rows"] == "1"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("user_prompt,expected", "is it this? --osmosis-map expected=ground_truth"),
        ("user_prompt,ground truht", "is it this? --osmosis-map 'ground truht=ground_truth'"),
        ("user_prompt,level", None),
        ("user_prompt,ground_truth,answer", None),
    ],
)
def test_the_header_names_the_column_that_is_probably_the_ground_truth(
    project: Project, columns: str, message: str | None
):
    cells = ",".join("x" for _ in columns.split(","))
    project.write("data.csv", f"{columns}\n{cells}\n")
    session = project.run(
        "--collect-only", "-v", "--osmosis-map=none=system_prompt", data="data.csv"
    )
    hints = [line for line in session.lines if "no row has a ground_truth" in line]
    assert [line.partition("ground_truth: ")[2] for line in hints] == ([message] if message else [])


@pytest.mark.parametrize(
    "option", ["--osmosis-system-prompt=Be brief.", "--osmosis-system-prompt-file=prompt.txt"]
)
def test_rows_need_no_column_then(project: Project, option: str):
    project.write("prompt.txt", "Be brief.\n")
    project.write("data.jsonl", '{"user_prompt": "6", "ground_truth": "Be brief."}\n')

    def system(ask: Ask) -> str:
        return str(ask.messages[0]["content"])

    project.endpoint.answers = system
    session = project.run(option)
    assert session.outcomes == {"passed": 1}, session.out
    assert session.report["config"]["settings"]["system_prompt"] == "Be brief."


@pytest.mark.parametrize("given", [["--osmosis-system-prompt="], []])
def test_an_empty_one_sends_none_and_null_is_none(project: Project, given: list[str]):
    project.write("pytest.ini", f"[pytest]\n{'' if given else 'osmosis_system_prompt ='}\n")
    project.write("data.jsonl", '{"user_prompt": "6", "system_prompt": null}\n{"user_prompt": "7"}')
    project.endpoint.answers = lambda ask: str(len(ask.messages))
    session = project.run(*given, eval_fn="rewards:length")
    assert [run["answer"] for run in session.runs] == ["1", "1"], session.out + session.err


OPTIONS = "{{ question }}{% for c in choices %} {{ loop.index }}) {{ c }}{% endfor %}\n"


@each_mode
def test_a_prompt_out_of_several_columns_is_sent_for_the_rows_that_are_wanted(
    project: Project, workers: int
):
    languages = ["en", "de", "en", "en"]
    rows = [
        {"question": f"q{at}", "choices": ["x", "y"], "answer": ["no", str(at)], "lang": lang}
        for at, lang in enumerate(languages)
    ]
    rows[3]["answer"] = []
    project.write("mc.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    project.write("prompts/choice.txt", OPTIONS)
    project.write("pytest.ini", "[pytest]\nosmosis_prompt_template = @prompts/choice.txt\n")
    prompts = {f"q{at} 1) x 2) y": str(at) for at in range(4)}
    sent = answer_with(project, prompts)
    wanted = ["--osmosis-where=lang=en", "--osmosis-where=ground_truth!="]
    usual: dict[str, str | None] = {"data": "mc.jsonl", "eval_fn": "exact"}
    refused = project.run(wanted[0], workers=workers, **usual)
    assert (
        "mc.jsonl:4: 'ground_truth' is blank, and exact compares with it; leave such rows out: "
        "--osmosis-where 'ground_truth!='"
    ) in refused.mistake
    session = project.run(*wanted, "--osmosis-by=answer", workers=workers, **usual)
    assert session.ret == 0, session.out + session.err
    assert {messages[-1]["content"] for messages in sent} == {"q0 1) x 2) y", "q2 1) x 2) y"}
    assert "osmosis: mc.jsonl: 2 of 4 rows: where lang=en and ground_truth!=" in session.lines
    settings = session.report["config"]["settings"]
    assert (settings["where"], settings["prompt_template"]) == (
        ["lang=en", "ground_truth!="],
        OPTIONS,
    )
    if workers:
        return
    kept = "agent.agent_loop-mc-m"
    again = project.plain(
        f"--osmosis-rescore={kept}", "--osmosis-output=out.json", "--eval-fn=exact"
    )
    assert [run["scores"] for run in again.report["rows"][1]["runs"]] == [{"exact": 1.0}], again.out
    other = project.run(
        *wanted, "--osmosis-extend", "--osmosis-prompt-template={{ question }}", **usual
    )
    assert "prompt template was {{ question }}{% for" in other.mistake
    before = ["--osmosis-baseline=out.json", "--osmosis-prompt-template={{ question }}"]
    sent.clear()
    prompts.update({"q0": "0", "q2": "2"})
    compared = project.run(*wanted, *before, **{**usual, "output": "now.json"})
    assert "the prompt template is another than in the baseline" in compared.out, compared.err


@pytest.mark.parametrize(
    ("truth", "answer", "shown"),
    [
        (["a", "b"], "b", '["a", "b"]'),
        ({"x": [1]}, '{"x": [1]}', '{"x": [1]}'),
        (False, "false", "false"),
        (0.10, "0.1", "0.1"),
    ],
)
def test_a_truth_of_any_type_is_shown_and_compared(
    project: Project, truth: object, answer: str, shown: str
):
    project.rows({"user_prompt": "q", "ground_truth": truth}, {"user_prompt": "w", "label": truth})
    answer_with(project, {"q": answer, "w": "wrong"})
    eval_fn = "json_equal" if isinstance(truth, dict) else "exact"
    session = project.run(
        "--osmosis-html=page.html",
        "--osmosis-runs-table=runs.csv",
        "--junitxml=out.xml",
        eval_fn=eval_fn,
    )
    assert [run["scores"][eval_fn] for run in session.runs] == [1.0, 0.0], session.out
    assert f"  ground truth  {shown}" in session.lines
    with (project.path / "runs.csv").open(newline="") as file:
        assert [run["ground_truth"] for run in csv.DictReader(file)] == [shown, shown]
    lines = (project.path / "out.trajectories.jsonl").read_text().splitlines()
    kept = [json.loads(line)["ground_truth"] for line in lines]
    assert kept == [str(truth) if type(truth) is float else truth] * 2


@pytest.mark.parametrize(
    ("parameter", "said"), [("question", ""), ("messages", "messages"), ("row", "row['messages']")]
)
def test_a_function_of_the_question_is_refused_what_it_would_not_be_given(
    project: Project, parameter: str, said: str
):
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    chat = [*turns, {"role": "user", "content": "c"}]
    project.write("chat.jsonl", json.dumps({"messages": chat, "ground_truth": "a c"}))
    project.write(
        "fn.py",
        f"def agent({parameter}):\n"
        f"    return ' '.join(m['content'] for m in {said or []} if m['role'] == 'user')\n",
    )
    session = project.run(data="chat.jsonl", agent="fn:agent", model=None, base_url=None)
    assert session.ret == (0 if said else 4), session.out + session.err
    if not said:
        assert "fn:agent takes one question as text" in session.mistake
