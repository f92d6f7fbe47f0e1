"""Several machines over one database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from osmosis_platform.database.models import now
from osmosis_platform.execution import claims as module
from osmosis_platform.execution.claims import Claims
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.support.platform_database import new_database
from tests.support.platform_server import PlatformServer


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)])
def test_a_machine_whose_clock_is_wrong_takes_no_run_of_another_and_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    database = new_database(tmp_path)
    platform = PlatformServer("", database, Settings(data=tmp_path), open_vault(tmp_path, None))
    first, second = Claims(database, "first"), Claims(database, "second")
    try:
        runs = [platform.add_run(), platform.add_run()]
        assert first.take() in runs
        with monkeypatch.context() as patch:
            patch.setattr(module, "now", lambda: now() + ahead)
            assert second.take() in runs
            assert second.take() is None
        assert first.take() is None
        assert replace(second, owner="third").take() is None
    finally:
        database.close()
