"""The journal's file: what is acknowledged is on disk, whatever fails; nothing torn is read."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.storage import journal
from pytest_osmosis.storage.fingerprint import RunPlan
from pytest_osmosis.storage.group_sync import AppendFile, GroupSync
from pytest_osmosis.storage.journal import FILE, encode
from pytest_osmosis.storage.replay import JournalError, OtherFormat, UnknownRuns, cut_torn, replay
from pytest_osmosis.storage.run_directory import InUse, NoLocks, take_lock, user_of
from pytest_osmosis.storage.run_lines import (
    add_checksum,
    read_record,
    result_line,
    run_lines,
    verify_checksum,
)

ROOT = Path(__file__).parents[3]
PLAN = {"n": 1, "rows": [[0, 9]], "digests": "x" * 108, "names": None}


HEADER = {"name": "d-m", "info": {"name": "d"}}
SAID = [{"role": "user", "content": 'what "said":99 is\n'}]


def line(row: int, run: int = 0, **fields: Any) -> bytes:
    return run_lines(RolloutRecord(RunResult("d", row, run, **fields), messages=SAID))


def add(path: Path, *lines: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(lines)


def made(folder: Path) -> Path:
    journal.create(folder, HEADER, {"number": 1, "plan": PLAN})
    return folder / FILE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return made(tmp_path)


def attempts(operation: str, fault: str, folder: Path) -> list[dict[str, int]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.failing_calls", operation, fault, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(text) for text in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.fault("`fsync` fails")
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "exit"])
def test_whatever_call_fails_the_journal_holds_what_was_acknowledged(tmp_path, fault):
    tried = attempts("journal", fault, tmp_path)
    assert len(tried) > 10
    for attempt in tried:
        path = tmp_path / str(attempt["n"]) / FILE
        if not path.exists():
            assert attempt["acknowledged"] == 0
            continue
        kept = replay(path.parent)
        rows = [row for row, _ in kept.runs]
        assert rows == list(range(len(rows)))
        assert len(rows) >= attempt["acknowledged"]
        assert kept.dropped <= 1


@pytest.mark.fault("the disk is full")
@pytest.mark.slow
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO", "exit"])
def test_whatever_call_fails_a_report_is_the_old_or_the_new_one(tmp_path, fault):
    tried = attempts("report", fault, tmp_path)
    assert len(tried) > 10
    for attempt in tried:
        path = tmp_path / str(attempt["n"]) / "report.json"
        number = json.loads(path.read_text())["number"] if path.exists() else 0
        assert number >= attempt["acknowledged"]
        if attempt["status"] == 0:
            assert number == 2


def test_only_its_owner_may_read_a_journal(path):
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_last_line_of_a_run_counts(path):
    add(path, line(3, error_type="provider"), line(4), line(3, passed=True))
    kept = replay(path.parent)
    assert {key: (run.is_done, run.result.passed) for key, run in kept.runs.items()} == {
        (3, 0): (True, True),
        (4, 0): (True, False),
    }


def test_a_result_that_changed_has_what_was_said_before_it(path):
    add(path, line(3), result_line(RunResult("d", 3, 0, passed=True)), line(4))
    run = replay(path.parent).runs[3, 0]
    assert (run.result.passed, run.whole) == (True, True)
    record = read_record(run.place)
    assert record is not None
    assert (record.result.passed, record.messages) == (False, SAID)


def worker_lost(row: int) -> bytes:
    return result_line(RunResult("d", row, 0, error="died", error_type="worker_lost"))


def test_the_runs_of_workers_belong_to_their_session(path):
    for session, worker, runs in (
        (1, "gw0", [line(1), line(2, started_at=1.0)]),
        (1, "gw10", [line(3, tokens=10)]),
        (1, "gw9", [line(3, tokens=9)]),
        (2, "gw0", [line(2, tokens=7, started_at=2.0)]),
    ):
        file = journal.worker_file(path.parent, session, worker)
        file.parent.mkdir(exist_ok=True)
        add(file, *runs, b'{"run":{"torn')
    add(path, worker_lost(1), worker_lost(5), journal.session_line({"number": 2, "plan": None}))
    kept = replay(path.parent)
    assert {key: (run.session, run.result.tokens) for key, run in kept.runs.items()} == {
        (1, 0): (1, None), (2, 0): (2, 7), (3, 0): (1, 10), (5, 0): (1, None),
    }  # fmt: skip
    assert [(key, run.session) for key, run in kept.repeated] == [((2, 0), 1)]
    assert kept.runs[1, 0].is_done  # it had ended before its worker was lost
    assert not kept.runs[5, 0].is_done
    assert kept.dropped == 4
    assert sorted(path.name for path in kept.torn) == [
        "0001-gw0.jsonl", "0001-gw10.jsonl", "0001-gw9.jsonl", "0002-gw0.jsonl",
    ]  # fmt: skip
    cut_torn(kept)
    assert not replay(path.parent).dropped


def test_a_session_whose_line_is_lost_keeps_the_runs_of_its_workers_and_its_number(path):
    for session, tokens in ((1, 1), (2, 2), (3, 3)):
        file = journal.worker_file(path.parent, session, "gw0")
        file.parent.mkdir(exist_ok=True)
        add(file, line(session, tokens=tokens))
    add(path, journal.end_line(), journal.session_line({"number": 2, "plan": None})[:-7], b"\xff??")
    kept = replay(path.parent)
    assert {key[0]: run.session for key, run in kept.runs.items()} == {1: 1, 2: 2, 3: 3}
    assert (kept.last_session, kept.ended, kept.dropped) == (3, False, 1)
    cut_torn(kept)
    journal.begin_session(path.parent, {"number": 4, "plan": None})
    add(journal.worker_file(path.parent, 4, "gw0"), line(4))
    kept = replay(path.parent)
    assert {key[0]: run.session for key, run in kept.runs.items()} == {1: 1, 2: 2, 3: 3, 4: 4}
    assert len(kept.sessions) == 2


@given(cut=st.integers(1, 900))
def test_a_torn_end_is_dropped_wherever_it_was_torn(tmp_path_factory, cut):
    path = made(tmp_path_factory.mktemp("torn"))
    start = path.stat().st_size
    runs = [line(row) for row in range(5)]
    add(path, *runs)
    whole = path.read_bytes()
    torn = whole[: max(start, len(whole) - cut)]
    path.write_bytes(torn)
    ends = [start + len(b"".join(runs[:count])) for count in range(6)]
    kept = replay(path.parent)
    assert len(kept.runs) == sum(end <= len(torn) for end in ends[1:])
    is_torn = len(torn) not in ends
    assert (kept.dropped, kept.torn) == (is_torn, {path: ends[len(kept.runs)]} if is_torn else {})
    cut_torn(kept)
    add(path, line(7))
    assert list(replay(path.parent).runs) == [*kept.runs, (7, 0)]


@pytest.mark.parametrize(
    ("damage", "with_"),
    [
        (b'"row_index":2', b'"row_index":8'),
        (b'"row_index":2,"run_index":0},"said":1', b'"row_index":2,"run_index":0},"said":9'),
        (b'"row_index":2,"run_index":0},"said"', b'"row_index":2,"run_index":0},"sa\nd"'),
    ],
)
def test_a_damaged_line_before_the_end_is_refused_by_its_number(path, damage, with_):
    add(path, *(line(row) for row in range(5)))
    assert damage in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(damage, with_))
    with pytest.raises(JournalError, match=r"journal\.jsonl:7: this line is damaged"):
        replay(path.parent)


@pytest.mark.parametrize("first", [b"", b"{}\n", b"not json\n", b'{"osmosis_journal":1}\n'])
def test_what_has_no_head_of_a_journal_is_recognised(tmp_path, first):
    (tmp_path / FILE).write_bytes(first)
    with pytest.raises(UnknownRuns, match="the first lines of the journal are lost"):
        replay(tmp_path)


@pytest.mark.parametrize("left", ["nothing", "half a header", "the header", "half a session"])
@pytest.mark.parametrize("after", [b"", b"\xff\x00\n?", line(1)])
def test_a_journal_without_its_first_session_has_no_head(path, left, after):
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    ends = {"nothing": 0, "half a header": header - 5, "the header": header}
    path.write_bytes(whole[: ends.get(left, len(whole) - 7)] + after)
    with pytest.raises(UnknownRuns, match="the first lines of the journal are lost"):
        replay(path.parent)


@pytest.mark.fault("the journal is that of another dataset, agent or model, or of another version")
@pytest.mark.parametrize(("later", "message"), [(1, "a newer version"), (-1, "an earlier version")])
def test_the_journal_of_another_version_is_recognised(tmp_path, later, message):
    header = add_checksum(encode({"osmosis_journal": journal.FORMAT + later}))
    (tmp_path / FILE).write_bytes(header)
    with pytest.raises(OtherFormat, match=message):
        replay(tmp_path)


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), min_size=1), st.data())
def test_a_sealed_line_tells_every_change_of_a_byte(fields, data):
    sealed = add_checksum(encode(fields))
    assert verify_checksum(sealed) == fields
    at = data.draw(st.integers(0, len(sealed) - 1))
    changed = bytearray(sealed)
    changed[at] ^= data.draw(st.integers(1, 255))
    assert verify_checksum(bytes(changed)) is None


class CountingFile(AppendFile):
    """Counts, and fails on demand."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.calls: list[str] = []
        self.fail = False

    def write(self, data: bytes) -> None:
        self.calls.append("write")
        super().write(data)

    def sync(self) -> None:
        self.calls.append("sync")
        if self.fail:
            raise OSError(errno.EIO, "Input/output error")
        super().sync()


def test_lines_of_many_threads_are_written_at_once_and_go_to_disk_together(tmp_path):
    group = GroupSync(on_failure=lambda *what: pytest.fail("failed"), flush_interval_s=60)
    file = CountingFile(tmp_path / "lines")
    places: dict[int, bytes] = {}

    def append(name: str) -> None:
        for number in range(100):
            line = f"{name}{number}\n".encode()
            _, offset = group.write(file, line)
            places[offset] = line

    threads = [threading.Thread(target=append, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.calls == ["write"] * 400
    written = (tmp_path / "lines").read_bytes()
    assert len(places) == 400
    assert all(written[at:].startswith(line) for at, line in places.items())
    group.flush()
    assert file.calls == ["write"] * 400 + ["sync"]
    group.close()
    file.close()


def test_a_line_that_nobody_waits_for_is_committed_all_the_same(tmp_path):
    synced = threading.Event()

    class Telling(CountingFile):
        def sync(self) -> None:
            super().sync()
            synced.set()

    file = Telling(tmp_path / "lines")
    group = GroupSync(on_failure=lambda *what: None, flush_interval_s=0.01)
    group.write(file, b"x\n")
    assert synced.wait(60)
    group.close()
    file.close()


@pytest.mark.fault("`fsync` fails")
def test_after_a_failed_fsync_nothing_is_written_again(tmp_path):
    failures: list[tuple[Path, OSError]] = []
    group = GroupSync(on_failure=lambda *what: failures.append(what), flush_interval_s=60)
    file = CountingFile(tmp_path / "lines")
    file.fail = True
    group.wait(group.write(file, b"first\n")[0])
    file.fail = False
    group.wait(group.write(file, b"second\n")[0])
    group.flush()
    group.close()
    file.close()
    assert [(path.name, error.errno) for path, error in failures] == [("lines", errno.EIO)]
    assert file.calls == ["write", "sync"]


@pytest.mark.fault("code forks")
def test_other_programs_do_not_inherit_the_file(tmp_path):
    file = AppendFile(tmp_path / "lines")
    assert not os.get_inheritable(file._descriptor)
    file.close()


HOLD = """
import sys
from pathlib import Path
from pytest_osmosis.storage.run_directory import take_lock
lock = take_lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path):
    path, folder = tmp_path / ".x.lock", tmp_path / "x"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InUse, match=f"in use by pid {holder.pid}"):
            take_lock(path)
        assert user_of(folder) == holder.pid
        holder.kill()
    take_lock(path).release()
    assert user_of(folder) is None


@pytest.mark.parametrize("name", ["ENOLCK", "ENOTSUP", "ENOSYS"])
def test_a_file_system_without_locks_is_recognised_and_leaves_no_lock(tmp_path, monkeypatch, name):
    def no_flock(descriptor: int, operation: int) -> None:
        raise OSError(getattr(errno, name), "no locks here")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", no_flock)
        with pytest.raises(NoLocks, match="no locks here"):
            take_lock(tmp_path / ".x.lock")
        assert user_of(tmp_path / "x") is None
    take_lock(tmp_path / ".x.lock").release()


FORK = """
import os, sys, time
from pathlib import Path
from pytest_osmosis.storage.run_directory import take_lock
lock = take_lock(Path(sys.argv[1]))
if os.fork() == 0:
    print("forked", flush=True)
time.sleep(60)
"""


@pytest.mark.fault("code forks")
def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path):
    path = tmp_path / ".x.lock"
    with subprocess.Popen(
        [sys.executable, "-c", FORK, str(path)], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"forked\n"
        parent.kill()
        parent.wait()
        try:
            take_lock(path).release()
        finally:
            os.killpg(parent.pid, 9)


def test_a_plan_tells_which_rows_have_changed():
    before = RunPlan(2, [0, 1, 2, 5], "a" * 12 + "b" * 12 + "c" * 12 + "d" * 12)
    after = RunPlan(3, [0, 1, 2, 7], "a" * 12 + "x" * 12 + "c" * 12 + "d" * 12)
    assert after.changed_rows(before) == 1
    assert after.lost_rows(before) == 1
    assert RunPlan.from_json(json.loads(encode(after.to_json()))) == after
    assert after.to_json()["rows"] == [[0, 3], [7, 8]]
    assert after.row_of_name["row-7"] == 7
