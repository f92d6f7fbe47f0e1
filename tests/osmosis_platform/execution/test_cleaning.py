"""What is removed of runs that have ended, and what is not."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from osmosis_executors.local import LocalExecutor
from osmosis_platform.database.models import now
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.scheduler import Cleaning, Scheduler
from osmosis_platform.execution.services import Services
from osmosis_platform.locks import locked
from tests.support.platform_server import PlatformServer

LONG_AGO = timedelta(days=8)
PATIENCE_S = 60.0


def room_of(platform: PlatformServer, tmp_path: Path, **values: Any) -> RunFolder:
    """The folder of a run in some state, with everything that a run leaves."""
    room = RunFolder.of_run(tmp_path, platform.add_run(**values))
    room.make()
    for path in (room.source / "x", room.journal_dir / "journal", room.output, room.report):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return room


@pytest.fixture
def cleaning(platform: PlatformServer, tmp_path: Path) -> Cleaning:
    return Cleaning(tmp_path, platform.database, keep_days=7)


def test_only_an_ended_run_loses_its_work_tree_and_some_days_later_its_journal(
    platform: PlatformServer, cleaning: Cleaning, tmp_path: Path
):
    room = room_of(platform, tmp_path, status="stopped", completed_at=now())
    old = room_of(platform, tmp_path, status="failed", completed_at=now() - LONG_AGO)
    ended = {"status": "finished", "completed_at": now() - LONG_AGO}
    uploaded = room_of(platform, tmp_path, **ended, results={"local": True})
    going_on = [room_of(platform, tmp_path, status=each) for each in ("pending", "running")]
    unknown = tmp_path / "runs/unknown"
    unknown.mkdir()
    cleaning.sweep()
    assert all((each.source / "x").exists() for each in going_on)
    assert unknown.exists()
    assert not room.source.exists()
    assert room.output.exists()
    assert (room.journal_dir / "journal").exists()
    assert not old.folder.exists()
    assert uploaded.report.exists()  # what counts is when it came here
    cleaning.sweep()


def test_what_a_trainer_has_left_is_kept_and_what_still_runs_is_left_alone(
    platform: PlatformServer, cleaning: Cleaning, tmp_path: Path
):
    ended = {"status": "finished", "completed_at": now() - LONG_AGO}
    trained = room_of(platform, tmp_path, kind="training", **ended)
    trained.trained.mkdir()
    (trained.trained / "checkpoint").touch()
    busy = room_of(platform, tmp_path, **ended)
    with locked(busy.lock, alone=True, check=lambda: None):
        cleaning.sweep()
        assert (busy.source / "x").exists()
    assert [*trained.folder.iterdir()] == [trained.trained]
    cleaning.sweep()
    assert (trained.trained / "checkpoint").exists()
    assert not busy.folder.exists()


def test_a_scheduler_removes_what_is_too_old_when_it_starts(
    platform: PlatformServer, tmp_path: Path
):
    old = room_of(platform, tmp_path, status="failed", completed_at=now() - LONG_AGO)
    claims = Claims(platform.database, "scheduler", lease_s=600)
    shutdown, executor = threading.Event(), LocalExecutor()
    services = Services(tmp_path, claims, platform.vault, executor, shutdown, keep_days=7)
    scheduler = Scheduler(services, max_runs=1)
    scheduler.start()
    end = time.monotonic() + PATIENCE_S
    while old.folder.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    scheduler.stop()
