"""What two schedulers, or a scheduler and a user, do to a run at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from osmosis_ai.platform.run_kinds import EVALUATION
from osmosis_platform.database.models import Run, now
from osmosis_platform.execution import claims as claiming
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.writing import RunWriter
from osmosis_platform.runs import records
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.support.platform_database import new_database
from tests.support.platform_server import PlatformServer
from tests.support.submitted_runs import run_of


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformServer]:
    database = new_database(tmp_path)
    yield PlatformServer("", database, Settings(data=tmp_path), open_vault(tmp_path, None))
    database.close()


def test_a_scheduler_passes_over_a_run_that_another_is_taking(platform: PlatformServer):
    first, second = platform.add_run(), platform.add_run()
    claims = Claims(platform.database, "one")
    with platform.database.writing() as session:
        held = session.get_one(Run, first, with_for_update=True).id
        assert claims.take() == second
        assert claims.take() is None
    assert claims.take() == held


def test_a_run_that_ends_while_it_is_stopped_is_one_of_the_two(platform: PlatformServer):
    run_id = platform.add_run()
    claims = Claims(platform.database, "one")
    assert claims.take() == run_id
    with ThreadPoolExecutor(1) as threads:
        with platform.database.writing() as session:
            run = session.get_one(Run, run_id)
            records.stop(session, EVALUATION, run)
            ending = threads.submit(
                RunWriter(claims, run_id).end, "finished", "it is there", step="report"
            )
        ending.result(timeout=60)
    assert run_of(platform, run_id).status == "stopped"
    assert replace(claims, owner="two").take() is None


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_machine_whose_clock_is_wrong_takes_no_run_of_another_and_loses_none(
    platform: PlatformServer, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
):
    first, second = (Claims(platform.database, name) for name in ("first", "second"))
    runs = [platform.add_run(), platform.add_run()]
    assert first.take() in runs
    with monkeypatch.context() as patch:
        patch.setattr(claiming, "now", lambda: now() + ahead)
        assert second.take() in runs
        assert second.take() is None
    assert first.take() is None
    assert replace(second, owner="third").take() is None
