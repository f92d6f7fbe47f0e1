"""A platform that a test can talk to: uvicorn in a thread of this process, data in a tmp folder.

The fixture `platform_server` is there for every test; it is started once a module. A test that must
not see what others do in it makes a workspace of its own with `add_workspace`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.platform_database import new_database

if TYPE_CHECKING:
    from osmosis_platform.database.connection import Database
    from osmosis_platform.datasets.checks import DatasetChecks
    from osmosis_platform.settings import Settings
    from osmosis_platform.vault.cipher import Vault

START_TIMEOUT_S = 60


@dataclass(frozen=True)
class Account:
    """A user in a workspace, and how it is logged in."""

    user_id: str
    user: str
    workspace_id: str
    workspace: str
    repository: str
    token_id: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        """What a client of this user sends."""
        return {
            "Authorization": f"Bearer {self.token}",
            "X-Osmosis-CLI-Version": "0.1.0",
            "X-Osmosis-Git": self.repository,
        }


class PlatformServer:
    """A platform with one user in one workspace: `owner` in `acme`, of `acme/agents`."""

    checks: DatasetChecks
    """Those of uploads, where it is served."""

    def __init__(self, url: str, database: Database, settings: Settings, vault: Vault) -> None:
        self.url = url
        self.database = database
        self.vault = vault
        self.settings = settings
        self._count = 0
        self.account = self.add_user("owner", workspace="acme", repository="acme/agents")
        self.user = self.account.user
        self.token = self.account.token
        self.workspace = self.account.workspace
        self.repository = self.account.repository

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the command reaches this platform as the first user."""
        return {
            "OSMOSIS_PLATFORM_URL": self.url,
            "OSMOSIS_TOKEN": self.token,
            "OSMOSIS_TOKEN_PLATFORM_URL": self.url,
        }

    def add_workspace(self, *, role: str = "owner") -> Account:
        """Add a workspace that no other test knows, with a user of its own."""
        self._count += 1
        name = f"workspace{self._count}"
        return self.add_user(
            f"user{self._count}", workspace=name, repository=f"owners/repo{self._count}", role=role
        )

    def add_user(
        self,
        name: str,
        *,
        workspace: str = "acme",
        repository: str | None = None,
        role: str = "owner",
        password: str | None = None,
        expires_s: float = 3600,
    ) -> Account:
        """Add a user, and the workspace too when a repository is given; return the login."""
        from osmosis_platform.accounts import registry, tokens

        with self.database.writing() as session:
            user = registry.add_user(session, name, email=f"{name}@x.test", password=password)
            home = (
                registry.add_workspace(session, workspace, repository)
                if repository
                else registry.find_workspace(session, workspace)
            )
            registry.add_member(session, home, user, role)
            token, text = tokens.issue(session, user.id, home.id, label="test", expires_s=expires_s)
            return Account(user.id, name, home.id, home.name, home.repository, token.id, text)

    def add_token(self, account: Account, *, expires_s: float = 3600) -> str:
        """Return another token of a user; one of less than 0 seconds has expired."""
        from osmosis_platform.accounts import tokens

        with self.database.writing() as session:
            _, text = tokens.issue(
                session, account.user_id, account.workspace_id, label="test", expires_s=expires_s
            )
        return text

    def revoke(self, token: str) -> None:
        """Revoke a token."""
        from osmosis_platform.accounts.tokens import find_caller, revoke

        with self.database.writing() as session:
            caller = find_caller(session, token)
            assert caller is not None
            assert revoke(session, caller.user_id, caller.token_id)

    def remove_member(self, account: Account) -> None:
        """Take a user out of the workspace."""
        from osmosis_platform.database.models import Member

        with self.database.writing() as session:
            session.delete(session.get_one(Member, (account.workspace_id, account.user_id)))

    def add_dataset(
        self, name: str = "my-dataset", *, account: Account | None = None, **values: Any
    ) -> str:
        """Add a dataset that runs can name; return its id. No file is stored."""
        from osmosis_platform.database.models import Dataset

        account = account or self.account
        usual = {"file_size": 100, "row_count": 5, "status": "ready", "extension": "jsonl"}
        values = {**usual, **values}
        with self.database.writing() as session:
            dataset = Dataset(
                workspace_id=account.workspace_id,
                creator_id=account.user_id,
                file_name=f"{name}.{values['extension']}",
                **values,
            )
            session.add(dataset)
            session.flush()
            return dataset.id

    def add_run(
        self, kind: str = "evaluation", *, account: Account | None = None, **values: Any
    ) -> str:
        """Add a run in any state, as `add_run(status="finished", name="x")`; return its id."""
        from osmosis_platform.database.models import Run
        from osmosis_platform.identifiers import new_run_name

        account = account or self.account
        experiment = {
            "rollout": "my-rollout",
            "entrypoint": "main.py",
            "model_path": "openai/gpt-5-mini",
            "dataset": "my-dataset",
        }
        values = {
            "name": new_run_name(),
            "submission": {"experiment_config": experiment},
            "dataset_id": values.get("dataset_id") or self.add_dataset(account=account),
            **values,
        }
        with self.database.writing() as session:
            run = Run(
                workspace_id=account.workspace_id,
                creator_id=account.user_id,
                kind=kind,
                submission_digest="",
                **values,
            )
            session.add(run)
            session.flush()
            return run.id

    def approve(self, user_code: str, account: Account | None = None) -> None:
        """Confirm the login of a device, as the page does."""
        from osmosis_platform.accounts import grants

        account = account or self.account
        with self.database.writing() as session:
            grant = grants.find_pending(session, user_code)
            assert grant is not None
            grants.approve(grant, account.user_id, account.workspace_id)

    def deny(self, user_code: str) -> None:
        """Refuse the login of a device, as the page does."""
        from osmosis_platform.accounts import grants

        with self.database.writing() as session:
            grant = grants.find_pending(session, user_code)
            assert grant is not None
            grants.deny(grant)

    def set_run(self, run_id: str, **values: Any) -> None:
        """Change a run, as `set_run(id, status="finished", results={...}, metrics={...})`."""
        from osmosis_platform.database.models import Run

        with self.database.writing() as session:
            run = session.get_one(Run, run_id)
            for name, value in values.items():
                setattr(run, name, value)

    def add_log(self, run_id: str, message: str, **values: Any) -> None:
        """Add a line to the log of a run: `level`, `step`, `details`, `timestamp`."""
        from osmosis_platform.database.models import LogLine

        with self.database.writing() as session:
            session.add(LogLine(run_id=run_id, message=message, **values))

    def add_secret(
        self,
        name: str,
        *,
        value: str = "a-secret-value",
        scope: str = "user",
        account: Account | None = None,
    ) -> None:
        """Add a secret, so that runs may require it."""
        from osmosis_platform.vault.records import store

        account = account or self.account
        with self.database.writing() as session:
            store(
                session,
                self.vault,
                workspace_id=account.workspace_id,
                user_id=account.user_id,
                scope=scope,
                name=name,
                value=value,
                limit=1000,
            )


@contextmanager
def serving(data: Path, **changes: Any) -> Iterator[PlatformServer]:
    """Run a platform over a data folder; `changes` are fields of its settings."""
    import uvicorn

    from osmosis_ai.rollout_server.http.uvicorn import configure, listen
    from osmosis_platform.app import create_app
    from osmosis_platform.settings import ServerLimits, Settings
    from osmosis_platform.vault.cipher import open_vault

    # A test polls without waiting.
    changes = {"limits": ServerLimits(device_interval_s=0), "has_trainer": True, **changes}
    settings = Settings(data=data, **changes)
    database = new_database(data)
    vault = open_vault(data, None)
    socket = listen("127.0.0.1", 0)
    app = create_app(settings, database, vault)
    server = uvicorn.Server(configure(app))
    thread = threading.Thread(target=server.run, args=([socket],), daemon=True)
    thread.start()
    try:
        # The socket listens already: what is asked before the server runs is answered later.
        url = f"http://127.0.0.1:{socket.getsockname()[1]}"
        platform = PlatformServer(url, database, settings, vault)
        platform.checks = app.state.checks
        yield platform
    finally:
        server.should_exit = True
        thread.join(START_TIMEOUT_S)
        socket.close()
        database.close()


@pytest.fixture(scope="module")
def platform_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    """A platform, the same for all tests of a module."""
    with serving(tmp_path_factory.mktemp("platform")) as server:
        yield server


def submission(**sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body that submits an evaluation of `my-rollout` on `my-dataset`."""
    experiment = {
        "rollout": "my-rollout",
        "entrypoint": "main.py",
        "model_path": "openai/gpt-5-mini",
        "dataset": "my-dataset",
    }
    return {"experiment_config": experiment, **sections}
