"""The tables that migrations make are those of the models."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from osmosis_platform.database.connection import FILE_NAME, Database
from osmosis_platform.database.models import Base
from osmosis_platform.database.schema import NEWEST, SchemaProblem, upgrade


def test_migrations_make_the_tables_of_the_models_and_can_be_repeated(tmp_path: Path) -> None:
    database = Database.in_folder(tmp_path)
    for _ in range(2):
        upgrade(database)
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
        assert context.get_current_revision() == NEWEST
    database.close()


def test_the_tables_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    database = Database.in_folder(tmp_path)
    upgrade(database)
    with database.writing() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaProblem, match="newer version"):
        upgrade(database)
    database.close()


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    from osmosis_platform.accounts.registry import add_user

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
