"""`create_rollout_server`: a backend as an ASGI application.

It runs whatever a controller asks for, so it is guarded as `create_app` is: with the key in
`OSMOSIS_SERVER_API_KEY`, else for programs on this machine alone. Knows the routes; what they do
is imported with the first request.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..error_text import named_error
from ..rollout_server.settings import (
    Receive,
    Scope,
    Send,
    ServerSettings,
    key_from,
    settings_from,
)
from ..secret import Secret
from ..secret_variables import masking
from .backend import ExecutionBackend

if TYPE_CHECKING:
    from .routes import Routes

__all__ = ["ControllerAuth", "RolloutServer", "create_rollout_server"]

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


@dataclass(frozen=True, slots=True)
class ControllerAuth:
    """The bearer key of a controller."""

    api_key: str | None = None

    def __repr__(self) -> str:
        return f"ControllerAuth(api_key={'***' if self.api_key else None})"

    def as_bearer_headers(self) -> dict[str, str] | None:
        """Return the headers of a request to the controller; None without a key."""
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else None


def create_rollout_server(
    *,
    backend: ExecutionBackend,
    lifespan: Lifespan | None = None,
    configure_logging: bool = True,
    settings: ServerSettings | None = None,
    api_key: str | Secret | None = None,
) -> RolloutServer:
    """Return an ASGI application that runs rollouts for a controller.

    `lifespan` is entered when the server starts, where the backend runs workflows.
    `configure_logging` gives a process that has no log handlers one; `settings` and `api_key`
    default to those of the environment.
    """
    if not isinstance(backend, ExecutionBackend):
        raise TypeError(f"create_rollout_server needs an ExecutionBackend, not {backend!r}")
    if configure_logging and not logging.getLogger().handlers:
        form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
        logging.basicConfig(level=logging.INFO, format=form)
    chosen = settings_from() if settings is None else settings
    return RolloutServer(backend, chosen, key_from(api_key), lifespan)


class RolloutServer:
    """The ASGI application; hand it to uvicorn or to any other server."""

    def __init__(
        self,
        backend: ExecutionBackend,
        settings: ServerSettings,
        key: Secret | None,
        lifespan: Lifespan | None,
    ) -> None:
        self.backend = backend
        self._settings = settings
        self._key = key
        self._lifespan = lifespan
        self._routes: Routes | None = None

    def __repr__(self) -> str:
        return f"<RolloutServer over {self.backend!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life cycle."""
        if scope["type"] == "http":
            await self._served().respond(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    def _served(self) -> Routes:
        if self._routes is None:
            from .routes import Routes  # brings asyncio and httptools

            self._routes = Routes(self.backend, self._settings, self._key)
        return self._routes

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Start, and in the end report every rollout and stop, as `RolloutApp.lifespan` does."""
        self._routes = None  # tests start it again and again, each time in another event loop
        own = nullcontext() if self._lifespan is None else self._lifespan(self)
        async with self.backend.entered(own):
            try:
                yield
            finally:
                await self._served().rollouts.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        running = self.lifespan()
        try:
            await running.__aenter__()
        except Exception as error:  # noqa: BLE001  the ASGI server reports it and exits
            message = masking(self._key)(named_error(error))
            await send({"type": "lifespan.startup.failed", "message": message})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await running.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})
