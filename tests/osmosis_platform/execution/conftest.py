"""A platform's data, which no server serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from osmosis_platform.database.models import Run
from osmosis_platform.execution.claims import Claims
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.platform_database import new_database
from tests.platform_server import PlatformServer


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformServer]:
    """A platform whose data alone is there."""
    database = new_database(tmp_path)
    yield PlatformServer("", database, Settings(data=tmp_path), open_vault(tmp_path, None))
    database.close()


@pytest.fixture
def claims(platform: PlatformServer) -> Claims:
    return Claims(platform.database, "first", lease_s=600)


@pytest.fixture(scope="module")
def platform_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], PlatformServer]]:
    """Makes platforms without runs: each of them all runs of which have ended."""
    data = tmp_path_factory.mktemp("platform")
    database = new_database(data)
    platform = PlatformServer("", database, Settings(data=data), open_vault(data, None))

    def emptied() -> PlatformServer:
        with database.writing() as session:
            session.execute(update(Run).values(status="stopped"))
        return platform

    yield emptied
    database.close()
