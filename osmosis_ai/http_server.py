"""A small HTTP server for loopback: of the embedded endpoint, the bridge and the viewer of reports.

aiohttp speaks HTTP, in a thread with its own event loop, so code that blocks another loop of the
process delays no answer; it is imported there, while the caller continues. Knows no chat, no keys
and no routes: a `Handler` turns a request into a `Response`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import StreamReader, web
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http_parser import RawRequestMessage
    from aiohttp.web_protocol import RequestHandler

MAX_BODY = 8 * 1024 * 1024
BACKLOG = 1024
GRACE_S = 2.0
"""How long a cancelled answer may take to clean up."""
LAST_MOMENT_S = 0.1
"""How long a request that comes while the server closes may take."""
KEEP_ALIVE_S = 3600.0
ACCEPTING_STEPS = 3
"""Passes of the event loop from an accepted socket to a connection that can be closed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Response:
    """A status and a body."""

    status: int
    body: Mapping[str, Any] | bytes
    """An object that is sent as JSON, or bytes as they are."""
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


Handler = Callable[["web.BaseRequest"], Coroutine[Any, Any, "Response | web.StreamResponse"]]
"""Answers a request, itself or by a value; it is cancelled when the client hangs up first."""


EVENT_STREAM_HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
}


def event_stream(body: bytes) -> Response:
    """A response with the server-sent events in a body."""
    return Response(200, body, headers=EVENT_STREAM_HEADERS)


def problem(status: int, message: str, **more: Any) -> Response:
    """A response with OpenAI's error object."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return Response(status, {"error": {**error, **more}})


class ThreadedServer:
    """Serves from its creation to `close()`.

    `port` 0 is one that is free; OSError where another cannot be had. `resources` are entered in
    the server's loop before it listens and left after the last client is gone; what entering them
    raises is raised here.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        name: str,
        host: str = "127.0.0.1",
        port: int = 0,
        max_body: int = MAX_BODY,
        resources: AbstractAsyncContextManager[Any] | None = None,
    ) -> None:
        self._handler = handler
        self._max_body = max_body
        self._resources = resources
        self._answering: set[asyncio.Task[Any]] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.url: str = url_of(self._socket)
        "`http://127.0.0.1:PORT`."
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self.closed = False
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()
        self.loop, self._stop = self._started.result()
        atexit.register(self.close)

    def close(self) -> None:
        """Stop listening, drop every client and wait for the thread; harmless when repeated."""
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _live(self) -> None:
        try:
            with self._socket:
                asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)  # the thread that starts us raises it

    async def _serve(self) -> None:
        async with self._resources or nullcontext():
            stop = asyncio.Event()
            self._started.set_result((asyncio.get_running_loop(), stop))
            await self._serve_clients(stop)

    async def _serve_clients(self, stop: asyncio.Event) -> None:
        from aiohttp import web

        # Not an Application: its routes and middlewares are a fifth of a request.
        server = web.Server(
            self._answer,
            request_factory=self._request,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE_S,
        )
        runner = web.ServerRunner(server, shutdown_timeout=LAST_MOMENT_S)
        await runner.setup()
        site = web.SockSite(runner, self._socket, backlog=BACKLOG)
        await site.start()
        await stop.wait()
        # asyncio loses a client that it is accepting while its server closes: let those in first.
        asyncio.get_running_loop().remove_reader(self._socket)
        for _ in range(ACCEPTING_STEPS):
            await asyncio.sleep(0)
        await site.stop()
        for task in self._answering:
            task.cancel()
        if self._answering:
            await asyncio.wait(self._answering, timeout=GRACE_S)
        await runner.cleanup()

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        from aiohttp import web

        return web.BaseRequest(
            message,
            payload,
            protocol,
            writer,
            task,
            asyncio.get_running_loop(),
            client_max_size=self._max_body,
        )

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            if "Expect" in request.headers:  # curl does not send a long body before
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            response = await self._handler(request)
        except web.HTTPRequestEntityTooLarge:
            response = problem(413, f"The request's body is longer than {self._max_body} bytes.")
        except Exception:  # a handler's mistake must not leave its client waiting
            logger.exception("a request could not be answered")
            response = problem(500, "The request could not be answered.", type="server_error")
        finally:
            self._answering.discard(task)
        if isinstance(response, web.StreamResponse):
            return response
        body = response.body
        if not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=True).encode("ascii")
        headers = {"Content-Type": response.content_type, **response.headers}
        return web.Response(status=response.status, body=body, headers=headers)


def url_of(listening: socket.socket) -> str:
    """Return `http://HOST:PORT` of a socket that listens."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
