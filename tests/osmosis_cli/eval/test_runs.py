"""`osmosis eval runs`: list, show and prune what is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from osmosis_cli.eval.runs import runs_command
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage import journal, run_directory
from pytest_osmosis.storage.run_lines import add_checksum
from tests.support.kept_evaluation import add, kept
from tests.support.narrow_terminal import COLUMNS, NarrowTerminal


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


def test_the_list_has_a_line_an_evaluation_the_newest_first(runs):
    lines = ran("list").stdout.splitlines()
    assert re.split(r"  +", lines[0]) == [
        "name", "result", "runs", "mean", "pass@1", "started", "size",
    ]  # fmt: skip
    assert [re.split(r"  +", line)[:3] for line in lines[1:]] == [
        ["e-m", "failed", "2/2"],
        ["d-m", "unfinished", "1/2"],
        ["d-m@20200101-000000", "failed", "2/2"],
    ]


def test_a_line_of_the_list_fits_80_columns_and_its_shortened_names_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    names = [f"test_data-meta-llama-70B-Instruct@20200101-00000{second}" for second in range(3)]
    for number, name in enumerate(names):
        kept(tmp_path / ".osmosis" / "runs", name, done=2, started=1.6e9 + number)
    monkeypatch.chdir(tmp_path)
    screen = NarrowTerminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "80")
    runs_command.main(["list"], prog_name="runs", standalone_mode=False)
    lines = screen.lines()
    assert lines[0].split()[-2:] == ["started", "size"] and max(map(len, lines)) <= 80
    shown = [line.split()[0] for line in lines[1:]]
    assert [document("show", name)["name"] for name in shown] == names[::-1]


def test_a_file_that_a_session_renames_meanwhile_has_no_size(
    runs: Path, monkeypatch: pytest.MonkeyPatch
):
    before = document("list")
    temporary = runs / "e-m" / ".trajectories.jsonl.tmp"
    temporary.write_bytes(b"{}")
    is_file = Path.is_file

    def asked(path: Path, **options: Any) -> bool:
        found = is_file(path, **options)
        if path == temporary:
            path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", asked)
    assert document("list") == before


def test_the_list_as_json_has_all_there_is(runs):
    found = document("list")
    assert found["folder"] == str(runs)
    assert [(run["name"], run["archived"], run["done"]) for run in found["runs"]] == [
        ("e-m", False, 2),
        ("d-m", False, 1),
        ("d-m@20200101-000000", True, 2),
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
    assert lines[0] == "e-m: complete, failed, 2/2 runs"
    assert lines[1].split(maxsplit=1) == ["runs", "1 passed, 1 below"]
    assert any(re.fullmatch(r"  seed +3", line) for line in lines)
    assert document("show", "e-m")["outcomes"] == {"passed": 1, "below": 1}
    add(runs / "e-m", RunResult("d.jsonl", 0, 1), RunResult("d.jsonl", 7, 0))  # not asked for last
    assert document("show", "e-m")["outcomes"] == {"passed": 1, "below": 1}


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
        (["--older-than=1500"], ["d-m@20200101-000000"]),
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


def test_prune_needs_to_know_which(runs):
    result = ran("prune")
    assert result.exit_code == 2
    assert "--archived" in result.output


def test_another_folder_can_be_named(runs, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    assert len(document("--run-dir", str(runs), "list")["runs"]) == 3


@pytest.fixture
def conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An evaluation and the one before it, of two rows with two runs each."""
    folder = tmp_path / ".osmosis" / "runs"
    for name, started, low in (("d-m@20200101-000000", 1.0e9, 0.0), ("d-m", 1.6e9, 0.5)):
        path = kept(folder, name, done=0, started=started, n=2)
        for row, run, score in ((0, 0, 1.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, low)):
            result = RunResult(
                "d.jsonl", row, run, success=True, passed=score == 1.0, scores={"r:f": score},
                llm_calls=1, tokens=9,
            )  # fmt: skip
            said = [{"role": "user", "content": f"row {row}\x1b[2J"},
                    {"role": "assistant", "content": f"run {run}"}]  # fmt: skip
            record = RolloutRecord(
                result, "", said, ground_truth="truth", reasons={"r:f": ["too short"]}
            )
            add(path, record)
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_list_shows_figures(conversations):
    lines = [re.split(r"  +", line) for line in ran("list").stdout.splitlines()]
    assert lines[0][3:5] == ["mean", "pass@1"]
    assert [line[3] for line in lines[1:]] == ["0.875", "0.750"]


def test_show_has_the_table_of_figures_and_the_lowest_rows(conversations):
    lines = ran("show", "d-m").stdout.splitlines()
    assert any(line.startswith("r:f") and "0.875" in line for line in lines)
    assert "lowest rows: row-1 1/2" in lines
    assert sum(line.lstrip().startswith("eval f") for line in lines) == 2  # what was asked, a table
    assert document("show", "d-m")["figures"]["r:f"]["mean"] == 0.875


@pytest.mark.parametrize("args", [["list"], ["show", "d-m"], ["show", "d-m", "row-0"]])
def test_a_narrow_terminal_without_more_than_ascii_can_be_read(
    conversations: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
):
    said = [{"role": "user", "content": "thé … 木 " * 12}]
    result = RunResult("d.jsonl", 0, 0, success=True, passed=True, scores={"r:f": 1.0})
    add(conversations / "d-m", RolloutRecord(result, "", said))
    screen = NarrowTerminal(monkeypatch)
    runs_command.main(args, prog_name="runs", standalone_mode=False)
    lines = screen.lines()
    if len(args) == 3:
        assert "  user       th\\xe9 ... \\u6728 th\\xe9 ..." in " ".join(lines)
    else:
        assert [line for line in lines if len(line) > COLUMNS] == []
        assert any(line.startswith("d-m") for line in lines)


@pytest.mark.parametrize("asked", ["row-1", "1", "row-1[run-1]", "d.jsonl::row-1[run-1]"])
def test_show_of_a_row_has_its_scores_and_the_conversation_that_failed(conversations, asked):
    lines = ran("show", "d-m", asked).stdout.splitlines()
    assert lines[:2] == [
        "row-1[run-0]  passed  r:f 1  1 turn, 9 tokens, 0.00 s",
        "row-1[run-1]  below   r:f 0.5  1 turn, 9 tokens, 0.00 s",
    ]
    assert lines[3:6] == [
        "row-1[run-1]", "  user       row 1\\x1b[2J", "  assistant  run 1",
    ]  # fmt: skip
    assert lines[-2:] == ["  ground truth  truth", "  reason        r:f: too short"]
    found = document("show", "d-m", asked)
    assert [run["scores"]["r:f"] for run in found["runs"]] == [1.0, 0.5]
    assert found["messages"][1]["content"] == "run 1"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("row-3", "there is no row 'row-3'"),
        ("²", "there is no row '²'"),
        ("row-1[run-7]", "row-1 has no run 7 that has ended"),
    ],
)
def test_a_row_or_run_that_is_not_there_is_said(conversations, asked, said):
    result = ran("show", "d-m", asked)
    assert result.exit_code == 1
    assert said in result.output


def test_of_a_run_that_raised_before_any_call_there_are_its_frames_and_the_question(
    runs: Path,
):
    result = RunResult("d.jsonl", 1, 0, error="ValueError: no", error_type="agent")
    frames = "Traceback (most recent call last):\nValueError: no"
    asked = [{"role": "user", "content": "What is\x1b 2 + 2?"}]
    add(runs / "d-m", RolloutRecord(result, frames, asked, ground_truth="4"))
    lines = ran("show", "d-m", "row-1").stdout.splitlines()
    assert lines[2:] == [
        "row-1[run-0]", *frames.splitlines(), "", "  user       What is\\x1b 2 + 2?", "",
        "  ground truth  4",
    ]  # fmt: skip


def test_the_journal_of_an_earlier_version_is_listed_as_that_and_can_be_deleted(
    runs: Path,
):
    (runs / "e-m" / journal.FILE).write_bytes(add_checksum('{"osmosis_journal":1}'))
    [old] = [run for run in document("list")["runs"] if run["name"] == "e-m"]
    assert old["state"] == "other version"
    assert old["problem"].endswith("an earlier version of pytest-osmosis wrote the journal")
    assert "wrote the journal" in ran("show", "e-m").output
    assert document("prune", "e-m")["deleted"] == ["e-m"]
