"""A platform whose database is on a PostgreSQL server that listens on loopback, with a password."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
import pytest

from osmosis_cli.errors import run
from osmosis_cli.main import cli
from tests.support.platform_database import OPTION, server

PASSWORD = "pg-password-never-to-be-seen"


@pytest.fixture(autouse=True)
def chosen(request: pytest.FixtureRequest) -> None:
    assert request.config.getoption(OPTION) == "postgres", f"run these with {OPTION}=postgres"


@dataclass(frozen=True)
class Access:
    """How a user with a password reaches an empty database."""

    url: str
    """Without the password."""
    password: str = PASSWORD

    @property
    def with_password(self) -> str:
        return self.url.replace("osmosis@", f"osmosis:{self.password}@")


@pytest.fixture
def access() -> Access:
    """An empty database."""
    found = server()
    uri = found.create()
    name = uri.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(found.uri, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'osmosis'").fetchone()
        if known is None:
            connection.execute(f"CREATE ROLE osmosis SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    return Access(f"postgresql://osmosis@/{name}?{uri.partition('?')[2]}")


@pytest.fixture
def osmosis(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """The command; its status, and what it printed, which never has the password."""

    def command(*words: str) -> tuple[int, str, str]:
        status = run(cli, words)
        said = capsys.readouterr()
        assert PASSWORD not in said.out + said.err
        return status, said.out, said.err

    return command
