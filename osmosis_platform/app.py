"""`create_app`: the platform as an ASGI application."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError, OperationalError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from .api.table import ENDPOINTS
from .api.uploads import UPLOADS
from .database.connection import Database
from .errors import Refused
from .http.hardening import Hardening, on_database_error, on_failure, on_http_error, on_refused
from .pages.routes import PAGES
from .pages.throttle import LoginThrottle
from .settings import Settings
from .vault.cipher import Vault


def create_app(settings: Settings, database: Database, vault: Vault) -> Starlette:
    """Return the application over a database whose tables are there."""
    app = Starlette(
        routes=[*(endpoint.route() for endpoint in ENDPOINTS), *UPLOADS, *PAGES],
        middleware=[Middleware(Hardening, allowed_hosts=settings.allowed_hosts)],
        exception_handlers={
            Refused: on_refused,
            HTTPException: on_http_error,
            OperationalError: on_database_error,
            IntegrityError: on_database_error,
            Exception: on_failure,
        },
    )
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.database = database
    app.state.vault = vault
    app.state.throttle = LoginThrottle()
    return app
