"""Rows that another transaction changes."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import delete, update

from osmosis_platform.accounts.registry import add_user
from osmosis_platform.database.connection import lock
from osmosis_platform.database.models import User
from tests.support.platform_database import new_database


def test_a_row_that_is_locked_is_read_as_it_is_now_or_not_there(tmp_path: Path) -> None:
    database = new_database(tmp_path)
    with database.writing() as session:
        user = add_user(session, "ann")
        session.execute(
            update(User).values(email="a@x"), execution_options={"synchronize_session": False}
        )
        assert lock(session, user)
        assert user.email == "a@x"
        session.execute(delete(User), execution_options={"synchronize_session": False})
        assert not lock(session, user)
    database.close()
