"""Which evaluation goes on, which starts anew, and what is kept aside, in folders made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.spec import Keeping
from pytest_osmosis.storage.journal import FILE
from pytest_osmosis.storage.replay import replay
from pytest_osmosis.storage.resume import Opened, is_complete, open_folder
from pytest_osmosis.storage.run_lines import add_checksum
from pytest_osmosis.storage.run_log import RunFolder, RunLog
from tests.pytest_osmosis.storage.evaluations import ALL, SUITE, ended, evaluation, keep


def opened(folder: Path, keeping: Keeping | None = None, **changed: str) -> Opened:
    return open_folder(folder, evaluation(**changed), keeping or Keeping())


def siblings(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.glob("[!.]*"))


def test_a_new_evaluation_is_on_disk_once_it_begins(tmp_path: Path):
    found = opened(tmp_path / "it")
    assert (found.session, found.cached, found.notes) == (1, {}, [])
    assert not (tmp_path / "it").exists()
    found.begin()
    kept = replay(tmp_path / "it")
    assert kept.plan == evaluation().plan.to_json()
    assert kept.runs == {}


def test_an_incomplete_evaluation_goes_on_with_the_runs_that_ended(tmp_path: Path):
    folder = keep(tmp_path, ended(0, 0), ended(1, 1, passed=False))
    found = opened(folder)
    assert set(found.cached) == {(0, 0), (1, 1)}
    assert found.notes == ["resuming: 2 of 6 runs done"]
    assert found.session == 2
    found.begin()
    assert len(replay(folder).sessions) == 2
    assert siblings(folder) == [folder.name]


def test_an_option_that_an_earlier_version_did_not_have_changes_nothing(tmp_path: Path):
    folder = keep(tmp_path, ended(0, 0))
    now = evaluation()
    without = replace(now, asked={**now.asked, "map": [], "grader": None})
    assert set(open_folder(folder, without, Keeping()).cached) == {(0, 0)}
    given = replace(now, asked={**now.asked, "map": ["question=user_prompt"]})
    [note] = open_folder(folder, given, Keeping()).notes
    assert note.startswith("starting anew: map was not given and is question=user_prompt; ")


@pytest.mark.parametrize("error_type", ["provider", "worker_lost", "internal"])
def test_runs_that_infrastructure_ended_run_again(tmp_path: Path, error_type: str):
    lost = ended(0, 0, passed=False, error="lost", error_type=error_type)
    folder = keep(tmp_path, lost, *ALL[1:])
    assert set(opened(folder).cached) == {(run.row_index, run.run_index) for run in ALL[1:]}


def test_an_evaluation_that_was_cut_short_after_its_last_run_goes_on(tmp_path: Path):
    found = opened(keep(tmp_path, *ALL))
    assert found.notes == ["resuming: 6 of 6 runs done"]


def test_a_complete_evaluation_stays_and_another_begins(tmp_path: Path):
    folder = keep(tmp_path, *ALL, is_ended=True)
    found = opened(folder)
    assert (found.session, found.cached, found.notes) == (1, {}, [])
    assert siblings(folder) == [folder.name]
    found.begin()
    [aside] = set(siblings(folder)) - {folder.name}
    assert aside.startswith(f"{folder.name}@")
    assert len(replay(folder.with_name(aside)).runs) == len(ALL)
    assert replay(folder).runs == {}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "calc-8b"}, "model was calc-7b and is calc-8b"),
        ({"source": "2"}, "the source of agent.py has changed"),
        ({"rows": "abx"}, "dataset changed since (1 of 3 rows differs)"),
    ],
)
def test_a_changed_evaluation_starts_anew_or_is_refused(
    tmp_path: Path, changed: dict[str, str], reason: str
):
    folder = keep(tmp_path, ended(0, 0))
    found = opened(folder, **changed)
    assert found.cached == {}
    [note] = found.notes
    assert note.startswith(f"starting anew: {reason}; the unfinished one is kept as {folder.name}@")
    with pytest.raises(ConfigurationError, match="cannot be resumed") as refused:
        opened(folder, Keeping(resume=True), **changed)
    assert reason in str(refused.value)


def test_a_changed_evaluation_without_a_usable_run_is_not_named(tmp_path: Path):
    refused = ended(0, 0, passed=False, error="not known", error_type="provider", fatal=True)
    found = opened(keep(tmp_path, refused), model="calc-8b")
    assert (found.cached, found.notes) == ({}, [])


def test_fresh_keeps_aside_what_could_go_on(tmp_path: Path):
    folder = keep(tmp_path, ended(0, 0))
    found = opened(folder, Keeping(fresh=True))
    assert found.cached == {}
    assert found.notes[0].startswith("--osmosis-fresh: the unfinished one is kept as")


@pytest.mark.parametrize(
    ("retry", "again"), [(None, set()), ("errors", {(0, 0)}), ("all", {(0, 0), (0, 1)})]
)
def test_what_is_asked_to_be_repeated_is(tmp_path: Path, retry: str, again: set[object]):
    raised = ended(0, 0, passed=False, error="ValueError: no", error_type="agent")
    folder = keep(tmp_path, raised, ended(0, 1, passed=False), ended(1, 0))
    found = opened(folder, Keeping(retry=retry))  # type: ignore[arg-type]
    assert {(0, 0), (0, 1), (1, 0)} - set(found.cached) == again


@pytest.mark.fault("the journal is torn, or damaged in the middle")
def test_a_torn_end_is_cut_and_said(tmp_path: Path):
    folder = keep(tmp_path, ended(0, 0))
    path = folder / FILE
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"run":{"suite":')
    found = opened(folder)
    assert "1 unfinished line dropped from the end of the journal" in found.notes
    assert set(found.cached) == {(0, 0)}
    assert path.read_bytes() == whole


@pytest.mark.fault("the journal is torn, or damaged in the middle")
def test_damage_before_the_end_is_refused_unless_a_new_start_is_asked_for(tmp_path: Path):
    folder = keep(tmp_path, ended(0, 0), ended(0, 1))
    path = folder / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"what?\n", *lines[3:]]))
    with pytest.raises(ConfigurationError, match=r"journal\.jsonl:3: this line is damaged"):
        opened(folder)
    found = opened(folder, Keeping(fresh=True))
    found.begin()
    assert len(siblings(folder)) == 2


@pytest.mark.fault("the head of the journal is lost")
@pytest.mark.parametrize("left", [None, 0, 9, -7])
def test_where_the_head_is_lost_a_new_evaluation_starts_beside_what_is_left(
    tmp_path: Path, left: int | None
):
    folder = keep(tmp_path)  # its runs are those of workers
    worker_keeps(folder, ended(0, 0))
    path = folder / FILE
    if left is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:left] + b"\xff?\n")
    if path.exists():
        with pytest.raises(ConfigurationError, match=r"--osmosis-extend: .* are lost; without"):
            opened(folder, Keeping(extend=True))
    found = opened(folder)
    assert not found.cached
    [note] = found.notes
    reason = "the journal is" if left is None else "the first lines of the journal are"
    assert note.startswith(
        f"starting anew: {reason} lost; the one before is kept as {folder.name}@"
    )
    found.begin()
    assert replay(folder).runs == {}
    assert len(siblings(folder)) == 2


def worker_keeps(folder: Path, *runs: RunResult) -> None:
    """Keep runs as a worker of the first session that is killed after them."""
    log = RunLog("gw0", root=folder, on_failure=pytest.fail)
    log.begin(SUITE, RunFolder(str(folder), 1))
    for run in runs:
        log.keep(run.run_id, RolloutRecord(run))


def test_a_run_that_only_a_worker_knew_of_is_not_lost(tmp_path: Path):
    folder = keep(tmp_path, ended(0, 0))
    worker_keeps(
        folder, ended(1, 0), ended(1, 1, passed=False, error="gone", error_type="provider")
    )
    assert set(opened(folder).cached) == {(0, 0), (1, 0)}


@pytest.mark.parametrize(("version", "which"), [(1, "an earlier"), (9, "a newer")])
def test_the_journal_of_another_version_is_kept_aside_and_named(
    tmp_path: Path, version: int, which: str
):
    folder = keep(tmp_path, ended(0, 0))
    path = folder / FILE
    path.write_bytes(add_checksum(f'{{"osmosis_journal":{version}}}'))
    wrote = f"{which} version of pytest-osmosis wrote the journal"
    found = opened(folder)
    [note] = found.notes
    assert note.startswith(f"starting anew: {wrote}; the one before is kept as {folder.name}@")
    found.begin()
    assert len(siblings(folder)) == 2
    assert replay(folder).runs == {}
    path.write_bytes(add_checksum(f'{{"osmosis_journal":{version}}}'))
    with pytest.raises(ConfigurationError, match="wrote the journal; without"):
        opened(folder, Keeping(resume=True))


@pytest.mark.parametrize(
    ("runs", "complete"),
    [(ALL, True), (ALL[1:], False), ([ended(0, 0, error_type="provider"), *ALL[1:]], False)],
)
def test_an_evaluation_is_complete_once_every_run_ended_by_itself(
    tmp_path: Path, runs: list[RunResult], complete: bool
):
    assert is_complete(replay(keep(tmp_path, *runs))) is complete


def test_another_models_unfinished_evaluation_stays_as_it_is(tmp_path: Path):
    other = keep(tmp_path, ended(0, 0))
    again = other.with_name("it")
    assert opened(again, model="calc-8b").notes == []
    with pytest.raises(ConfigurationError, match="nothing to resume: there is no it"):
        opened(again, Keeping(resume=True), model="calc-8b")
