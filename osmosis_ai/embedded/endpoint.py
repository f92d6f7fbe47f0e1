"""The embedded endpoint: a server in a thread of this process, and its routes to one persona."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..http_server import Response, ThreadedServer, problem
from .chat import Chat, ChatError
from .personas import Persona, find_persona

if TYPE_CHECKING:
    from aiohttp import web

_ROUTES = {"/v1/models": "GET", "/v1/chat/completions": "POST"}


class EmbeddedEndpoint(ThreadedServer):
    """A running endpoint; `close()` it, or use it as a context manager."""

    def __init__(self, persona: Persona, *, seed: int, host: str) -> None:
        self.model: str = persona.model
        "The model name that the endpoint answers to."
        self._chat = Chat(persona, seed=seed)
        name = f"{persona.model} endpoint"
        super().__init__(self._handle, name=name, host=host)
        self.base_url: str = f"{self.url}/v1"
        "What OpenAI clients call `base_url`: `http://127.0.0.1:PORT/v1`."

    def __enter__(self) -> EmbeddedEndpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _handle(self, request: web.Request) -> Response:
        allowed = _ROUTES.get(request.path)
        if allowed is None:
            return problem(404, f"There is no {request.path} here.", code="unknown_url")
        if request.method != allowed:
            refusal = problem(405, f"{request.path} takes {allowed} only.")
            return Response(refusal.status, refusal.body, headers={"Allow": allowed})
        if request.method == "GET":
            return Response(200, self._chat.models())
        try:
            answer = self._chat.complete(await request.read())
        except ChatError as error:
            return problem(error.status, str(error), param=error.param, code=error.code)
        if answer.latency_s:
            await asyncio.sleep(answer.latency_s)
        return Response(200, answer.body)


def start_embedded(
    persona: str = "default", *, seed: int = 0, host: str = "127.0.0.1"
) -> EmbeddedEndpoint:
    """Start an endpoint on a free port of `host`; ValueError for an unknown persona."""
    return EmbeddedEndpoint(find_persona(persona), seed=seed, host=host)
