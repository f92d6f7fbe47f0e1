"""`osmosis eval runs`: list, show and prune what is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from osmosis_cli.eval.runs import runs_command
from pytest_osmosis.results import RunResult, SuiteInfo
from pytest_osmosis.storage import journal, run_directory
from pytest_osmosis.storage.fingerprint import EvalFingerprint, RunPlan


def kept(folder: Path, name: str, *, done: int, started: float, rows: int = 2) -> Path:
    """An evaluation of two rows, of which some are done."""
    info = SuiteInfo("d.jsonl", "a:b", "/d.jsonl", "m", "host", ("r:f",), 1, 1.0, rows, "x")
    plan = RunPlan(1, list(range(rows)), "x" * 12 * rows)
    data = EvalFingerprint(info, {"model": "m", "seed": 3}, {"a.py": "1"}, plan).to_json()
    told = data.pop("plan")
    path = folder / name
    run_directory.make_private(path)
    header = {"name": name, "created_at": started, **data}
    journal.create(path / journal.FILE, header, {"number": 1, "plan": told})
    results = [RunResult("d.jsonl", row, 0, passed=row == 0) for row in range(done)]
    journal.add(path / journal.FILE, [journal.run_line(run.to_json(), "") for run in results])
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / ".osmosis" / "runs"
    kept(folder, "d-m@20200101-000000", done=2, started=1577836800.0)
    kept(folder, "d-m", done=1, started=1600000000.0)
    kept(folder, "e-m", done=2, started=1700000000.0)
    below = tmp_path / "deep" / "down"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return folder


def ran(*args: str) -> Result:
    return CliRunner().invoke(runs_command, args)


def document(*args: str) -> dict[str, Any]:
    result = ran(*args, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_list_has_a_line_an_evaluation_the_newest_last(runs):
    lines = ran("list").stdout.splitlines()
    assert re.split(r"  +", lines[0]) == ["name", "state", "runs done", "started", "size"]
    assert [re.split(r"  +", line)[:3] for line in lines[1:]] == [
        ["d-m@20200101-000000", "complete", "2/2"],
        ["d-m", "unfinished", "1/2"],
        ["e-m", "complete", "2/2"],
    ]


def test_the_list_as_json_has_all_there_is(runs):
    found = document("list")
    assert found["folder"] == str(runs)
    assert [(run["name"], run["archived"], run["done"]) for run in found["runs"]] == [
        ("d-m@20200101-000000", True, 2),
        ("d-m", False, 1),
        ("e-m", False, 2),
    ]


def test_nothing_kept_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ran("list").stdout.startswith("no evaluations are kept in ")


def test_one_that_is_worked_on_names_the_process(runs):
    lock = run_directory.lock(runs / "d-m")
    try:
        assert [run["state"] for run in document("list")["runs"]][1] == "in use"
        result = ran("prune", "d-m")
        assert result.exit_code == 1
        assert "d-m is in use by pid" in result.output
    finally:
        lock.release()


def test_show_tells_what_was_asked_and_what_became_of_it(runs):
    lines = ran("show", "e-m").stdout.splitlines()
    assert lines[0] == "e-m: complete, 2/2 runs"
    assert lines[1] == "  runs      1 failed, 1 passed"
    assert any(re.fullmatch(r"  seed +3", line) for line in lines)
    assert document("show", "e-m")["outcomes"] == {"failed": 1, "passed": 1}


def test_a_wrong_name_is_answered_with_the_nearest(runs):
    result = ran("show", "e-n")
    assert result.exit_code == 1
    assert "Did you mean 'e-m'" in result.output


def test_a_damaged_one_is_listed_and_can_be_deleted(runs):
    path = runs / "e-m" / journal.FILE
    path.write_bytes(path.read_bytes().replace(b'"row_index":0', b'"row_index":7'))
    assert [run["state"] for run in document("list")["runs"]].count("damaged") == 1
    assert "this line is damaged" in ran("show", "e-m").output
    assert document("prune", "e-m")["deleted"] == ["e-m"]


@pytest.mark.parametrize(
    ("options", "deleted"),
    [
        (["--archived"], ["d-m@20200101-000000"]),
        (["--complete"], ["d-m@20200101-000000", "e-m"]),
        (["--complete", "--older-than=1500"], ["d-m@20200101-000000"]),
        (["--older-than=0"], ["d-m", "d-m@20200101-000000", "e-m"]),
        (["d-m"], ["d-m"]),
    ],
)
def test_prune_deletes_what_is_meant(runs, options, deleted, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1710000000.0)
    assert sorted(document("prune", *options, "--dry-run")["deleted"]) == deleted
    assert len(list(run_directory.kept_in(runs))) == 3
    assert sorted(document("prune", *options)["deleted"]) == deleted
    left = {path.name for path in run_directory.kept_in(runs)}
    assert left == {"d-m", "d-m@20200101-000000", "e-m"}.difference(deleted)


def test_prune_wants_to_be_told_which(runs):
    result = ran("prune")
    assert result.exit_code == 2
    assert "--archived" in result.output


def test_another_folder_can_be_named(runs, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert len(document("--run-dir", str(runs), "list")["runs"]) == 3
