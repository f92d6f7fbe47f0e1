"""Whether the platform lives, and whether it is ready: for a proxy, systemd or Kubernetes.

Both need no token and say nothing of what the platform holds.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..database.connection import Database, cause, state
from ..database.schema import NEWEST, writable_revision
from ..execution.scheduler import Scheduler
from ..settings import MIB

_LEAST_ROOM = 16 * MIB
_WAIT_MS = 2000
"""A database that another holds for longer is not ready."""
_LOG = logging.getLogger("osmosis_platform")


async def live(request: Request) -> Response:
    """Answer as long as the process answers."""
    return JSONResponse({"status": "ok"})


async def ready(request: Request) -> Response:
    """Answer 200 where database and disk can be used and runs are taken, else 503."""
    app = request.app.state
    checks = {
        "database": await run_in_threadpool(_database, app.database),
        "disk": await run_in_threadpool(_disk, app.settings.data),
    }
    scheduler: Scheduler | None = app.scheduler
    if scheduler is not None:
        checks["scheduler"] = "ok" if scheduler.takes_runs else "ended"
    is_ready = all(found == "ok" for found in checks.values())
    document = {"status": "ok" if is_ready else "not ready", "checks": checks}
    return JSONResponse(document, status_code=200 if is_ready else 503)


def _database(database: Database) -> str:
    try:
        found = writable_revision(database, _WAIT_MS)
    except SQLAlchemyError as error:
        _LOG.error("not ready: the database: %s", cause(error))
        return state(error)
    return "ok" if found == NEWEST else "of another version"


def _disk(data: Path) -> str:
    try:
        return "ok" if shutil.disk_usage(data).free >= _LEAST_ROOM else "full"
    except OSError:
        return "unreachable"
