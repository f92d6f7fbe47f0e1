"""The embedded endpoint's life: a socket, a thread with an event loop of its own, and their end.

It lives in the process that starts it; other processes reach it by HTTP as they would any other.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
import threading
from concurrent.futures import Future
from types import TracebackType

from .chat import Chat, ChatError
from .http1 import Connection, Request, Response, problem
from .personas import Persona, find_persona

_ROUTES = {"/v1/models": "GET", "/v1/chat/completions": "POST"}
_ROLLOUT_HEADER = "x-osmosis-rollout"


class EmbeddedEndpoint:
    """A running endpoint; `close()` it, or use it as a context manager."""

    def __init__(self, persona: Persona, *, seed: int, host: str) -> None:
        self.model: str = persona.model
        "The model name that the endpoint answers to."
        self._chat = Chat(persona, seed=seed)
        self._connections: set[Connection] = set()
        self._socket = _listen(host)
        self.base_url: str = _url(self._socket)
        "What OpenAI clients call `base_url`: `http://127.0.0.1:PORT/v1`."
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._closed = False
        self._thread = threading.Thread(
            target=self._live, name=f"{persona.model} endpoint", daemon=True
        )
        self._thread.start()
        self._loop, self._stop = self._started.result()
        atexit.register(self.close)

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<EmbeddedEndpoint {self.model} at {self.base_url}, {state}>"

    def __enter__(self) -> EmbeddedEndpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, drop every client and wait for the thread; a second time does nothing."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._loop.call_soon_threadsafe(self._stop.set)
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
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(self._handle, self._connections), sock=self._socket, backlog=1024
        )
        self._started.set_result((loop, stop))
        await stop.wait()
        # asyncio loses a client that it is accepting while its server closes: let those in first.
        loop.remove_reader(self._socket)
        accepting = asyncio.all_tasks() - {asyncio.current_task()}
        if accepting:
            await asyncio.wait(accepting)
        server.close()
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)
        await server.wait_closed()

    def _handle(self, request: Request) -> Response:
        allowed = _ROUTES.get(request.path)
        if allowed is None:
            return problem(404, f"There is no {request.path} here.", code="unknown_url")
        if request.method != allowed:
            refusal = problem(405, f"{request.path} takes {allowed} only.")
            return Response(refusal.status, refusal.body, headers={"Allow": allowed})
        if allowed == "GET":
            return Response(200, self._chat.models())
        try:
            answer = self._chat.complete(request.body, rollout=request.headers.get(_ROLLOUT_HEADER))
        except ChatError as error:
            return Response(error.status, error.body())
        return Response(200, answer.body, delay_s=answer.latency_s)


def start_embedded(
    persona: str = "default", *, seed: int = 0, host: str = "127.0.0.1"
) -> EmbeddedEndpoint:
    """Start an endpoint on a free port of `host`; ValueError for an unknown persona."""
    return EmbeddedEndpoint(find_persona(persona), seed=seed, host=host)


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
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"
