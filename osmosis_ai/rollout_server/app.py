"""`create_app`: an agent loop as an ASGI application.

Users call it when their module is imported, so it only checks its arguments; what serves requests
is imported with the first one. Knows the life cycle, but no route.
"""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from ..agents.base import AgentFunction, RolloutAgentLoop, as_agent, is_agent_function
from ..agents.event_log import session_folder
from ..error_text import named_error
from ..rollout_settings import RolloutSettings
from ..secret import Secret
from ..secret_variables import masking
from .settings import (
    AppOptions,
    Hook,
    PlatformLogin,
    Receive,
    Scope,
    Send,
    ServerSettings,
    key_from,
    settings_from,
)

__all__ = ["RolloutApp", "create_app"]


class ServedApp(ABC):
    """An ASGI application with a life cycle; hand it to uvicorn or to any other server."""

    def __init__(self, key: Secret | None) -> None:
        self._key = key
        self._routes: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life cycle."""
        if scope["type"] == "http":
            from .http.messages import answer  # brings asyncio

            await answer(self._served().reply(scope, receive), scope["path"], send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    @abstractmethod
    def lifespan(self, app: object = None) -> AbstractAsyncContextManager[None]:
        """Start, and in the end report every rollout and stop.

        An ASGI server does so by itself. An application that mounts this one has to:
        `FastAPI(lifespan=rollouts.lifespan)`.
        """

    @abstractmethod
    def _made(self) -> Any:
        """Import and return what answers requests."""

    def _served(self) -> Any:
        if self._routes is None:
            self._routes = self._made()
        return self._routes

    async def _live(self, receive: Receive, send: Send) -> None:
        from asyncio import CancelledError

        await receive()
        running = self.lifespan()
        try:
            await running.__aenter__()
        except Exception as error:  # noqa: BLE001  the ASGI server reports it and exits
            message = masking(self._key)(named_error(error))
            await send({"type": "lifespan.startup.failed", "message": message})
            return
        await send({"type": "lifespan.startup.complete"})
        with suppress(CancelledError):  # two signals at once: the server says no more
            await receive()
        await running.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})


class RolloutApp(ServedApp):
    """The application of an agent loop."""

    def __init__(self, options: AppOptions) -> None:
        super().__init__(options.api_key)
        self.options = options

    def __repr__(self) -> str:
        return f"<RolloutApp {self.options.agent.name!r}>"

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """Start, and in the end deliver every result and stop."""
        self._routes = None  # tests start it again and again, each time in another event loop
        service = self._served().service
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    def _made(self) -> Any:
        from .http.routes import Routes  # brings asyncio, pydantic and httptools

        return Routes(self.options)


def create_app(  # noqa: PLR0913  the contract's signature
    agent_loop: RolloutAgentLoop | AgentFunction,
    *,
    max_concurrent: int | None = None,
    record_ttl_seconds: float | None = None,
    settings: ServerSettings | RolloutSettings | None = None,
    credentials: PlatformLogin | None = None,
    server_host: str | None = None,
    server_port: int | None = None,
    api_key: str | Secret | None = None,
    debug_dir: str | os.PathLike[str] | None = None,
    on_startup: Hook | None = None,
    on_shutdown: Hook | None = None,
) -> RolloutApp:
    """Return an ASGI application that runs `agent_loop`, or an async function, for a trainer.

    `settings` default to those of the environment (`OSMOSIS_ALLOWED_TRAINERS`,
    `OSMOSIS_ROLLOUT_*`), and `api_key` to `OSMOSIS_SERVER_API_KEY`; without a
    key it only answers on loopback. With `credentials`, `server_host` and `server_port` the server
    registers itself with the platform once it answers.
    The hooks run in the event loop in which the agent runs.
    """
    chosen = settings if isinstance(settings, ServerSettings) else settings_from(rollout=settings)
    if max_concurrent is not None:
        chosen = replace(chosen, max_concurrent=max_concurrent)
    if record_ttl_seconds is not None:
        chosen = replace(chosen, record_ttl_s=record_ttl_seconds)
    return RolloutApp(
        AppOptions(
            agent=_checked_agent(agent_loop),
            settings=chosen,
            api_key=key_from(api_key),
            debug_dir=None if debug_dir is None else session_folder(debug_dir),
            login=credentials,
            host=server_host,
            port=server_port,
            on_startup=on_startup,
            on_shutdown=on_shutdown,
        )
    )


def _checked_agent(agent: Any) -> RolloutAgentLoop:
    if isinstance(agent, RolloutAgentLoop) or is_agent_function(agent):
        return as_agent(agent)
    if inspect.isclass(agent) and issubclass(agent, RolloutAgentLoop):
        raise TypeError(f"create_app needs an instance: write create_app({agent.__name__}())")
    raise TypeError(f"create_app needs a RolloutAgentLoop, not {type(agent).__name__}")
