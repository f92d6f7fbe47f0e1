"""The embedded endpoint: a server in a thread of this process, and its routes to one persona."""

from __future__ import annotations

from types import TracebackType

from ..http_server import Request, Response, ThreadedServer, problem
from .chat import Chat, ChatError
from .personas import Persona, find_persona

_ROUTES = {"/v1/models": "GET", "/v1/chat/completions": "POST"}
_ROLLOUT_HEADER = "x-osmosis-rollout"


class EmbeddedEndpoint:
    """A running endpoint; `close()` it, or use it as a context manager."""

    def __init__(self, persona: Persona, *, seed: int, host: str) -> None:
        self.model: str = persona.model
        "The model name that the endpoint answers to."
        self._chat = Chat(persona, seed=seed)
        self._server = ThreadedServer(self._handle, name=f"{persona.model} endpoint", host=host)
        self.base_url: str = f"{self._server.url}/v1"
        "What OpenAI clients call `base_url`: `http://127.0.0.1:PORT/v1`."

    def __repr__(self) -> str:
        state = "closed" if self._server.closed else "open"
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
        """Stop listening, drop all clients and wait for the thread; a second call does nothing."""
        self._server.close()

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
            return problem(error.status, str(error), param=error.param, code=error.code)
        return Response(200, answer.body, delay_s=answer.latency_s)


def start_embedded(
    persona: str = "default", *, seed: int = 0, host: str = "127.0.0.1"
) -> EmbeddedEndpoint:
    """Start an endpoint on a free port of `host`; ValueError for an unknown persona."""
    return EmbeddedEndpoint(find_persona(persona), seed=seed, host=host)
