"""`osmosis init`: what it leaves passes at once, is typed, and overwrites nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.command import Osmosis


def test_what_it_leaves_passes_at_once(osmosis: Osmosis, pytester: pytest.Pytester):
    assert osmosis("init", "--yes")[0] == 0
    result = pytester.runpytest_subprocess("-n0")
    result.assert_outcomes(passed=6)
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


def test_the_files_as_json(osmosis: Osmosis, tmp_path: Path):
    files = osmosis.document("init", str(tmp_path / "a"))["files"]
    assert "questions.jsonl" in files and (tmp_path / "a" / "questions.jsonl").exists()
