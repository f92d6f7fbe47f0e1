"""Several schedulers over one database: no run twice, and nothing lost or paid twice by a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from osmosis_executors.local import LocalExecutor
from osmosis_platform.database.connection import Database
from osmosis_platform.database.models import Base, Run, now
from osmosis_platform.execution import scheduler as scheduling
from osmosis_platform.execution.claims import Claims, finish
from osmosis_platform.execution.execute import Services
from osmosis_platform.execution.scheduler import Scheduler
from osmosis_platform.settings import Settings
from tests.support.platform_fleet import PATIENCE_S, SECRET, Fleet, fleet, until
from tests.support.platform_server import PlatformServer
from tests.support.submitted_runs import run_of

RUNS = 50
AT_ONCE = 4
SCHEDULERS = 2


class Executed:
    """Executions that only seem to run: who had which run when."""

    def __init__(self, count: int) -> None:
        self.runs: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._now: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._left = threading.Semaphore(0)
        self._count = count

    def __call__(self, services: Services, run_id: str) -> None:
        owner = services.claims.owner
        with self._lock:
            self.runs[run_id] += 1
            self._now[owner] += 1
            self.most[owner] = max(self.most[owner], self._now[owner])
        with services.claims.database.writing() as session:
            run = session.get_one(Run, run_id, with_for_update=True)
            assert services.claims.owns(run)
            finish(session, run, "finished", "it has ended", step="run")
        with self._lock:
            self._now[owner] -= 1
        self._left.release()

    def wait(self) -> None:
        """Return once all have ended."""
        for _ in range(self._count):
            assert self._left.acquire(timeout=60)


@pytest.mark.slow
@pytest.mark.fault("two schedulers reach for one run")
def test_fifty_runs_are_each_executed_once_by_two_schedulers_so_many_at_once(
    platform: PlatformServer, monkeypatch: pytest.MonkeyPatch
):
    executed = Executed(RUNS)
    monkeypatch.setattr(scheduling, "execute", executed)
    dataset_id = platform.add_dataset()
    run_ids = [platform.add_run(dataset_id=dataset_id) for _ in range(RUNS)]
    schedulers = [
        Scheduler(
            Services(
                platform.settings.data,
                Claims(platform.database, f"scheduler{number}", lease_s=600),
                platform.vault,
                LocalExecutor(),
                threading.Event(),
            ),
            max_runs=AT_ONCE,
        )
        for number in range(SCHEDULERS)
    ]
    for scheduler in schedulers:
        scheduler.start()
    executed.wait()
    for scheduler in schedulers:
        scheduler.stop()
    assert executed.runs == dict.fromkeys(run_ids, 1)
    assert max(executed.most.values()) <= AT_ONCE
    assert {run_of(platform, run_id).status for run_id in run_ids} == {"finished"}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "keep", "end", "give back", "stop", "lease over"]),
        st.integers(0, 1),
        st.integers(0, 2),
    ),
    max_size=30,
)


@pytest.mark.fault("two schedulers reach for one run")
@settings(max_examples=5, deadline=None)
@given(steps=STEPS)
def test_a_run_belongs_to_one_scheduler_whatever_they_do(
    steps: list[tuple[str, int, int]], platform_of: Callable[[], PlatformServer]
):
    platform = platform_of()
    dataset_id = platform.add_dataset()
    run_ids = [platform.add_run(dataset_id=dataset_id) for _ in range(3)]
    claims = [
        Claims(platform.database, f"scheduler{number}", lease_s=600, most_interruptions=100)
        for number in range(2)
    ]
    held: dict[str, int] = {}
    free = set(run_ids)
    for what, who, which in steps:
        run_id, ours = run_ids[which], claims[who]
        is_held = held.get(run_id) == who
        if what == "take":
            taken = ours.take()
            assert taken in free if free else taken is None
            # Of each other scheduler whose lease is over.
            held = {run: owner for run, owner in held.items() if owner == who or run not in free}
            if taken is not None:
                free.discard(taken)
                held[taken] = who
        elif what == "keep":
            assert (ours.keep(run_id) is None) == is_held
            if is_held:
                free.discard(run_id)  # its lease is put off
        elif what == "give back":
            ours.give_back(run_id)
            if is_held:
                del held[run_id]
                free.add(run_id)
        elif what == "lease over" and run_id in held:
            platform.set_run(run_id, lease_until=now() - timedelta(seconds=1))
            free.add(run_id)
        elif what in ("end", "stop") and is_held:
            platform.set_run(run_id, status="finished" if what == "end" else "stopped")
            del held[run_id]
            free.discard(run_id)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with fleet(tmp_path, monkeypatch) as found:
        yield found


@pytest.mark.fault(
    "a process of an evaluation is killed, as where memory is short",
    "the platform is ended, or killed, while it executes runs",
)
@pytest.mark.slow
def test_kills_lose_no_finished_result_and_pay_again_only_for_what_was_in_flight(
    kept: Fleet,
):
    kept.is_open = False
    first = kept.serve(max_runs=2)
    killed = [kept.submit(name) for name in ("a", "b")]
    until(lambda: all(kept.paid(name) == [1, 1, 0] for name in "ab"), lambda: kept.log(killed[0]))
    kept.serve(max_runs=1)
    other = kept.submit("c")
    until(lambda: kept.paid("c") == [1, 1, 0], lambda: kept.log(other))

    os.kill(_evaluation_of(other), signal.SIGKILL)
    until(lambda: kept.paid("c") == [1, 2, 0], lambda: kept.log(other))
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    for run_id in killed:
        kept.platform.set_run(run_id, lease_until=now() - timedelta(seconds=1))
    kept.serve(max_runs=2)
    until(lambda: all(kept.paid(name) == [1, 2, 0] for name in "ab"), lambda: kept.log(killed[0]))
    assert [words for words in _all_arguments() if SECRET in words] == []
    kept.is_open = True

    kept.until_ended([*killed, other])
    assert [kept.paid(name) for name in "abc"] == [[1, 2, 1]] * 3
    for run_id in (*killed, other):
        found = run_of(kept.platform, run_id)
        assert found.status == "finished", kept.log(run_id)
        assert found.metrics is not None
        assert found.metrics["overview"]["passed"] == 3
    message = "warning run: the evaluation was killed; it resumes with what was finished"
    assert kept.log(other).count(message) == 1
    assert any(line.startswith("warning run: interrupted: ") for line in kept.log(killed[0]))

    _check_that_the_secret_is_nowhere(kept)


@pytest.mark.slow
def test_a_run_that_kills_its_platform_is_given_up_and_one_beside_it_is_not(kept: Fleet):
    kept.is_open = False
    deadly, other = kept.submit("deadly"), kept.submit("other")
    data = str(kept.platform.settings.data)
    for _ in range(3):
        assert kept.serve(max_runs=2).wait(PATIENCE_S) == -signal.SIGKILL
        assert run_of(kept.platform, deadly).status == "running"
        # What it had started ends a moment after it.
        until(lambda: not any(data in words for words in _all_arguments()), lambda: data)
        for run_id in (deadly, other):
            kept.platform.set_run(run_id, lease_until=now() - timedelta(seconds=1))
    kept.is_open = True
    kept.serve(max_runs=2)
    kept.until_ended([deadly, other])
    failed, finished = run_of(kept.platform, deadly), run_of(kept.platform, other)
    assert (failed.status, failed.interruptions) == ("failed", 3)
    assert (finished.status, finished.interruptions) == ("finished", 2), kept.log(other)


@pytest.mark.slow
def test_a_copy_of_the_data_folder_resumes_elsewhere_as_the_documentation_has_it(
    kept: Fleet, tmp_path: Path
):
    if not kept.platform.database.is_sqlite:
        pytest.skip("the database is in no folder")
    kept.is_open = False
    first = kept.serve(max_runs=1)
    run_id = kept.submit("a")
    until(lambda: kept.paid("a") == [1, 1, 0], lambda: kept.log(run_id))
    first.terminate()
    first.wait()
    there = tmp_path / "there"
    there.mkdir()
    pack = ["tar", "-cz", "--exclude", "./environments", "-C", kept.platform.settings.data, "."]
    packed = subprocess.run(pack, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-xz", "-C", there], input=packed, check=True)
    platform = copy(kept.platform)
    platform.settings, platform.database = Settings(data=there), Database.in_folder(there)
    moved = replace(kept, platform=platform)
    kept.is_open = True
    moved.serve(max_runs=1)
    moved.until_ended([run_id])
    platform.database.close()
    assert kept.paid("a") == [1, 2, 1]
    assert run_of(platform, run_id).status == "finished", moved.log(run_id)


def _check_that_the_secret_is_nowhere(kept: Fleet) -> None:
    with kept.platform.database.reading() as session:
        found = [
            row for table in Base.metadata.tables.values() for row in session.execute(select(table))
        ]
    rows = [repr(row).encode() for row in found]
    texts = [*rows, kept.log_file.read_bytes()]
    data = kept.platform.settings.data
    texts += [path.read_bytes() for path in data.rglob("*") if path.is_file()]
    assert [text[:200] for text in texts if SECRET.encode() in text] == []
    assert any(b"the key is ***" in text for text in texts)
    assert b'"message": "run ' in kept.log_file.read_bytes()


def _all_arguments() -> Iterator[str]:
    """The arguments of every process."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended
                yield (folder / "cmdline").read_bytes().decode(errors="replace")


def _evaluation_of(run_id: str) -> int:
    """The process of a run's pytest: the one that is started with its room in the arguments."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue  # it has ended
        if "pytest" in words and any(f"/runs/{run_id}/" in word for word in words):
            return int(folder.name)
    raise AssertionError(f"no process evaluates {run_id}")
