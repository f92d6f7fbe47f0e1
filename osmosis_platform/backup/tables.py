"""The rows of a database as lines of JSON, the same from SQLite and PostgreSQL, and back.

The dump is one transaction's view. Secrets are in it as the database has them: encrypted.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from sqlalchemy import JSON, Column, Connection, MetaData, Table, func, insert, inspect, select
from sqlalchemy import text as sql

from ..database.connection import Database
from ..database.models import Base

_ROWS_AT_ONCE = 20
_TIME, _BYTES, _JSON = "$time", "$bytes", "$json"


def dump(database: Database) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each table with its lines; all are of one moment.

    Those of an older version lack columns or tables; no version has dropped one.
    """
    # On SQLite a transaction that reads has one view anyway.
    options = {} if database.is_sqlite else {"isolation_level": "REPEATABLE READ"}
    with (
        database.engine.connect().execution_options(**options) as connection,
        connection.begin(),
    ):
        looked = inspect(connection)
        for table in Base.metadata.sorted_tables:
            if looked.has_table(table.name):
                there = {column["name"] for column in looked.get_columns(table.name)}
                yield table.name, _lines(connection, [c for c in table.columns if c.name in there])


def _lines(connection: Connection, columns: list[Column[Any]]) -> Iterator[bytes]:
    rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(*columns))
    for row in rows.mappings():
        found = {column.name: _encoded(column, row[column.name]) for column in columns}
        yield json.dumps(found).encode("ascii") + b"\n"


def load(connection: Connection, name: str, lines: Iterable[bytes]) -> int:
    """Add the rows of a table; return how many."""
    table = Table(name, MetaData(), autoload_with=connection)
    for column in table.columns:
        if isinstance(column.type, JSON):
            column.type = JSON(none_as_null=True)
    rows = ({key: _decoded(value) for key, value in json.loads(line).items()} for line in lines)
    count = 0
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        connection.execute(insert(table), some)
        count += len(some)
    _go_on_counting(connection, table)
    return count


def _go_on_counting(connection: Connection, table: Table) -> None:
    """Let PostgreSQL number the next row behind the last one; SQLite does by itself."""
    (key, *more) = table.primary_key.columns
    if more or connection.dialect.name != "postgresql" or key.type.python_type is not int:
        return
    last = connection.scalar(select(func.max(key)))
    if last is not None:
        numbering = "SELECT setval(pg_get_serial_sequence(:table, :key), :last)"
        connection.execute(sql(numbering), {"table": table.name, "key": key.name, "last": last})


def _encoded(column: Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(column.type, JSON):
        return {_JSON: value}
    if isinstance(value, datetime):
        return {_TIME: value.astimezone(timezone.utc).isoformat()}
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == _JSON:
        return content
    return datetime.fromisoformat(content) if kind == _TIME else base64.b64decode(content)
