"""Each item is run by one protocol call, and other plugins see every one of them."""

from __future__ import annotations

import pytest

from tests.support.project import Project

IDS = [f"data.jsonl::row-{row}[run-0]" for row in range(4)]
WARNING = """
import warnings
from pathlib import Path

import pytest


def pytest_osmosis_run_result(result):
    warnings.warn(f"seen {result.row_index}")


def pytest_warning_recorded(warning_message, when, nodeid):
    with Path("warned.txt").open("a") as file:
        file.write(f"{when} {nodeid} {warning_message.message}\\n")
"""
MARKING = """

def pytest_collection_modifyitems(items):
    items[1].add_marker(pytest.mark.filterwarnings("ignore"))
"""


@pytest.fixture
def four(project: Project) -> Project:
    """A project of four rows; the third one fails."""
    project.rows("a", "b", {"user_prompt": "c", "ground_truth": "x"}, "d")
    return project


def test_a_warning_names_the_item_of_its_run(four: Project):
    four.write("conftest.py", WARNING)
    session = four.run("-Wdefault")
    assert session.outcomes == {"passed": 3, "failed": 1, "warnings": 4}
    message = (four.path / "warned.txt").read_text().splitlines()
    assert message == [f"runtest {nodeid} seen {row}" for row, nodeid in enumerate(IDS)]


def test_a_filter_of_one_item_holds_for_it_alone(four: Project):
    four.write("conftest.py", WARNING + MARKING)
    assert four.run("-Wdefault", "-Wignore:seen 3").outcomes["warnings"] == 2
    message = (four.path / "warned.txt").read_text().splitlines()
    assert message == [f"runtest {IDS[row]} seen {row}" for row in (0, 2)]


def test_a_loop_of_another_plugin_runs_the_items(four: Project):
    four.write(
        "conftest.py",
        "def pytest_runtestloop(session):\n"
        "    for item in reversed(session.items):\n"
        "        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)\n"
        "        if session.shouldfail:\n"
        "            break\n"
        "    return True\n",
    )
    session = four.run("-x")
    assert session.outcomes == {"passed": 1, "failed": 1}


def test_tests_between_two_files_of_rows_are_run_where_they_stand(four: Project):
    four.rows("e", "f", name="more.jsonl")
    four.write("test_between.py", "def test_it():\n    assert True\n")
    files = ["data.jsonl", "test_between.py", "more.jsonl"]
    session = four.run("-v", "--osmosis-data=more.jsonl", *files)
    assert session.outcomes == {"passed": 6, "failed": 1}
    words = [word for line in session.lines for word in line.split() if "::" in word]
    assert list(dict.fromkeys(word for word in words if word.endswith(("]", "test_it")))) == [
        *IDS,
        "test_between.py::test_it",
        *(f"more.jsonl::row-{row}[run-0]" for row in range(2)),
    ]
