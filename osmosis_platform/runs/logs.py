"""The log of a run: lines in the order in which they were written, read from a cursor on."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from pytest_osmosis.escaping import escape_control_chars

from ..database.models import LogLine, Run


def add(
    session: Session, run: Run, message: str, *, level: str = "info", step: str | None = None
) -> None:
    """Add a line to the log of a run, control characters escaped: PostgreSQL takes no NUL."""
    text = escape_control_chars(message)
    session.add(LogLine(run_id=run.id, level=level, step=step, message=text))


def lines(
    session: Session, run: Run, *, cursor: int | None, limit: int, backward: bool
) -> Sequence[LogLine]:
    """Return lines after the cursor, or backward those before it."""
    query = select(LogLine).where(LogLine.run_id == run.id)
    if cursor is not None:
        query = query.where(LogLine.id < cursor if backward else LogLine.id > cursor)
    return session.scalars(
        query.order_by(LogLine.id.desc() if backward else LogLine.id).limit(limit)
    ).all()


def next_cursor(
    found: Sequence[LogLine], cursor: int | None, *, limit: int, backward: bool
) -> int | None:
    """Return where to continue.

    Forward that can be asked again later, when there may be more lines; backward it is None where
    the log begins.
    """
    if backward:
        return found[-1].id if len(found) == limit else None
    return found[-1].id if found else cursor
