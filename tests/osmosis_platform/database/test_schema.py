"""The tables are those of the models, of this version alone; transactions keep what they lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import delete, update

from osmosis_platform.accounts.registry import add_user
from osmosis_platform.database.connection import FILE_NAME, Database, lock
from osmosis_platform.database.models import Base, User
from osmosis_platform.database.schema import NEWEST, SchemaProblem, prepare, revision, upgrade
from tests.support.platform_database import begin_next_version, empty_database, new_database


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Database]:
    database = empty_database(tmp_path)
    yield database
    database.close()


def test_migrations_make_the_tables_of_the_models_and_can_be_repeated(empty: Database):
    for _ in range(2):
        prepare(empty)
        upgrade(empty)
    with empty.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    assert revision(empty) == NEWEST


@pytest.mark.fault("the database is of an older version")
def test_an_older_database_is_refused_until_it_is_upgraded_and_keeps_its_rows(
    empty: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    upgrade(empty)
    with empty.writing() as session:
        session.connection().exec_driver_sql(
            "INSERT INTO users (id, name, created_at) VALUES ('1', 'ann', '2026-01-02 03:04:05')"
        )
    older = begin_next_version(monkeypatch, tmp_path)
    message = f"at revision {older}, and this version needs 9998: .* `osmosis platform db upgrade`"
    with pytest.raises(SchemaProblem, match=message):
        prepare(empty)
    upgrade(empty)
    prepare(empty)
    with empty.reading() as session:
        found = session.connection().exec_driver_sql("SELECT name, email FROM users").all()
        assert [*found] == [("ann", "upgraded@example.com")]


@pytest.mark.fault("the database is of a newer version")
def test_the_tables_of_a_newer_version_are_left_alone(empty: Database):
    upgrade(empty)
    with empty.writing() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    for change in (prepare, upgrade):
        with pytest.raises(SchemaProblem, match="newer version"):
            change(empty)


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path):
    database = Database.in_folder(tmp_path)
    upgrade(database)
    with pytest.raises(ZeroDivisionError), database.writing() as session:
        add_user(session, "ann")
        raise ZeroDivisionError
    database.close()
    file = sqlite3.connect(tmp_path / FILE_NAME)
    assert file.execute("SELECT count(*) FROM users").fetchone() == (0,)
    assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.close()


def test_a_row_that_is_locked_is_read_as_it_is_now_or_not_there(tmp_path: Path):
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
