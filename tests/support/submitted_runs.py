"""What the platform has of a run in its database, for tests of executing it."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import undefer

from osmosis_platform.database.models import LogLine, Run
from tests.support.platform_server import PlatformServer


def run_of(platform: PlatformServer, run_id: str) -> Run:
    with platform.database.reading() as session:
        return session.get_one(Run, run_id, options=[undefer(Run.report)])


def log_of(platform: PlatformServer, run_id: str) -> list[str]:
    with platform.database.reading() as session:
        lines = session.scalars(
            select(LogLine).where(LogLine.run_id == run_id).order_by(LogLine.id)
        )
        return [f"{line.level} {line.step}: {line.message}" for line in lines]
