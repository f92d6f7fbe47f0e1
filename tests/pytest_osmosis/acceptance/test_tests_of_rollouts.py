"""Test functions over rollouts: the decorator, and rollouts that several functions share."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_osmosis.rollouts.pool import RolloutPool
from tests.support.modes import each_mode
from tests.support.project import Project

SHOP = """
import asyncio

import pytest

from osmosis_ai import scorers
from pytest_osmosis import Rollout, osmosis

CALLS = []


def answer(question: str):
    CALLS.append(question)
    with open("calls.txt", "a") as calls:
        calls.write("x")
    call = {"name": "get_order", "arguments": '{"order_id": "A1", "full": true}'}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": call}]},
        {"role": "tool", "tool_call_id": "1", "content": "shipped"},
        {"role": "assistant", "content": f"{question} has shipped"},
    ]


ROWS = [{"user_prompt": "A1", "ground_truth": "A1"}, {"user_prompt": "B2", "colour": "red"}]
shop = osmosis(agent=answer, data=ROWS, n=2)


@shop
@pytest.mark.parametrize("word", ["has", "shipped"])
def test_words(rollout: Rollout, word: str) -> None:
    assert word in rollout.text
    rollout.record_score("length", len(rollout.text), reason=f"of {word}")


@shop
def test_calls(rollout: Rollout) -> None:
    [call] = rollout.tool_calls
    assert (call.name, call.arguments["full"], call.result) == ("get_order", True, "shipped")
    assert rollout.called("get_order", order_id="A1")
    assert not rollout.called("get_order", order_id="B2")
    rollout.messages.clear()  # another test has messages of its own


@shop
async def test_async(rollout: Rollout) -> None:
    await asyncio.sleep(0)
    assert rollout.row["user_prompt"] in rollout.text


@pytest.fixture(params=[1, 2])
def number(request):
    return request.param


class TestMany:
    pytestmark = shop

    def test_fixture(self, rollout: Rollout, number: int) -> None:
        assert scorers.tool_called("get_order")(rollout.messages)["score"] == 1.0


@osmosis(agent=answer, data=lambda: ROWS, n=2, shared=False)
def test_own(rollout: Rollout) -> None:
    assert rollout.duration_s > 0


def test_ordinary() -> None:
    assert CALLS or True
"""
ASKING = """
from pytest_osmosis import Rollout, osmosis

asking = osmosis(agent="agent:agent_loop", data="data.jsonl", model="m")


@asking
def test_one(rollout: Rollout) -> None:
    assert rollout.usage["total_tokens"]


@asking
def test_other(rollout: Rollout) -> None:
    assert rollout.usage["total_tokens"] and rollout.cost_usd is None
"""


@each_mode
def test_functions_over_the_same_agent_and_rows_pay_for_them_once(project: Project, workers: int):
    project.write("test_shop.py", SHOP)
    more = ["--osmosis-model=embedded"] if workers else []
    session = project.plain("-n", str(workers), "--osmosis-output=out.json", *more)
    assert session.ret == 0, session.out
    # Five suites and two variants of two: each over 2 rows and 2 runs.
    assert session.outcomes == {"passed": 4 * (1 + 2 + 1 + 2 + 1) + 1}
    assert (project.path / "calls.txt").read_text() == "x" * (4 + 4)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many shared rollouts are held in memory after each run, and how many are known last."""
    counts: list[int] = []
    finish, close = RolloutPool._finish, RolloutPool.close

    def counted(pool: RolloutPool, *args: Any) -> Any:
        record = finish(pool, *args)
        counts.append(sum(shared.record is not None for shared in pool._shared.values()))
        return record

    def closed(pool: RolloutPool) -> bool:
        counts.append(len(pool._shared))
        return close(pool)

    monkeypatch.setattr(RolloutPool, "_finish", counted)
    monkeypatch.setattr(RolloutPool, "close", closed)
    return counts


CHANGING = ASKING.replace(
    "    assert rollout.usage",
    "    assert rollout.messages.pop()['content'] == rollout.row['user_prompt']\n"
    "    assert rollout.usage",
)


@pytest.mark.parametrize("journal", [[], ["--osmosis-no-journal"]])
def test_shared_rollouts_are_read_from_disk_and_dropped_after_their_last_taker(
    project: Project, held: list[int], journal: list[str]
):
    project.rows(*(f"row {number}" for number in range(9)))
    project.write("test_it.py", CHANGING)
    url = f"--osmosis-base-url={project.endpoint.base_url}"
    session = project.plain(url, "-n0", "--osmosis-batch-size=4", *journal)
    assert session.outcomes == {"passed": 18}, session.out
    assert project.endpoint.requests == 9
    assert held == [0] * 19


def test_what_the_journal_cannot_hold_whole_is_shared_whole(project: Project, held: list[int]):
    long = "return 9_000_000 * question[0]"
    project.write("app.py", f"def agent(question):\n    {long}\n")
    project.rows("a", "b")
    own = CHANGING.replace('"agent:agent_loop"', '"app:agent"').replace(', model="m"', "")
    own = own.replace("rollout.row['user_prompt']", "9_000_000 * rollout.row['user_prompt']")
    project.write("test_it.py", own.replace("assert rollout.usage", "assert 1 or rollout.usage"))
    session = project.plain("-n0", "-p", "no:cacheprovider")
    assert session.outcomes == {"passed": 4}, session.out[-2000:]
    assert max(held) == 2 and held[-1] == 0


@each_mode
def test_a_resumed_session_shares_what_an_earlier_one_has_paid_for(project: Project, workers: int):
    project.rows("a", "b", "c")
    project.write("test_it.py", CHANGING)
    stop = "if 'other' in item.name and not Path('again').exists(): raise KeyboardInterrupt"
    project.write(
        "conftest.py",
        f"from pathlib import Path\n\n\ndef pytest_runtest_setup(item):\n    {stop}\n",
    )
    words = f"--osmosis-base-url={project.endpoint.base_url}", "--osmosis-model=m"
    assert project.apart(*words, "-n0").ret == 2
    assert 1 <= project.endpoint.requests <= 3
    project.write("again", "")
    session = project.plain(*words, f"-n{workers}", "--osmosis-output=out.json")
    assert session.outcomes == {"passed": 6}, session.out
    assert project.endpoint.requests == 3
    both = [suite["summary"] for suite in session.report["suites"]]
    assert both[0]["total_tokens"] > 0 and both[1]["total_tokens"] == 0


@pytest.mark.parametrize("words", [["-k", "other"], ["test_it.py::test_other"], ["-x"]])
def test_a_part_of_the_functions_shares_likewise(project: Project, words: list[str]):
    project.rows("a", "b")
    project.write("test_it.py", CHANGING)
    url = f"--osmosis-base-url={project.endpoint.base_url}"
    session = project.plain(url, "--osmosis-model=m", "-n0", *words)
    assert session.outcomes["passed"] == (4 if "-x" in words else 2), session.out
    assert project.endpoint.requests == 2


def test_usage_is_that_of_the_shared_rollout_and_counts_once(project: Project):
    project.rows("a", "b")
    project.write("test_it.py", ASKING)
    session = project.plain(
        f"--osmosis-base-url={project.endpoint.base_url}", "--osmosis-output=out.json"
    )
    assert session.outcomes == {"passed": 4}, session.out
    assert project.endpoint.requests == 2
    tokens = [suite["summary"]["total_tokens"] for suite in session.report["suites"]]
    assert tokens[0] > 0 and tokens[1] == 0


def test_a_marker_alone_begins_an_evaluation_and_an_embedded_model(project: Project):
    project.rows("a")
    project.write("test_it.py", ASKING.replace('"m"', '"embedded/perfect"'))
    session = project.plain()
    assert session.outcomes == {"passed": 2}, session.out
    assert "test_it.py::test_other" in session.out


MISTAKES = {
    "osmosis(agent=3, data=[{'user_prompt': 'a'}])": (
        "@pytest.mark.osmosis(agent=...): 'builtins:int': is an int; exp"
    ),
    "osmosis(agent=str, data=3)": (
        "@pytest.mark.osmosis(data=...): expected a path, rows (dicts), or a"
    ),
    "osmosis(agent=lambda q: q, data=[{'question': 1}])": "user_prompt",
    "osmosis(agent=str, data=[])": "returns rows, and at least one row",
    "osmosis(agent=str, data=lambda: [1 / 0])": (
        "(data=...): the function raised\nTraceback (most"
    ),
    "osmosis(agent=lambda a, b: a, data=[{'user_prompt': 'a'}])": (
        "takes (a, b); an agent takes one required parameter"
    ),
    "osmosis(agent=print, data=[{'user_prompt': 'a'}], model=3)": "(model=...): expected text",
    "osmosis(agent=print, data=[{'user_prompt': 'a'}], m=3)": "unexpected keyword argument 'm'",
    "pytest.mark.osmosis(agent='agent:agent_loop', data='data.jsonl')": (
        "::test_it: --osmosis-model is needed: a name at"
    ),
    "pytest.mark.osmosis(data='data.jsonl')": (
        "@pytest.mark.osmosis needs agent=..., or --osmosis-agent"
    ),
    "pytest.mark.osmosis(agent='agent:agent_loop')": (
        "@pytest.mark.osmosis needs data=..., or --osmosis-data"
    ),
    "pytest.mark.osmosis('agent:agent_loop')": (
        "@pytest.mark.osmosis takes keyword arguments alone"
    ),
    "pytest.mark.osmosis(agnet=1)": (
        "@pytest.mark.osmosis has no argument 'agnet'; it has agent, data, mo"
    ),
    "pytest.mark.osmosis(agent='agent:agent_loop', data='data.jsonl', n=0)": (
        "expected a whole number of at"
    ),
    "pytest.mark.osmosis(agent=str, data='data.jsonl', pass_threshold='1')": (
        "@pytest.mark.osmosis(pass_threshold='1'): expected a number"
    ),
    "pytest.mark.osmosis(agent='agent:agnt', data='data.jsonl')": (
        "@pytest.mark.osmosis(agent=...): 'agent:agnt': module 'agent' has no 'agnt'"
    ),
    "pytest.mark.osmosis(agent=str, data='no.jsonl')": "@pytest.mark.osmosis(data=...): /",
}


def test_a_mistake_in_a_marker_is_one_sentence(project: Project):
    project.rows("a")
    for number, mark in enumerate(MISTAKES):
        project.write(
            f"test_{number}.py",
            "import pytest\nfrom pytest_osmosis import osmosis\n\n"
            f"@{mark}\ndef test_it(rollout): ...\n",
        )
    session = project.plain()
    assert session.ret == 2
    for message in MISTAKES.values():
        assert message in session.out
    assert "pytest_osmosis/" not in session.out and "During handling" not in session.out
    assert project.endpoint.requests == 0


@pytest.mark.parametrize(
    "code",
    [
        "@osmosis\ndef test_it(rollout): ...",
        "@osmosis()\nclass TestIt(TestCase): ...",
        "class TestIt(TestCase):\n  @osmosis()\n  def test_it(self): ...",
    ],
)
def test_a_decorator_that_would_run_no_rollout_is_one_sentence(project: Project, code: str):
    project.write("test_it.py", f"from unittest import *\nfrom pytest_osmosis import *\n{code}\n")
    session = project.plain()
    assert session.outcomes == {"errors": 1}, session.out
    message = (
        "TestIt: unittest runs the" if "TestCase" in code else "@osmosis takes names in parenth"
    )
    assert message in session.out and "TypeError" not in session.out


JUDGED = """
import pytest
from osmosis_ai import scorers
from pytest_osmosis import (
    Rollout,
    osmosis,
)

judge = scorers.judge("Is it good?", model="openai/none", api_key_env="NOT_SET")


@osmosis(agent=lambda question: question, data=[{"user_prompt": "a", "level": 1}])
async def test_judged(rollout: Rollout) -> None:
    assert rollout.row == {
        "user_prompt": "a", "system_prompt": "", "ground_truth": None, "level": 1,
    }
    await judge(rollout.text, None, rollout.row)
"""


def test_what_a_test_calls_of_ours_raises_at_its_own_line(project: Project):
    project.write("test_it.py", JUDGED)
    session = project.plain()
    assert session.outcomes == {"failed": 1}, session.out
    assert ">       await judge(rollout.text, None, rollout.row)" in session.out
    assert "MissingAPIKeyError: " in session.out and "osmosis_ai/" not in session.out


def test_an_unrecorded_function_has_unknown_tokens_and_no_budget(project: Project):
    project.rows("a", "b")
    project.write("mine.py", "def answer(question): return question\n")
    given = {"agent": "mine:answer", "model": None, "base_url": None}
    session = project.run("--osmosis-max-total-tokens=5", **given)
    assert "stopped: the tokens of a run are not known" in session.out
    assert "; osmosis_ai.record(client) counts a function's calls" in session.out
    assert "1 rollout, tokens unknown" in session.out
    assert session.runs[0]["tokens"] is None


PARROT = """
import pytest

def parrot(question):
    return question

@pytest.mark.osmosis(agent=parrot)
def test_own(rollout):
    assert rollout.solution_str == rollout.ground_truth
"""


class TestDataAlone:
    """`--osmosis-data` beside functions that have an agent."""

    @each_mode
    def test_it_is_that_of_the_functions(self, project: Project, workers: int):
        project.rows("a", {"user_prompt": "b", "ground_truth": "c"})
        project.write("test_own.py", PARROT)
        session = project.plain("test_own.py", "--osmosis-data=data.jsonl", f"-n{workers}")
        assert session.outcomes == {"passed": 1, "failed": 1}, session.out
        assert "data.jsonl::" not in session.out

    def test_in_the_ini_file_too(self, project: Project):
        project.rows("a")
        project.write("test_own.py", PARROT)
        project.write("pytest.ini", "[pytest]\nosmosis_data = data.jsonl\n")
        assert project.plain("-n0").outcomes == {"passed": 1}

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["test_it.py"], "--osmosis-data needs --osmosis-agent too"),
            ([], "--osmosis-data needs --osmosis-agent too"),
            (["test_own.py", "-m not osmosis"], "--osmosis-data needs --osmosis-agent too"),
            (["test_own.py", "data.jsonl"], "--osmosis-data needs --osmosis-agent too"),
            (
                ["test_own.py", "--osmosis-data=b.jsonl"],
                "b.jsonl: functions with the marker take one file",
            ),
        ],
    )
    def test_where_it_is_for_none_it_is_refused(
        self, project: Project, words: list[str], message: str
    ):
        project.rows("a")
        project.write("test_own.py", PARROT)
        project.write("test_it.py", "def test_it():\n    pass\n")
        session = project.plain("-n0", "--osmosis-data=data.jsonl", *words)
        assert (session.ret, message in session.out + session.err) == (4, True), session.out
