"""While an evaluation runs, garbage is collected rarely; afterwards as before."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.project import Project

OBSERVER = """
import gc
import os
from pathlib import Path


def note(where):
    process = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with Path("seen.txt").open("a") as file:
        print(process, where, *gc.get_threshold(), file=file)
"""
CONFTEST = f"""{OBSERVER}

def pytest_collection_finish():
    note("collected")


def pytest_runtest_logreport(report):
    note("report")


def pytest_unconfigure():
    note("end")
"""
EVAL = f"""{OBSERVER}

def exact(solution_str, ground_truth, extra_info):
    note("eval")
    return 1.0 if solution_str == ground_truth else 0.0
"""
TEST = f"""{OBSERVER}

def test_it():
    note("test")
"""
RARE = "10000 10 10"


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A collector as Python 3.11 has it, and the one that there was."""
    threshold = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.enable()
    gc.set_threshold(*threshold)


@pytest.fixture
def observed(project: Project) -> Project:
    project.write("conftest.py", CONFTEST)
    project.write("rewards.py", EVAL)
    project.rows("a", "b")
    return project


def seen(project: Project, where: str, process: str = "main") -> set[str]:
    """The thresholds that this part of the session had."""
    lines = (project.path / "seen.txt").read_text().splitlines()
    found = (line.split(maxsplit=2) for line in lines)
    return {threshold for *place, threshold in found if place == [process, where]}


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_process_of_an_evaluation_collects_rarely(observed: Project, workers: int):
    assert observed.run(workers=workers).outcomes == {"passed": 2}
    runner = "gw0" if workers else "main"
    assert seen(observed, "collected", runner) == {"700 10 10"}
    assert seen(observed, "eval", runner) == seen(observed, "report", runner) == {RARE}
    assert seen(observed, "report") == {RARE}
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize(
    ("setting", "during"),
    [
        ("gc.set_threshold(500, 20, 5)", "10000 20 5"),
        ("gc.set_threshold(50_000, 20, 5)", "50000 20 5"),
        ("gc.disable()", "700 10 10"),
    ],
)
def test_a_collector_that_is_off_or_slower_is_left_alone(
    observed: Project, setting: str, during: str
):
    observed.write("conftest.py", f"{CONFTEST}\n{setting}\n")
    observed.run()
    assert seen(observed, "eval") == {during}
    assert seen(observed, "collected") == {" ".join(map(str, gc.get_threshold()))}


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("test_one.py", "data.jsonl"), ("data.jsonl", "test_one.py")]
)
def test_runs_beside_an_ordinary_test_leave_the_collector_alone(
    observed: Project, arguments: tuple[str, str]
):
    observed.write("test_one.py", TEST)
    assert observed.run(*arguments).outcomes == {"passed": 3}
    assert seen(observed, "eval") == seen(observed, "test") == {"700 10 10"}


TWICE = """
import gc
import sys

import pytest

gc.set_threshold(700, 10, 10)
for name in ("one.json", "two.json"):
    assert pytest.main([*sys.argv[1:], f"--osmosis-output={name}", "--osmosis-fresh"]) == 0
    assert (gc.get_threshold(), gc.get_freeze_count()) == ((700, 10, 10), 0)
"""
NOTES = """
import os

notes = open(f"notes-{os.getpid()}.txt", "w")


def agent(question):
    notes.write(question + "\\n")
    return question
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_that_a_module_holds_open_is_written(observed: Project, workers: int):
    observed.write("noting.py", NOTES)
    own_model = {"agent": "noting:agent", "model": None, "base_url": None}
    session = observed.evaluate(*observed.options(f"-n{workers}", **own_model))
    assert session.outcomes == {"passed": 2}
    files = observed.path.glob("notes-*.txt")
    assert sorted("".join(file.read_text() for file in files).split()) == ["a", "b"]


def test_two_evaluations_of_a_process_leave_nothing_frozen(observed: Project):
    script = observed.write("twice.py", TWICE)
    command = [sys.executable, str(script), *observed.options("-n0", output=None)]
    done = subprocess.run(command, cwd=observed.path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert seen(observed, "eval") == {RARE}


def test_a_session_that_breaks_off_puts_the_threshold_back(observed: Project):
    raising = CONFTEST.replace('note("report")', 'note("report")\n    raise RuntimeError')
    observed.write("conftest.py", raising)
    assert observed.run().ret == pytest.ExitCode.INTERNAL_ERROR
    assert seen(observed, "report") == seen(observed, "end") == {RARE}
    assert gc.get_threshold() == (700, 10, 10)
