"""`create_rollout_server`: a workflow with its grader as an ASGI application.

It runs whatever a controller asks for, so it is guarded as `create_app` is: with the key in
`OSMOSIS_SERVER_API_KEY`, else for programs on this machine alone. Knows the routes; what they do
is imported with the first request.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from ..rollout_server.app import ServedApp
from ..rollout_server.settings import ServerSettings, key_from, settings_from
from ..secret import Secret
from .backend import LocalBackend

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
    backend: LocalBackend,
    lifespan: Lifespan | None = None,
    configure_logging: bool = True,
    settings: ServerSettings | None = None,
    api_key: str | Secret | None = None,
) -> RolloutServer:
    """Return an ASGI application that runs rollouts for a controller.

    `lifespan` is entered when the server starts, where workflows run.
    `configure_logging` gives a process that has no log handlers one; `settings` and `api_key`
    default to those of the environment.
    """
    if not isinstance(backend, LocalBackend):
        raise TypeError(f"create_rollout_server needs a LocalBackend, not {backend!r}")
    if configure_logging and not logging.getLogger().handlers:
        form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
        logging.basicConfig(level=logging.INFO, format=form)
    chosen = settings_from() if settings is None else settings
    return RolloutServer(backend, chosen, key_from(api_key), lifespan)


class RolloutServer(ServedApp):
    """The application of a backend."""

    def __init__(
        self,
        backend: LocalBackend,
        settings: ServerSettings,
        key: Secret | None,
        lifespan: Lifespan | None,
    ) -> None:
        super().__init__(key)
        self.backend = backend
        self._settings = settings
        self._lifespan = lifespan

    def __repr__(self) -> str:
        return f"<RolloutServer over {self.backend!r}>"

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Start, and in the end report every rollout and stop."""
        self._routes = None  # tests start it again and again, each time in another event loop
        own = nullcontext() if self._lifespan is None else self._lifespan(self)
        async with self._served().rollouts.entered(own):
            yield

    def _made(self) -> Any:
        from .routes import Routes  # brings asyncio and httptools

        return Routes(self.backend, self._settings, self._key)
