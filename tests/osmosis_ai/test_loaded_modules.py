"""No module is used that another thread is still importing."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from osmosis_ai.loaded_modules import loaded_module
from pytest_osmosis.user_code.import_object import load_object

ROOT = Path(__file__).parents[2]
PACKAGES = ("osmosis_ai", "pytest_osmosis", "osmosis_cli", "osmosis_platform", "osmosis_executors")
ALLOWED = {
    # The process that runs tests of code, alone in it: what it makes and what was imported in it.
    "osmosis_ai/code_tests/process.py": 7,
    "osmosis_ai/loaded_modules.py": 1,  # whether there is one
    "pytest_osmosis/options/effects.py": 1,  # likewise
    "pytest_osmosis/items/collection.py": 1,  # the module itself, for others to keep
    # A file under a name of ours, with its lock held; and where a module comes from, which stands
    # there before it is executed.
    "pytest_osmosis/user_code/import_object.py": 5,
}
SLOW = """
import threading

begun, end = threading.Event(), threading.Event()
{announce}
assert end.wait(60)
value = 1
"""


def test_modules_are_looked_up_by_import_alone():
    found: dict[str, int] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Attribute) and node.attr == "modules":
                    name = str(path.relative_to(ROOT))
                    found[name] = found.get(name, 0) + 1
                assert not (isinstance(node, ast.ImportFrom) and node.module == "sys")
    assert found == ALLOWED


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that tells when its import has begun, and waits to be ended."""
    announce = "__import__('sys').modules['slow_announced'].append((begun, end))"
    path = tmp_path / "slow_module.py"
    path.write_text(SLOW.format(announce=announce))
    monkeypatch.syspath_prepend(str(tmp_path))
    announced = Announced("slow_announced")
    monkeypatch.setitem(sys.modules, "slow_announced", announced)
    yield path
    for name in [name for name in sys.modules if name.startswith("slow_module")]:
        del sys.modules[name]


class Announced(ModuleType):
    """Takes the events of the module."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.there = threading.Event()
        self.end: threading.Event | None = None

    def append(self, events: tuple[threading.Event, threading.Event]) -> None:
        self.end = events[1]
        self.there.set()


def test_a_module_that_another_thread_imports_is_waited_for(slow: Path):
    announced = sys.modules["slow_announced"]
    assert isinstance(announced, Announced)
    assert loaded_module("slow_module") is None
    with ThreadPoolExecutor(2) as threads:
        threads.submit(__import__, "slow_module")
        assert announced.there.wait(60)
        other = threads.submit(lambda: getattr(loaded_module("slow_module"), "value", None))
        assert announced.end is not None
        announced.end.set()
        assert other.result(60) == 1


def test_so_is_a_file_under_a_name_of_ours(slow: Path, monkeypatch: pytest.MonkeyPatch):
    announced = sys.modules["slow_announced"]
    assert isinstance(announced, Announced)
    monkeypatch.setitem(sys.modules, "slow_module", ModuleType("slow_module"))  # another one
    path = list(sys.path)
    with ThreadPoolExecutor(2) as threads:
        wanted = (f"{slow}:value",), {"option": "--eval-fn", "roots": ()}
        first = threads.submit(load_object, *wanted[0], **wanted[1])
        assert announced.there.wait(60)
        second = threads.submit(load_object, *wanted[0], **wanted[1])
        assert announced.end is not None
        announced.end.set()
        assert (first.result(60), second.result(60)) == (1, 1)
    sys.path[:] = path
