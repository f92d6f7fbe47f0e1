"""Items that are run many in one call: nobody else can tell, and whoever looks gets each."""

from __future__ import annotations

import pytest

from tests.project import Project

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
APART = ["-o", "faulthandler_timeout=1000"]
"""Asks for something around every single item."""


@pytest.fixture
def four(project: Project) -> Project:
    """A project of four rows; the third one fails."""
    project.rows("a", "b", {"user_prompt": "c", "ground_truth": "x"}, "d")
    return project


def protocols(project: Project, *more: str) -> int:
    """How often pytest was asked to run an item: counted around every plugin's answer."""
    project.write(
        "counting.py",
        "from pathlib import Path\n"
        "import pytest\n"
        "calls = 0\n"
        "class Counting:\n"
        "    @pytest.hookimpl(wrapper=True)\n"
        "    def pytest_runtest_protocol(self):\n"
        "        global calls\n"
        "        calls += 1\n"
        "        return (yield)\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_osmosis_run_result(result, config):\n"
        "    if not config.pluginmanager.has_plugin('counter'):\n"
        "        config.pluginmanager.register(Counting(), 'counter')\n"
        "    return (yield)\n"
        "def pytest_unconfigure():\n"
        "    Path('calls.txt').write_text(str(calls))\n",
    )
    session = project.apart(
        *project.options("-n0", "--osmosis-no-journal", "-p", "counting", *more)
    )
    assert session.outcomes == {"passed": 3, "failed": 1}
    return int((project.path / "calls.txt").read_text())


def test_items_that_follow_each_other_are_run_in_one_call(four: Project) -> None:
    # Counted from the first result on, since a plugin that looks at single items gets each.
    assert protocols(four) == 0
    assert protocols(four, *APART) == 3


@pytest.mark.parametrize("more", [[], APART])
def test_a_warning_is_told_of_the_item_whose_run_it_is(four: Project, more: list[str]) -> None:
    four.write("conftest.py", WARNING)
    session = four.run("-Wdefault", *more)
    assert session.outcomes == {"passed": 3, "failed": 1, "warnings": 4}
    told = (four.path / "warned.txt").read_text().splitlines()
    assert told == [f"runtest {nodeid} seen {row}" for row, nodeid in enumerate(IDS)]


@pytest.mark.parametrize("more", [[], APART])
def test_filters_hold_in_a_stretch_and_those_of_one_item_for_it_alone(
    four: Project, more: list[str]
) -> None:
    four.write("conftest.py", WARNING + MARKING)
    assert four.run("-Wdefault", "-Wignore:seen 3", *more).outcomes["warnings"] == 2
    told = (four.path / "warned.txt").read_text().splitlines()
    assert told == [f"runtest {IDS[row]} seen {row}" for row in (0, 2)]


def test_a_plugin_that_looks_at_single_items_sees_every_one(four: Project) -> None:
    four.write(
        "conftest.py",
        "from pathlib import Path\n"
        "import pytest\n"
        "@pytest.hookimpl(wrapper=True)\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    with Path('seen.txt').open('a') as file:\n"
        "        file.write(f'{item.nodeid} {nextitem and nextitem.nodeid}\\n')\n"
        "    return (yield)\n",
    )
    assert four.run().outcomes == {"passed": 3, "failed": 1}
    seen = (four.path / "seen.txt").read_text().splitlines()
    assert seen == [f"{one} {other}" for one, other in zip(IDS, [*IDS[1:], None], strict=True)]


def test_a_loop_of_another_plugin_runs_the_items(four: Project) -> None:
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


def test_tests_between_two_files_of_rows_are_run_where_they_stand(four: Project) -> None:
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
