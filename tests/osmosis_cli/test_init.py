"""`osmosis init`: what it leaves passes at once, is typed, and overwrites nothing."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.command import Osmosis


def test_what_it_leaves_passes_at_once_as_its_readme_says(
    osmosis: Osmosis, pytester: pytest.Pytester
):
    status, out, _ = osmosis("init", "--yes")
    assert status == 0
    readme = (pytester.path / "README.md").read_text()
    explained = re.findall(r"(?m)^\| `(.+?)`", readme)
    assert {"README.md", *explained} == set(out.partition("\n\n")[0].splitlines())

    lines = re.findall(r"(?m)^    (.+)$", readme)
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("pytest")]
    settings = [line for line in lines if line.startswith("osmosis_")]
    assert (commands[0], len(commands), len(settings)) == (["pytest"], 2, 2)
    pytester.runpytest_subprocess("-n0", *commands[0][1:]).assert_outcomes(passed=6)

    toml = pytester.path / "pyproject.toml"
    own = [line for line in toml.read_text().splitlines() if not line.startswith("osmosis_model")]
    model = "--osmosis-model=embedded/perfect"  # in place of the one in the README's settings
    toml.write_text("\n".join([*own, *settings]))
    result = pytester.runpytest_subprocess("-n0", model, *commands[1][1:])
    result.stdout.fnmatch_lines(["gate  mean[[]right] >= 0.9  1*PASSED"])
    assert (pytester.path / "report.html").exists()
    workflow = yaml.safe_load((pytester.path / ".github/workflows/evaluate.yml").read_text())
    assert any("pytest" in step.get("run", "") for step in workflow["jobs"]["evaluate"]["steps"])


@pytest.mark.parametrize("typed", [b"n\n", b""])
def test_it_asks_without_yes_and_a_no_writes_nothing(
    osmosis: Osmosis, tmp_path: Path, typed: bytes
):
    status, out, _ = osmosis("init", str(tmp_path / "new"), stdin=typed, terminal=True)
    assert (status != 0, "[Y/n]" in out) == (True, True)
    assert not (tmp_path / "new").exists()


def test_without_a_terminal_it_names_yes_and_asks_nothing(osmosis: Osmosis, tmp_path: Path):
    message = osmosis.error("init", str(tmp_path / "new"), status=2)
    assert "there is no terminal to ask on: give --yes" in message
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(osmosis: Osmosis, tmp_path: Path):
    (tmp_path / "agent.py").write_text("mine")
    message = osmosis.error("init", str(tmp_path), "--yes")
    assert "agent.py: there already; name an empty folder" in message
    assert [each.name for each in tmp_path.iterdir()] == ["agent.py"]


def test_a_readme_that_is_there_stays(osmosis: Osmosis, tmp_path: Path):
    (tmp_path / "README.md").write_text("mine")
    assert "README.md" not in osmosis.document("init", str(tmp_path))["files"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_the_files_as_json(osmosis: Osmosis, tmp_path: Path):
    files = osmosis.document("init", str(tmp_path / "a"))["files"]
    assert "questions.jsonl" in files and (tmp_path / "a" / "questions.jsonl").exists()
