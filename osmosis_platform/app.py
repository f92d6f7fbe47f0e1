"""`create_app`: the platform as an ASGI application, and whether it lives and is ready.

`/health` and `/health/ready` need no token and say nothing of what the platform holds.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from sqlalchemy.exc import (
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .api.datasets import UPLOADS
from .api.table import ENDPOINTS
from .database.connection import Database, cause, state
from .database.schema import NEWEST, writable_revision
from .datasets.checks import DatasetChecks
from .errors import Refused
from .execution.scheduler import Scheduler
from .http.hardening import (
    Hardening,
    on_data_error,
    on_database_error,
    on_departure,
    on_failure,
    on_http_error,
    on_refused,
)
from .pages.rendering import ElsewhereFirst, as_page, on_elsewhere
from .pages.report_reader import RowView
from .pages.routes import PAGES
from .pages.run_rows import Recent
from .settings import MIB, Settings
from .vault.cipher import Vault

_DATABASE_BUSY = (OperationalError, InterfaceError, IntegrityError, PoolTimeout)
"""It is locked, full or away, all connections are taken, or another request was first."""
_LEAST_ROOM = 16 * MIB
_WAIT_MS = 2000
"""A database that another holds for longer is not ready."""
_LOG = logging.getLogger("osmosis_platform")


def create_app(
    settings: Settings, database: Database, vault: Vault, scheduler: Scheduler | None = None
) -> Starlette:
    """Return the application over a database whose tables are there.

    The scheduler, where there is one, takes runs as long as the application is served.
    """
    app = Starlette(
        lifespan=_lifespan(scheduler),
        routes=[
            *(endpoint.route() for endpoint in ENDPOINTS),
            *UPLOADS,
            *PAGES,
            Route("/health", live, methods=["GET"]),
            Route("/health/ready", ready, methods=["GET"]),
        ],
        middleware=[Middleware(Hardening, allowed_hosts=settings.allowed_hosts)],
        exception_handlers={
            Refused: as_page(on_refused),
            HTTPException: as_page(on_http_error),
            **dict.fromkeys(_DATABASE_BUSY, as_page(on_database_error)),
            DataError: as_page(on_data_error),
            ClientDisconnect: on_departure,
            ElsewhereFirst: on_elsewhere,
            Exception: as_page(on_failure),
        },
    )
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.database = database
    app.state.vault = vault
    app.state.scheduler = scheduler
    app.state.checks = DatasetChecks()
    app.state.rendered = Recent[str](most=16 * MIB)
    app.state.rows = Recent[list[RowView]](most=50_000)
    return app


def _lifespan(
    scheduler: Scheduler | None,
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if scheduler is not None:
            scheduler.start()
        yield
        if scheduler is not None:
            await run_in_threadpool(scheduler.stop)

    return lifespan


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
