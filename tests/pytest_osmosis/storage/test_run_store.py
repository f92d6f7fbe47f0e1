"""The store with results made by hand: what is reported is on disk, and no other session's."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.run_result import RolloutRecord, RunId, RunResult
from pytest_osmosis.spec import Keeping
from pytest_osmosis.storage import run_directory
from pytest_osmosis.storage.group_sync import AppendFile
from pytest_osmosis.storage.journal import FILE
from pytest_osmosis.storage.kept_result import kept_suite
from pytest_osmosis.storage.replay import replay
from pytest_osmosis.storage.run_store import RunStore
from tests.pytest_osmosis.storage.evaluations import SUITE, ended, evaluation, keep, store_in


@pytest.fixture
def store(tmp_path: Path) -> Any:
    found = store_in(tmp_path)
    found.open([evaluation()])
    found.begin([SUITE])
    yield found
    found.close()


def on_disk(store: RunStore, row: int, run: int) -> RunResult:
    return replay(Path(store.places()[SUITE].folder)).runs[row, run].result


def test_a_run_is_written_as_it_ends_and_synced_when_its_report_returns(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced: list[Path] = []
    monkeypatch.setattr(AppendFile, "sync", lambda file: synced.append(file.path))
    run = ended(0, 0)
    store.log.keep(run.run_id, RolloutRecord(run, "frames", [{"role": "user"}]))
    assert on_disk(store, 0, 0) == run
    store.log.report(run.run_id, run)
    ours = [path.name for path in synced if path.is_relative_to(tmp_path)]
    assert ours == [FILE]  # the thread that syncs may have files of other tests
    found = store.log.record(run.run_id)
    assert found is not None
    assert (found.result, found.frames, found.messages) == (run, "frames", [{"role": "user"}])
    assert store.keeps(SUITE)
    assert not store.keeps("other.jsonl")


def test_what_pytest_reports_counts_where_it_differs_from_how_the_run_ended(
    store: RunStore,
):
    run = ended(0, 0)
    store.log.keep(run.run_id, RolloutRecord(run))
    changed = replace(run, passed=False)
    store.log.report(changed.run_id, changed)
    assert on_disk(store, 0, 0) == changed


def test_the_runs_of_an_earlier_session_are_given_back_as_they_were(tmp_path: Path):
    keep(tmp_path, ended(1, 0))
    for answers in (True, False):
        store = store_in(tmp_path, answers=answers)
        store.open([evaluation()])
        assert store.resumes
        assert [store.has(RunId(SUITE, 1, run)) for run in (0, 1)] == [True, False]
        assert store.find(RunId(SUITE, 1, 1)) is None
        found = store.find(RunId(SUITE, 1, 0))
        assert found == ended(1, 0, cached=True, answer="1.0" if answers else None)
        store.close()


def test_how_runs_had_ended_that_are_run_again_is_known_whichever_session_ran_them(
    tmp_path: Path,
):
    def failed(run: int, tokens: int) -> RunResult:
        return ended(0, run, passed=False, error="lost", error_type="provider", tokens=tokens)

    keep(tmp_path, failed(0, 1), failed(0, 2), failed(1, 4), ended(1, 0, tokens=8))
    folder = keep(tmp_path, failed(0, 16), ended(0, 1, tokens=32))
    store = store_in(tmp_path)
    store.open([evaluation()])
    assert sorted(run.tokens or 0 for run in store.repeated(SUITE)) == [2, 4, 16]
    store.begin([SUITE])
    run = ended(0, 0, tokens=64)
    store.log.report(run.run_id, run)
    store.close()
    suite = kept_suite(replay(folder))
    assert (suite.used.tokens, suite.repeated.tokens) == (64 + 32 + 8, 2 + 4 + 16)


def test_a_run_of_an_earlier_session_is_not_written_again(tmp_path: Path):
    folder = keep(tmp_path, ended(1, 0))
    store = store_in(tmp_path)
    store.open([evaluation()])
    store.begin([SUITE])
    before = (folder / FILE).read_bytes()
    found = store.find(RunId(SUITE, 1, 0))
    assert found is not None
    store.log.report(found.run_id, found)
    store.close()
    assert (folder / FILE).read_bytes() == before


def test_the_test_of_a_marked_function_gets_no_damaged_conversation(tmp_path: Path):
    plain = evaluation()
    marked = replace(plain, info=replace(plain.info, scored_by_test=True))
    path = keep(tmp_path, ended(0, 0), ended(0, 1), identity=marked) / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    assert b'"messages"' in lines[-1]
    path.write_bytes(b"".join([*lines[:-1], bytes(len(lines[-1]))]))  # after a power failure
    store = store_in(tmp_path)
    store.open([marked])
    assert store.has(RunId(SUITE, 0, 0))
    assert not store.has(RunId(SUITE, 0, 1))
    assert store.repeated(SUITE) == [ended(0, 1)]
    store.close()


def test_the_lines_say_where_it_is_kept_and_quietly_only_what_is_unusual(tmp_path: Path):
    folder = keep(tmp_path)
    place = folder.relative_to(tmp_path)
    for quiet, expected in ((False, [f"osmosis: journal {place}"]), (True, [])):
        store = store_in(tmp_path)
        store.open([evaluation()])
        assert store.take_lines(quiet=quiet) == expected
        store.close()
    keep(tmp_path, ended(0, 0))
    store = store_in(tmp_path)
    store.open([evaluation()])
    store.close()
    assert store.take_lines(quiet=True) == [f"osmosis: journal {place}, resuming: 1 of 6 runs done"]


def test_one_evaluation_has_one_session_at_a_time(tmp_path: Path, store: RunStore):
    second = store_in(tmp_path)
    with pytest.raises(ConfigurationError, match=r"elsewhere with --osmosis-run-dir=PATH$"):
        second.open([evaluation()])
    store.close()
    second.open([evaluation()])
    second.close()


def test_a_report_has_one_session_at_a_time(tmp_path: Path):
    first, second = (store_in(tmp_path) for _ in range(2))
    first.guard_report(tmp_path / "out.json")
    second.guard_report(tmp_path / "other.json")
    with pytest.raises(ConfigurationError, match="wait for it, or name another file"):
        second.guard_report(tmp_path / "out.json")
    first.close()
    second.guard_report(tmp_path / "out.json")
    second.close()


def test_evaluations_of_files_with_one_name_have_folders_of_their_own(tmp_path: Path):
    store = store_in(tmp_path)
    store.open([evaluation(name=name) for name in ("a/data.jsonl", "b/data.jsonl")])
    folders = {place.folder for place in store.places().values()}
    store.close()
    assert len(folders) == 2


def name_of(root: Path, data: str) -> str:
    info = replace(evaluation().info, data=str(root / data))
    return run_directory.name_for(info, root)


@pytest.mark.parametrize(
    "names",
    [
        ("数据.jsonl", "问题.jsonl"),
        ("fragen-ä.jsonl", "fragen-ö.jsonl"),
        ("हिन्दी.jsonl", "हिन्दु.jsonl"),
        ("🎉.jsonl", "🎈.jsonl"),
        ("\udcff.jsonl", "\udcfe.jsonl"),
        ("数" * 70 + ".jsonl", "数" * 71 + ".jsonl"),
    ],
)
def test_a_file_of_any_script_is_an_evaluation_of_its_own(tmp_path: Path, names: tuple[str, str]):
    folders = {name_of(tmp_path, name) for name in names}
    assert len(folders) == 2
    assert all(len(folder.encode()) <= 100 for folder in folders)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("données/été.jsonl", "agent.agent_loop-données.été-calc-7b"),
        ("my rows (1).jsonl", "agent.agent_loop-my-rows-1-calc-7b"),
        ("数据.jsonl", "agent.agent_loop-数据-calc-7b"),
    ],
)
def test_an_evaluation_has_the_name_of_its_file(tmp_path: Path, data: str, name: str):
    assert name_of(tmp_path, data) == name


@pytest.mark.fault("the project is read-only, or has no locks")
@pytest.mark.parametrize(
    ("error", "keeping", "refused"),
    [
        (errno.EROFS, Keeping(), False),
        (errno.EACCES, Keeping(), False),
        (errno.EROFS, Keeping(resume=True), True),
        (errno.EROFS, Keeping(run_dir=Path("/elsewhere")), True),
        (errno.ENOSPC, Keeping(), True),
    ],
)
def test_where_nothing_can_be_kept_that_is_said_before_anything_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, keeping: Keeping, refused: bool
):
    def fails(folder: Path) -> None:
        raise OSError(error, "cannot")

    monkeypatch.setattr(run_directory, "make_private", fails)
    store = store_in(tmp_path, keeping)
    if refused:
        with pytest.raises(ConfigurationError, match="the journal cannot be written: cannot"):
            store.open([evaluation()])
    else:
        store.open([evaluation()])
        [line] = store.take_lines(quiet=True)
        assert line.startswith("osmosis: warning: no journal, .osmosis/runs/")
        assert not store.keeps(SUITE)
    store.close()


def test_a_full_disk_ends_the_starting_of_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    reasons: list[str] = []
    store = store_in(tmp_path, on_failure=reasons.append)
    store.open([evaluation()])
    store.begin([SUITE])

    def full(file: AppendFile, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(AppendFile, "write", full)
    for run in (ended(0, 0), ended(0, 1)):
        store.log.keep(run.run_id, RolloutRecord(run))
        store.log.report(run.run_id, run)
    store.close()
    [reason] = reasons
    assert reason.startswith("cannot write the journal .osmosis/runs/")
    assert "No space left on device; nothing more is started" in reason


def test_closing_twice_is_harmless_and_frees_the_evaluation(tmp_path: Path, store: RunStore):
    store.close()
    store.close()
    keep(tmp_path, ended(0, 0))


def test_conversations_are_written_also_where_no_run_is_kept(tmp_path: Path):
    store = store_in(tmp_path)
    store.add([SUITE])
    store.begin([SUITE])
    [place] = store.places().values()
    assert place.session == 1
    assert not Path(place.folder).is_relative_to(tmp_path / ".osmosis")
    store.log.keep(ended(0, 0).run_id, RolloutRecord(ended(0, 0), messages=[{"role": "user"}]))
    found = store.log.record(RunId(SUITE, 0, 0))
    assert found is not None
    assert found.messages == [{"role": "user"}]
    parent = Path(place.folder).parent
    store.close()
    assert not parent.exists()
