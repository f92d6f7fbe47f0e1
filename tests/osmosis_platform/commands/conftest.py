"""`osmosis platform`, in this process."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from osmosis_platform.commands.place import DataPlace
from osmosis_platform.database.connection import Database
from osmosis_platform.database.schema import upgrade
from tests.support.command import Osmosis
from tests.support.platform_server import PlatformServer


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a platform with no accounts."""
    data = tmp_path_factory.mktemp("platform") / "data"
    database = Database.in_folder(data)
    upgrade(database)
    database.close()
    return data


@pytest.fixture
def platform(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Osmosis:
    """`osmosis platform` over a data folder of the test."""
    copytree(empty, tmp_path / "data")
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATA", str(tmp_path / "data"))
    return Osmosis(monkeypatch, capsys, "platform")


@pytest.fixture
def operator(
    platform_server: PlatformServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Osmosis:
    """`osmosis platform` over the data of a platform that is served."""
    monkeypatch.setenv("OSMOSIS_PLATFORM_DATA", str(platform_server.settings.data))
    url = platform_server.database.engine.url
    monkeypatch.setattr(DataPlace, "connect", lambda place, silence_s: Database(url))
    return Osmosis(monkeypatch, capsys, "platform")
