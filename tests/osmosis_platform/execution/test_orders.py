"""What a child is started with, and what its files say of its figures."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.secret import Secret
from osmosis_platform.execution.orders import Rows, child_environment, evaluation_words
from osmosis_platform.execution.run_figures import Progress
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.tail import TailedFile
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage.journal import FILE, end_line, session_line, worker_file
from pytest_osmosis.storage.run_lines import add_checksum, run_lines

RUN_ID = "0000002a" + "0" * 24
SUBMISSION: dict[str, Any] = {
    "experiment_config": {
        "rollout": "my-rollout",
        "entrypoint": "main.py",
        "model_path": "embedded",
        "dataset": "d",
    }
}


def test_the_environment_of_a_child_has_nothing_of_the_platforms_own(tmp_path: Path):
    own = {"PATH": "/bin", "LANG": "C", "https_proxy": "http://p", "OSMOSIS_TOKEN": "t", "A": "b"}
    secrets = [Secret("sk-1", "KEY"), Secret("sk-2", "OTHER")]
    env = {"LEVEL": "INFO", "TMPDIR": "/x", "OSMOSIS_SECRET_NAMES": "HOME"}  # of an older run
    found = child_environment(RunFolder(tmp_path), env, secrets, own)
    assert found == {
        "LANG": "C",
        "https_proxy": "http://p",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}/bin",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": "/x",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OSMOSIS_SECRET_NAMES": "KEY OTHER",
        "LEVEL": "INFO",
        "KEY": "sk-1",
        "OTHER": "sk-2",
    }


@pytest.mark.parametrize(
    ("evaluation", "words", "facts"),
    [
        ({}, ["--osmosis-sample=10%", "--osmosis-sample-seed=42"],
         {"sample": "10%", "sample_seed": 42}),
        ({"limit": 3}, ["--osmosis-limit=3"], {"limit": 3}),
    ],
)  # fmt: skip
def test_rows_are_the_first_ones_or_a_tenth_that_each_attempt_has_again(
    evaluation: dict[str, Any], words: list[str], facts: dict[str, Any]
):
    rows = Rows.of_run(RUN_ID, {**SUBMISSION, "evaluation_config": evaluation})
    assert (rows.words, rows.facts) == (words, facts)


def test_what_the_config_says_becomes_options_and_an_interrupted_run_is_extended():
    evaluation = {
        "n": 2, "limit": 3, "grader_timeout_s": 5.0, "map": ["a=id", "b=ground_truth"],
        "where": ["lang=en"], "prompt_template": "@p.txt", "cluster": "doc",
    }  # fmt: skip
    submission = {**SUBMISSION, "evaluation_config": evaluation}
    rows = Rows.of_run(RUN_ID, submission)
    room = RunFolder(Path("/room"))
    words = evaluation_words(submission, rows, room, Path("../d.jsonl"), resumes=False)
    assert words[words.index("--osmosis-only") :] == [
        "--osmosis-only",
        "--osmosis-agent=rollouts/my-rollout/main.py",
        "--osmosis-model=embedded",
        "--osmosis-data=../d.jsonl",
        "--osmosis-limit=3",
        "--osmosis-n=2",
        "--osmosis-grader-timeout=5.0",
        "--osmosis-map=a=id",
        "--osmosis-map=b=ground_truth",
        "--osmosis-where=lang=en",
        "--osmosis-prompt-template=@p.txt",
        "--osmosis-cluster=doc",
        "--osmosis-output=/room/results/report.json",
        "--osmosis-run-dir=/room/kept",
    ]
    again = evaluation_words(submission, rows, room, Path("../d.jsonl"), resumes=True)
    assert again == [*words, "--osmosis-extend"]
    asking = evaluation_words(submission, rows, room, Path("../d.jsonl"), resumes=False, asks=True)
    assert [word for word in asking if word not in words] == ["osmosis_executors.question"]


def test_a_dataset_is_linked_by_a_name_that_leads_nowhere_else(tmp_path: Path):
    (tmp_path / "rows.jsonl").touch()
    (tmp_path / "room").mkdir()
    for name, linked in (("my data", "my-data"), ("../x", "-.-x"), (".", "-"), ("a", "a")):
        rows = tmp_path / "rows.jsonl"
        link = RunFolder(tmp_path / "room").put_dataset(rows, name, copied=False)
        assert link == Path("../datasets") / f"{linked}.jsonl"
        assert (tmp_path / "room" / "source" / link).parent.name == "datasets"
        RunFolder(tmp_path / "room").put_dataset(rows, name, copied=True)
        assert not (tmp_path / "room/datasets" / link.name).is_symlink()


def test_a_file_that_grows_is_read_by_whole_lines_and_its_rest_to_its_end(tmp_path: Path):
    file = TailedFile(tmp_path / "x")
    assert [*file.lines()] == []
    with (tmp_path / "x").open("wb", buffering=0) as writer:
        writer.write(b"one\ntw")
        assert [*file.lines()] == [b"one\n"]
        writer.write(b"o\n")
        assert [*file.lines()] == [b"two\n"]
        assert [*file.lines()] == []
    lines = [b"%0999d\n" % number for number in range(3_000)]
    (tmp_path / "long").write_bytes(b"".join(lines) + b"the end")
    file = TailedFile(tmp_path / "long")
    assert [*file.lines()] == lines[:1048]
    assert [line for block in file.rest() for line in block] == [*lines[1048:], b"the end"]
    assert [line for block in file.rest() for line in block] == []


def line(run: int, **fields: Any) -> bytes:
    said = [{"role": "user", "content": "x" * 3_000_000}]
    return run_lines(RolloutRecord(RunResult("d", 0, run, **fields), messages=said))


def test_progress_counts_the_last_line_of_each_run_of_the_journal(tmp_path: Path):
    plan = {"n": 2, "rows": [[0, 3]], "digests": ""}
    lines = [
        session_line({"number": 1, "plan": plan}),
        line(0),
        line(0, passed=True, scores={"a": 1.0}, tokens=7),
        b'{"torn',
    ]
    (tmp_path / FILE).write_bytes(b"".join(lines))
    workers = worker_file(tmp_path, 1, "gw0")
    workers.parent.mkdir()
    workers.write_bytes(line(1, scores={"a": 0.0}))
    progress = Progress(tmp_path)
    assert progress.update()
    assert progress.overview == {
        "total_samples": 6, "completed_samples": 2, "graded": 2, "passed": 1, "failed": 1,
        "pass_rate": 0.5, "tokens_used": 7,
    }  # fmt: skip
    assert not progress.update()
    assert end_line()


def test_progress_has_the_rows_so_far_and_the_pace_of_this_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("osmosis_platform.execution.run_figures.time.time", lambda: 1010.0)
    session = session_line({"number": 1, "plan": {"n": 2, "rows": [[0, 3]], "digests": ""}})
    lines = [session, line(0, started_at=10.0, passed=True), session]
    (tmp_path / FILE).write_bytes(b"".join(lines))
    progress = Progress(tmp_path)
    progress.update()
    assert progress.metrics["remaining_s"] is None
    lines += [line(0, started_at=10.0), line(1, started_at=1000.0)]  # the first one scored again
    (tmp_path / FILE).write_bytes(b"".join(lines))
    progress.update()
    assert progress.metrics["remaining_s"] == 40.0  # 10 s for one, and four are left
    assert progress.metrics["rows"] == [[0, 0, 2]]


def test_progress_has_the_tokens_that_runs_took_before_they_were_repeated(tmp_path: Path):
    def tokens(number: int, began: float = 0.0) -> bytes:
        return line(0, tokens=number, started_at=began)

    plan = {"n": 1, "rows": [[0, 1]], "digests": ""}
    session, again = (
        session_line({"number": 1, "plan": plan}),
        session_line({"number": 2, "plan": None}),
    )
    lines = [session, tokens(1), tokens(2), again, again, again, tokens(16, 1.5)]
    lines += [again, tokens(16, 1.5)]  # scored again, without a new rollout
    (tmp_path / FILE).write_bytes(b"".join(lines))
    workers = worker_file(tmp_path, 2, "gw0")
    workers.parent.mkdir()
    workers.write_bytes(tokens(4) + tokens(8))
    progress = Progress(tmp_path)
    assert progress.update()
    overview = progress.overview
    assert (overview["completed_samples"], overview["tokens_used"]) == (1, 2 + 8 + 16)


def run_line(**fields: Any) -> bytes:
    return add_checksum(json.dumps({"run": fields}))


HOSTILE = [
    run_line(row_index=[], run_index=0),
    run_line(row_index=0),
    run_line(row_index=-1, run_index=0),
    run_line(row_index=True, run_index=10**30),
    run_line(row_index=0, run_index=9, tokens="many"),
    run_line(row_index=0, run_index=9, tokens=10**400),
    run_line(row_index=0, run_index=9, tokens=[[]] * 100),
    run_line(row_index=0, run_index=9, started_at="now"),
    run_line(row_index=0, run_index=9, padding=[[]] * 200_000),
    add_checksum(json.dumps({"run": "x"})),
    add_checksum('{"run":' + "[" * 50_000 + "]" * 50_000 + "}"),
    add_checksum(json.dumps({"session": 1})),
    add_checksum(json.dumps({"session": {"number": "../../x"}})),
    add_checksum(json.dumps({"session": {"number": [], "plan": {"n": 1, "rows": []}}})),
    add_checksum(
        json.dumps(
            {"session": {"number": 2, "plan": {"n": 1, "rows": [[0, 10**15]], "digests": ""}}}
        )
    ),
    add_checksum(json.dumps({"session": {"number": 2, "plan": {"n": 10**9, "rows": "xyz"}}})),
    add_checksum(json.dumps({"session": {"number": 2, "plan": {"n": "1", "rows": [[0, 1]]}}})),
    b'{"run":\xff,"crc":1}\n',
]


@pytest.mark.fault("a run's report is made to take much memory or time")
@pytest.mark.parametrize("odd", HOSTILE, ids=range(len(HOSTILE)))
def test_lines_that_code_of_users_has_written_into_the_journal_are_passed_over(
    tmp_path: Path, odd: bytes
):
    plan, fields = {"n": 1, "rows": [[0, 3]], "digests": ""}, {"row_index": 0, "run_index": 1}
    fields |= {"tokens": 5}
    (tmp_path / FILE).write_bytes(
        session_line({"number": 1, "plan": plan}) + run_line(**fields) + odd
    )
    progress = Progress(tmp_path)
    assert progress.update()
    overview = progress.metrics["overview"]
    assert (overview["completed_samples"], overview["tokens_used"]) == (1, 5)
    assert overview["total_samples"] in (3, 10**15)


def test_no_more_runs_are_counted_than_there_can_be(tmp_path: Path):
    lines = [run_line(row_index=row, run_index=0) for row in range(9)]
    (tmp_path / FILE).write_bytes(b"".join([*lines, run_line(row_index=0, run_index=0, tokens=3)]))
    progress = Progress(tmp_path, most=4)
    assert progress.update()
    overview = progress.overview
    assert (overview["completed_samples"], overview["tokens_used"]) == (4, 3)
