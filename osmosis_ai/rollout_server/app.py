"""`create_app`: an agent loop as an ASGI application.

Cheap to call, since users do so when their module is imported: checks its arguments and nothing
else. Whatever serves requests is imported with the first of them. Knows the life cycle, no route.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..agents.base import RolloutAgentLoop
from ..secret import Secret, check_api_key
from .settings import ServerSettings, settings_from

if TYPE_CHECKING:
    from .http.routes import Routes

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Hook = Callable[[], Any]
"""Called without arguments; what it returns is awaited if it can be."""


class PlatformLogin(Protocol):
    """Who the server is to the platform; see `osmosis login`."""

    @property
    def platform_url(self) -> str:
        """Where the platform is."""

    @property
    def token(self) -> Secret:
        """The bearer token of the login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOptions:
    """What `create_app` was given, checked."""

    agent: RolloutAgentLoop
    settings: ServerSettings
    api_key: Secret | None = None
    """None: whoever reaches the server may use it; only answered on loopback addresses."""
    debug_dir: Path | None = None
    login: PlatformLogin | None = None
    host: str | None = None
    port: int | None = None
    on_startup: Hook | None = None
    on_shutdown: Hook | None = None


class RolloutApp:
    """The ASGI application; hand it to uvicorn or to any other server."""

    def __init__(self, options: AppOptions) -> None:
        self.options = options
        self._routes: Routes | None = None

    def __repr__(self) -> str:
        return f"<RolloutApp {self.options.agent.name!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life cycle."""
        kind = scope["type"]
        if kind == "http":
            await self._served().respond(scope, receive, send)
        elif kind == "lifespan":
            await self._live(receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    def _served(self) -> Routes:
        if self._routes is None:
            from .http.routes import Routes  # brings asyncio, pydantic and httptools

            self._routes = Routes(self.options)
        return self._routes

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._served().service.start()
        except Exception as error:  # noqa: BLE001  the server that runs us says it and ends
            told = f"{type(error).__name__}: {error}"
            await send({"type": "lifespan.startup.failed", "message": told})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._served().service.stop()
        await send({"type": "lifespan.shutdown.complete"})


def create_app(  # noqa: PLR0913  the contract's signature
    agent_loop: RolloutAgentLoop,
    *,
    max_concurrent: int | None = None,
    record_ttl_seconds: float | None = None,
    settings: ServerSettings | None = None,
    credentials: PlatformLogin | None = None,
    server_host: str | None = None,
    server_port: int | None = None,
    api_key: str | Secret | None = None,
    debug_dir: str | os.PathLike[str] | None = None,
    on_startup: Hook | None = None,
    on_shutdown: Hook | None = None,
) -> RolloutApp:
    """An ASGI application that runs `agent_loop` for a trainer.

    `settings` default to what the environment says (`OSMOSIS_ALLOWED_TRAINERS`,
    `OSMOSIS_STATE_DIR`). With `credentials`, `server_host` and `server_port` the server registers
    itself with the platform once it answers. Without an `api_key` it only answers on loopback.
    The hooks run in the event loop in which the agent runs.
    """
    chosen = settings_from() if settings is None else settings
    if max_concurrent is not None:
        chosen = replace(chosen, max_concurrent=max_concurrent)
    if record_ttl_seconds is not None:
        chosen = replace(chosen, record_ttl_s=record_ttl_seconds)
    if isinstance(api_key, str):
        api_key = check_api_key(api_key, "api_key")
    return RolloutApp(
        AppOptions(
            agent=_checked_agent(agent_loop),
            settings=chosen,
            api_key=api_key,
            debug_dir=None if debug_dir is None else Path(debug_dir),
            login=credentials,
            host=server_host,
            port=server_port,
            on_startup=on_startup,
            on_shutdown=on_shutdown,
        )
    )


def _checked_agent(agent: Any) -> RolloutAgentLoop:
    if isinstance(agent, RolloutAgentLoop):
        return agent
    if inspect.isclass(agent) and issubclass(agent, RolloutAgentLoop):
        raise TypeError(f"create_app needs an instance: write create_app({agent.__name__}())")
    raise TypeError(f"create_app needs a RolloutAgentLoop, not {type(agent).__name__}")
