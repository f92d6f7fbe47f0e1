"""Each feature can be taken away: the main job, and every other feature, works without it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_osmosis
from pytest_osmosis.features.table import FEATURES

PACKAGE = Path(pytest_osmosis.__file__).parent
EXAMPLE = PACKAGE.parent / "examples" / "support"
NAMES = [feature.name for feature in FEATURES]


NOTES_OPTIONS = """
def pytest_unconfigure(config):
    from pytest_osmosis.options.table import BY_NAME

    with open("options.txt", "w") as file:
        print(*BY_NAME, file=file)
"""


def plugin_without(names: list[str], folder: Path) -> None:
    """Copy the plugin into a folder, without some features and their lines of the table."""
    copy = folder / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    table = copy / "features" / "table.py"
    text = table.read_text()
    for name in names:
        feature = copy / "features" / name
        if feature.is_dir():
            shutil.rmtree(feature)
        else:
            feature.with_suffix(".py").unlink()
        imported = re.compile(rf"^from \.{name}(?:\.options)? import (\w+)\n", re.M)
        (entry,) = imported.findall(text)
        text = imported.sub("", text).replace(f"    {entry},\n", "")
    table.write_text(text)


def pytest_in(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin that stands in a folder."""
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    plugins = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:anyio")
    command = [sys.executable, "-m", "pytest", *plugins, *args]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(NAMES, id="all of them"),
        *(pytest.param([name], id=name, marks=pytest.mark.slow) for name in NAMES),
    ],
)
def test_the_main_job_works_without(names: list[str], tmp_path: Path):
    plugin_without(names, tmp_path)
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "conftest.py").write_text(NOTES_OPTIONS)
    outputs = ("--osmosis-output=results.json", "--junitxml=junit.xml", "--osmosis-rows=0-1")
    result = pytest_in(tmp_path, *outputs, "-n0", "--osmosis-run-dir=runs")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "1 gate passed" in result.stdout
    report = json.loads((tmp_path / "results.json").read_text())
    assert report["summary"]["total_runs"] == 10
    assert (tmp_path / "junit.xml").read_text().count("<testcase ") == 11  # and the gate
    left_out = [feature for feature in FEATURES if feature.name in names]
    groups = [group for feature in left_out for group in feature.options]
    options = {option.name for group in groups for option in group.options}
    assert not options.intersection((tmp_path / "options.txt").read_text().split())


@pytest.mark.parametrize(
    ("word", "feature"),
    [
        ("baseline", "comparison"),
        ("candidate", "comparison"),
        (r"marked[ _-](?:fun|test)|\.marked", "marked_functions"),
        ("cassette", "cassettes"),
        ("tracing", "tracing"),
        ("rescor", "rescore"),
        ("ray", "shards"),
    ],
)
def test_no_file_names_a_feature_but_the_table_and_one_more(word: str, feature: str):
    """Its own folder does, and what runs shards: `distributed/shards`."""
    pages = ("*.py", "*.js", "*.html")
    named = re.compile(rf"(?<![a-z])(?:{word})", re.I)
    found = [
        str(path.relative_to(PACKAGE))
        for path in sorted(each for pattern in pages for each in PACKAGE.rglob(pattern))
        if feature not in path.relative_to(PACKAGE).parts and named.search(path.read_text())
    ]
    assert len(found) <= 2, found
