"""Our modules are loaded by Python itself, and not by pytest's rewriter of asserts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.project import Project

TELLS_LOADERS = """
import json
import os
import sys


def pytest_unconfigure(config):
    with open(os.environ.get("PYTEST_XDIST_WORKER", "main") + ".json", "w") as file:
        json.dump({name: type(module.__spec__.loader).__name__
                   for name, module in sys.modules.items()
                   if name.startswith(("pytest_osmosis.", "osmosis_ai."))}, file)
"""

RUNS_PYTEST = """
import json
import sys

import pytest

before = list(sys.meta_path)
status = pytest.main(sys.argv[1:])
with open("left.json", "w") as file:
    json.dump([int(status), sys.meta_path == before], file)
"""


def told(project: Project, name: str) -> Any:
    return json.loads((project.path / name).read_text())


@pytest.mark.parametrize(("workers", "process"), [(0, "main"), (1, "main"), (1, "gw0")])
def test_no_module_of_an_evaluation_is_loaded_by_the_rewriter(
    project: Project, workers: int, process: str
) -> None:
    project.write("conftest.py", TELLS_LOADERS)
    project.rows("a")
    session = project.apart(*project.options(f"-n{workers}"))
    assert session.outcomes == {"passed": 1}
    loaders = told(project, f"{process}.json")
    names = list(loaders)  # in the order in which they were imported
    later = names[names.index("pytest_osmosis.session.unrewritten") + 1 :]
    assert "pytest_osmosis.evaluation" in later
    assert {loaders[name] for name in later} == {"SourceFileLoader"}


def test_the_way_in_which_modules_are_found_is_restored(project: Project) -> None:
    project.write("main.py", RUNS_PYTEST)
    project.rows("a")
    project.pytester.runpython_c(
        "import runpy, sys; sys.argv[1:] = "
        f"{project.options('-n0')!r}; runpy.run_path('main.py', run_name='__main__')"
    )
    assert told(project, "left.json") == [0, True]
