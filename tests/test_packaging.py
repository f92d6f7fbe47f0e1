"""What `pyproject.toml` promises, held against itself and against what is installed."""

from __future__ import annotations

import ast
import sys
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def versions(requirements: list[str], operator: str) -> dict[str, str]:
    """The version after `operator`, by the name of the requirement."""
    parsed = [Requirement(text) for text in requirements]
    return {
        each.name: specifier.version
        for each in parsed
        for specifier in each.specifier
        if specifier.operator == operator
    }


def test_every_lower_bound_is_a_version_that_the_oldest_environment_runs():
    extras = {**PROJECT["project"]["optional-dependencies"]}
    del extras["dev"]
    promised = {*PROJECT["project"]["dependencies"], *chain.from_iterable(extras.values())}
    bounds = versions(sorted(promised), ">=")
    assert bounds == versions(PROJECT["dependency-groups"]["oldest"], "==")
    assert len(bounds) == len(promised)


def test_the_extra_for_development_is_what_the_groups_have():
    groups = PROJECT["dependency-groups"]
    needed = {*groups["test"], *groups["lint"], *groups["types"]}
    plain = {each for each in needed if "python_version" not in each}  # tomli is required anyway
    own, *others = PROJECT["project"]["optional-dependencies"]["dev"]
    assert own == "pytest-osmosis[server,platform]"
    assert set(others) == plain


def test_the_supported_pythons_are_those_that_tox_runs():
    classified = [
        line.rpartition(" ")[2].replace(".", "")
        for line in PROJECT["project"]["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    environments = (ROOT / "tox.ini").read_text("utf-8")
    assert all(f"py{number}" in environments for number in classified)


@pytest.mark.parametrize("command", ["osmosis", "osmosis-ai", "osmosis_ai"])
def test_each_spelling_of_the_command_can_be_called(command: str):
    (found,) = entry_points(group="console_scripts", name=command)
    assert callable(found.load())


def test_pytest_finds_the_plugin_by_its_entry_point():
    (found,) = entry_points(group="pytest11", name="osmosis")
    assert found.value == "pytest_osmosis.plugin"


@pytest.mark.parametrize(
    "package", PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
)
def test_pytest_rewrites_no_package_of_the_wheel(package: str, pytestconfig: pytest.Config):
    # `osmosis eval` imports some before its session, which would warn of each.
    tree = ast.parse((ROOT / package / "__init__.py").read_text("utf-8"))
    assert "PYTEST_DONT_REWRITE" in (ast.get_docstring(tree) or "")
    # Nor does it parse them for that: two threads that parse at once fail on Python 3.11.
    hook: Any = pytestconfig.pluginmanager.rewrite_hook
    assert package not in hook._must_rewrite and "xdist" in hook._must_rewrite
