"""Datasets of several forms, evaluated: what the agent is sent, and what scores it."""

from __future__ import annotations

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
