"""A server in a thread: its socket, its event loop, and their end.

The loop is separate, so code that blocks another loop of the process delays no answer. Knows
nothing of what is served.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from .connection import MAX_BODY, Check, Connection, Handler

GRACE_S = 2.0
"""How long a cancelled answer may take to clean up."""


class ThreadedServer:
    """Serves from its creation to `close()`.

    `resources` are entered in the server's loop before it listens and left after the last client
    is gone; what entering them raises is raised here.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        name: str,
        host: str = "127.0.0.1",
        check: Check,
        max_body: int = MAX_BODY,
        resources: AbstractAsyncContextManager[Any] | None = None,
    ) -> None:
        self._handler = handler
        self._check = check
        self._max_body = max_body
        self._resources = resources
        self._connections: set[Connection] = set()
        self._socket = _listen(host)
        self.url: str = _url(self._socket)
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
            asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                raise
            self._socket.close()
            self._started.set_exception(error)  # the thread that starts us raises it

    async def _serve(self) -> None:
        async with self._resources or nullcontext():
            await self._serve_clients()

    async def _serve_clients(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(
                self._handler, self._connections, check=self._check, max_body=self._max_body
            ),
            sock=self._socket,
            backlog=1024,
        )
        self._started.set_result((loop, stop))
        await stop.wait()
        # asyncio loses a client that it is accepting while its server closes: let those in first.
        loop.remove_reader(self._socket)
        await _ended(task for task in asyncio.all_tasks() if _is_accepting(task))
        server.close()
        answering = [connection.answering for connection in self._connections]
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)
        await _ended(task for task in answering if task is not None)
        await server.wait_closed()


async def _ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    pending = set(tasks)
    if pending:
        await asyncio.wait(pending, timeout=GRACE_S)


def _is_accepting(task: asyncio.Task[Any]) -> bool:
    return "_accept_connection" in getattr(task.get_coro(), "__qualname__", "")


def _listen(host: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.bind((host, 0))
    except OSError:
        listening.close()
        raise
    return listening


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
