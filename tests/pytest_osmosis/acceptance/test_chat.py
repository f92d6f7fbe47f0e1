"""No agent named: the model itself is evaluated, one call with each row's messages."""

from __future__ import annotations

import json

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.support.endpoints import Ask
from tests.support.modes import each_mode
from tests.support.project import Project

HISTORY = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "b"},
    {"role": "assistant", "content": "?"},
    {"role": "user", "content": "c"},
]
CONVERSATIONS = HISTORY[:2], HISTORY


@each_mode
def test_models_are_compared_by_one_call_a_row(project: Project, workers: int):
    def answers(ask: Ask) -> str:
        return "wrong" if (ask.model, ask.row) == ("two", "c") else ask.row

    project.endpoint.answers = answers
    rows = ({"messages": said, "ground_truth": said[-1]["content"]} for said in CONVERSATIONS)
    project.write("two.jsonl", "\n".join(map(json.dumps, rows)))
    session = project.run(
        "--osmosis-model=two", "--osmosis-temperature=0.5", agent=None, workers=workers,
        data="two.jsonl", model="m",
    )  # fmt: skip
    asked = [(ask.model, ask.messages, ask.body["temperature"]) for ask in project.endpoint.seen]
    wanted = [(model, said, 0.5) for model in ("m", "two") for said in CONVERSATIONS]
    assert sorted(asked, key=str) == sorted(wanted, key=str)
    first, second = session.report["suites"]
    assert {each["config"]["agent"] for each in (first, second)} == {"chat"}
    means = [each["summary"]["eval_fns"]["rewards:exact"]["mean"] for each in (first, second)]
    assert means == [1.0, 0.5]
    assert session.lines[2].startswith("osmosis: chat on two.jsonl")


def test_the_ini_file_and_a_node_id_need_no_agent(project: Project):
    project.rows("a", "b")
    project.write("tests/test_other.py", "def test_other(): pass")
    project.write(
        "pytest.ini",
        "[pytest]\nosmosis_data = data.jsonl\nosmosis_eval_fns = exact\nosmosis_model = m\n"
        f"osmosis_base_url = {project.endpoint.base_url}\n",
    )
    assert project.plain("-n0").outcomes == {"passed": 3}
    assert project.plain("-n0", "data.jsonl::row-1[run-0]").outcomes == {"passed": 1}
    assert project.plain("-n0", "tests").outcomes == {"passed": 1}
    both = project.plain("-n0", "tests", "--osmosis-data=data.jsonl")
    assert both.outcomes == {"passed": 3}


def test_the_command_needs_no_agent(project: Project):
    project.rows({"user_prompt": "What is 2 + 3?", "ground_truth": "5"})
    words = ["-d", "data.jsonl", "--model", "embedded", "--eval-fn", "number"]
    assert run(cli, ["eval", *words]) == 0
