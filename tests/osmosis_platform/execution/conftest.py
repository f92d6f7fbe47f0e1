"""A platform's data, which no server serves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from osmosis_platform.database.models import Run
from osmosis_platform.datasets.files import DatasetFiles
from osmosis_platform.execution.claims import Claims
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.services import Services
from osmosis_platform.settings import Settings
from osmosis_platform.vault.cipher import open_vault
from tests.support.executed_runs import SECRET, Children, Submitted, report_of
from tests.support.platform_database import new_database
from tests.support.platform_server import PlatformServer
from tests.support.submitted_runs import run_of


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


@pytest.fixture
def submitted(platform: PlatformServer, claims: Claims, tmp_path: Path) -> Submitted:
    experiment = {
        "rollout": "my-rollout", "entrypoint": "main.py", "model_path": "openai/x",
        "dataset": "my-dataset",
    }  # fmt: skip
    submission = {
        "experiment_config": experiment,
        "env_config": {"LEVEL": "INFO"},
        "secrets": {"required": ["KEY"]},
    }
    platform.add_secret("KEY", value="of the workspace, not to be taken", scope="workspace")
    platform.add_secret("KEY", value=SECRET)
    run_id = platform.add_run(submission=submission)
    dataset_id = run_of(platform, run_id).dataset_id
    files = DatasetFiles(tmp_path, dataset_id, "jsonl")
    files.make()
    files.rows.touch()
    room = RunFolder.of_run(tmp_path, run_id)
    room.make()
    (room.source / "rollouts" / "my-rollout").mkdir(parents=True)
    (room.source / "rollouts" / "my-rollout" / "main.py").touch()
    room.keep_commit("c" * 40)
    children = Children(report=report_of("fine"))
    services = Services(tmp_path, claims, platform.vault, children, threading.Event())
    return Submitted(platform, services, children, run_id, room)
