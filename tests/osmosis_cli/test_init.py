"""`osmosis init`: what it leaves passes at once, is typed, and overwrites nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from osmosis_cli.errors import run
from osmosis_cli.main import cli


def test_what_it_leaves_passes_at_once(pytester: pytest.Pytester):
    assert run(cli, ["init", "--yes"]) == 0
    result = pytester.runpytest_subprocess("-n0")
    result.assert_outcomes(passed=6)
    workflow = yaml.safe_load((pytester.path / ".github/workflows/evaluate.yml").read_text())
    assert any("pytest" in step.get("run", "") for step in workflow["jobs"]["evaluate"]["steps"])


def test_it_asks_without_yes_and_a_no_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda *a, **b: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run(cli, ["init", str(tmp_path / "new")]) != 0
    assert not (tmp_path / "new").exists()


def test_without_a_terminal_it_names_yes_and_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run(cli, ["init", str(tmp_path / "new")]) == 2
    assert "there is no terminal to ask on: give --yes" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "agent.py").write_text("mine")
    assert run(cli, ["init", str(tmp_path), "--yes"]) == 1
    assert "agent.py: there already; name an empty folder" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["agent.py"]


def test_the_files_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(cli, ["init", str(tmp_path / "a"), "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert "questions.jsonl" in files and (tmp_path / "a" / "questions.jsonl").exists()
