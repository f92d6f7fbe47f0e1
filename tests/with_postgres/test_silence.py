"""A server that sends nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from osmosis_platform.database import connection
from osmosis_platform.database.connection import Database, state
from tests.with_postgres.conftest import Access


class Clock:
    """Stands in for the module `time`: an hour passes whenever somebody looks, if it is to."""

    now = 0.0
    is_running = False

    def monotonic(self) -> float:
        self.now += 3600.0 * self.is_running
        return self.now


def test_a_connection_on_which_nothing_comes_is_given_up_and_the_next_one_serves(
    access: Access, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()
    monkeypatch.setattr(connection, "time", clock)
    url = access.with_password.replace("postgresql:", "postgresql+psycopg:")
    database = Database(url, silence_s=1800.0)
    try:
        with pytest.raises(OperationalError) as refused, database.writing() as session:
            clock.is_running = True
            session.execute(text("SELECT pg_sleep(3600)"))
        assert state(refused.value) == "unreachable"
        clock.is_running = False
        with database.reading() as session:
            assert session.scalar(text("SELECT 1")) == 1
    finally:
        database.close()
