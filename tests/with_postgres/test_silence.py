"""A server that sends nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from osmosis_platform.database.connection import Database
from osmosis_platform.database.failure import state
from tests.with_postgres.conftest import Access


def test_a_connection_on_which_nothing_comes_is_given_up_and_the_next_one_serves(
    access: Access,
) -> None:
    database = Database(
        access.with_password.replace("postgresql:", "postgresql+psycopg:"), silence_s=0.2
    )
    try:
        with pytest.raises(OperationalError) as refused, database.writing() as session:
            session.execute(text("SELECT pg_sleep(3600)"))
        assert state(refused.value) == "unreachable"
        with database.reading() as session:
            assert session.scalar(text("SELECT 1")) == 1
    finally:
        database.close()
