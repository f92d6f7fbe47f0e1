"""What is asked all the time is found by an index, however many runs there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from osmosis_ai.platform.run_kinds import EVALUATION
from osmosis_platform.accounts.tokens import CallerWorkspace
from osmosis_platform.database.connection import Database, count
from osmosis_platform.database.models import Base, Run
from osmosis_platform.execution.claims import Claims
from osmosis_platform.runs import records

HOME = CallerWorkspace("1", "home", "acme/home", "owner")


def submit(database: Database) -> None:
    with database.reading() as session:
        count(session, Run.creator_id == "1", records.UNDER_WAY)


def show(database: Database) -> None:
    with database.reading() as session:
        records.newest(session, EVALUATION, HOME, limit=50, offset=0)


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda database: Claims(database, "one").take(), "ix_runs_under_way"),
        (submit, "ix_runs_under_way"),
        (show, "ix_runs_workspace_id"),
    ],
    ids=["take", "submit", "list"],
)
def test_runs_are_found_by_an_index(tmp_path: Path, ask: Callable[[Database], object], index: str):
    database, asked = Database.in_folder(tmp_path), list[tuple[str, Any]]()
    Base.metadata.create_all(database.engine)

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, values: Any, *rest: Any) -> None:
        if "FROM runs" in statement:
            asked.append((statement, values))

    ask(database)
    assert asked
    with database.engine.connect() as connection:
        for statement, values in [*asked]:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            assert any(index in row[-1] for row in plan), plan
    database.close()
