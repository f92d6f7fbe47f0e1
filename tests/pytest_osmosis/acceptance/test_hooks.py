"""The hooks of a conftest.py: rows, their names, agents and whose an error is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.modes import each_mode
from tests.support.project import Project, Session


def run(project: Project, conftest: str, *more: str, **replaced: Any) -> Session:
    project.write("conftest.py", conftest)
    return project.run("-rA", *more, **replaced)


CSV = """
import csv

def pytest_osmosis_load_rows(path):
    if path.suffix != ".csv":
        return None
    return read(path)

def read(path):
    with open(path, newline="") as file:
        yield from csv.DictReader(file)
"""


@each_mode
def test_rows_come_from_a_format_of_ones_own(project: Project, workers: int) -> None:
    project.write(
        "data.csv", "system_prompt,user_prompt,ground_truth,id\nAnswer.,a,a,one\nAnswer.,b,c,two\n"
    )
    session = run(project, CSV, data="data.csv", workers=workers)
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert [row["row_id"] for row in session.report["rows"]] == ["one", "two"]
    assert "data.csv::one[run-0]" in session.out


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [
        (
            "[{'user_prompt': 'a'}]",
            "data.x: row 0 (the first is row 0): 'system_prompt' is missing",
        ),
        ("[1]", "data.x: row 0 (the first is row 0): is a number; expected an object"),
        ("[]", "data.x: has no rows"),
        ("explode()", "pytest_osmosis_load_rows failed"),
        ("(explode() for _ in [1])", "pytest_osmosis_load_rows failed"),
    ],
)
def test_rows_that_cannot_be_used_are_told_like_any_others(
    project: Project, rows: str, mistake: str
) -> None:
    project.write("data.x", "")
    conftest = f"def pytest_osmosis_load_rows(path):\n    return {rows}\n"
    session = run(project, conftest, data="data.x")
    assert mistake in session.mistake + session.out
    assert session.ret == (5 if rows == "[]" else 4)


NAMES = """
def pytest_osmosis_row_name(row, row_index):
    return row["topic"] and f"{row['topic']}/{row_index}"
"""


@each_mode
def test_rows_are_named_by_ones_own_rule(project: Project, workers: int) -> None:
    project.rows(
        {"user_prompt": "a", "ground_truth": "a", "topic": "sums"},
        {"user_prompt": "b", "ground_truth": "b", "topic": None},
    )
    session = run(project, NAMES, workers=workers)
    assert session.outcomes == {"passed": 2}
    assert [row["row_id"] for row in session.report["rows"]] == ["sums/0", "row-1"]
    assert "PASSED data.jsonl::row-1[run-0]" in session.out
    assert "PASSED data.jsonl::sums_0~" in session.out


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("'same'", "data.jsonl: rows 0 and 1 are both named 'same'; a name must be unique"),
        ("7", "TypeError: it returned 7 for row 0; expected a name"),
        ("row['nothing']", "KeyError: 'nothing'"),
    ],
)
def test_names_that_cannot_be_used_are_a_usage_error(
    project: Project, name: str, mistake: str
) -> None:
    project.rows("a", "b")
    conftest = f"def pytest_osmosis_row_name(row, row_index):\n    return {name}\n"
    session = run(project, conftest)
    assert session.ret == 4
    assert mistake in session.mistake


BUILD = """
def pytest_osmosis_build_agent(agent, spec):
    assert spec == "agent:Agent"
    class Louder(agent):
        name = "louder"
        async def run(self, ctx):
            return ctx.complete([{"role": "assistant", "content": "LOUD"}])
    return Louder
"""


def test_the_agent_is_made_from_what_is_named(project: Project) -> None:
    project.rows({"user_prompt": "a", "ground_truth": "LOUD"})
    assert run(project, BUILD, agent="agent:Agent").outcomes == {"passed": 1}


def test_an_agent_that_cannot_be_made_is_a_usage_error(project: Project) -> None:
    project.rows("a")
    conftest = "def pytest_osmosis_build_agent(agent):\n    raise LookupError('no shop')\n"
    session = run(project, conftest)
    assert session.ret == 4
    assert "pytest_osmosis_build_agent failed" in session.mistake
    assert "LookupError: no shop" in session.mistake


def classify(whose: str) -> str:
    return f"""
def pytest_osmosis_classify_error(error):
    assert isinstance(error, LookupError)
    return {whose}
"""


@pytest.mark.parametrize(
    ("whose", "outcome", "error_type"),
    [
        ("'agent'", "failed", "agent"),
        ("'provider'", "errors", "provider"),
        ("'nobody'", "errors", "internal"),
        ("1 / 0", "errors", "internal"),
    ],
)
def test_whose_an_error_is_can_be_told(
    project: Project, whose: str, outcome: str, error_type: str
) -> None:
    project.rows("raise")
    session = run(project, classify(whose))
    assert session.outcomes == {outcome: 1}
    [found] = session.runs
    assert found["error_type"] == error_type
    said = {"internal": "pytest_osmosis_classify_error"}.get(error_type, "no such drawer")
    assert said in json.dumps(found["error"])
