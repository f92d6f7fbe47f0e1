"""A trainer for tests: hosts a model that calls a tool or answers, and takes results.

`create_mock_trainer_app` returns an ASGI application: serve it, or hand it to the TestClient of
Starlette or FastAPI. `patch_httpx_for_mock_trainer` has the calls of agents and servers in this
process go to such a client. Nothing here needs a plugin of pytest.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ..agents.message_fields import get_message_content, is_tool_message
from ..models.transport.exchange import Reply as TransportReply
from .http.messages import Reply, json_reply
from .settings import Receive, Scope, Send
from .trainer.address_policy import Trainer, TrainerRules, parse_url
from .trainer.client import COMPLETED_PATH, COMPLETIONS_PATH
from .trainer.wire import TrainerClient

__all__ = [
    "MockTrainer",
    "RolloutCompletionTracker",
    "create_mock_trainer_app",
    "fake_prompt_token_ids",
    "fake_token_ids",
    "patch_httpx_for_mock_trainer",
]

ToolCallGenerator = Callable[[dict[str, Any]], "list[dict[str, Any]] | None"]
"""From the last message to the tool calls that answer it; None for an answer in words."""

_SUM = re.compile(r"\b(add|sum|plus|calculate|compute)\b|\d\s*\+\s*\d", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_PATHS = (COMPLETIONS_PATH, COMPLETED_PATH)
_PASSED_ON = ("authorization", "content-type")
"""Headers of a request by httpx that the mock trainer gets."""
_PROMPT_TOKENS = 10
"""Tokens of each message of a prompt."""


def fake_token_ids(text: str) -> list[int]:
    """Return one token for each character: 0, 1, 2, ..."""
    return list(range(len(text)))


def fake_prompt_token_ids(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return ten tokens for each message, and ten for none."""
    return list(range(_PROMPT_TOKENS * max(1, len(messages))))


class RolloutCompletionTracker:
    """The results that a mock trainer has taken; any thread may wait for them."""

    def __init__(self) -> None:
        self.responses: list[dict[str, Any]] = []
        self.event = threading.Event()

    def record(self, response: dict[str, Any]) -> None:
        """Add a result and wake what waits."""
        self.responses.append(response)
        self.event.set()

    def wait(self, timeout: float = 5.0) -> bool:
        """Wait for a result, at most `timeout` seconds; return whether there is one."""
        return self.event.wait(timeout)

    def clear(self) -> None:
        """Forget all results."""
        self.responses.clear()
        self.event.clear()


class MockTrainer:
    """The ASGI application of a trainer."""

    def __init__(
        self, tracker: RolloutCompletionTracker | None, generator: ToolCallGenerator
    ) -> None:
        self.completed: dict[str, dict[str, Any]] = {}
        """Results by rollout."""
        self._tracker = tracker
        self._generator = generator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the life cycle."""
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        body = await _body(receive)
        await self._reply(scope["method"], scope["path"], body).send(send)

    def _reply(self, method: str, path: str, body: bytes) -> Reply:
        known: dict[tuple[str, str], Callable[[], Any]] = {
            ("GET", "/health"): lambda: {"status": "healthy", "service": "mock-trainer"},
            ("POST", COMPLETIONS_PATH): lambda: self._completion(json.loads(body)),
            ("POST", COMPLETED_PATH): lambda: self._take(json.loads(body)),
        }
        if method == "GET" and path.startswith(f"{COMPLETED_PATH}/"):
            return json_reply(200, self.completed.get(unquote(path[len(COMPLETED_PATH) + 1 :]), {}))
        answer = known.get((method, path))
        if answer is None:
            return json_reply(404, {"error": f"a trainer has no {method} {path}"})
        try:
            return json_reply(200, answer())
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return json_reply(422, {"error": f"the body is not as expected: {error!r}"})

    def _take(self, response: dict[str, Any]) -> dict[str, str]:
        self.completed[response["rollout_id"]] = response
        if self._tracker is not None:
            self._tracker.record(response)
        return {"status": "ok"}

    def _completion(self, request: dict[str, Any]) -> dict[str, Any]:
        messages: list[dict[str, Any]] = request["messages"]
        message = self._answer(messages)
        text = message["content"] + json.dumps(message.get("tool_calls", []))
        tokens, prompt = fake_token_ids(text), fake_prompt_token_ids(messages)
        reason = "tool_calls" if "tool_calls" in message else "stop"
        return {
            "id": request["rollout_id"],
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model", "default"),
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {
                "prompt_tokens": len(prompt),
                "completion_tokens": len(tokens),
                "total_tokens": len(prompt) + len(tokens),
            },
            "token_ids": tokens,
            "logprobs": [0.0] * len(tokens),
            "prompt_token_ids": prompt,
        }

    def _answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        last = messages[-1] if messages else {}
        if is_tool_message(last):
            return {"role": "assistant", "content": "The calculation is complete."}
        calls = self._generator(last)
        if calls:
            return {"role": "assistant", "content": "A tool can tell.", "tool_calls": calls}
        return {"role": "assistant", "content": "That needs no tool."}


def create_mock_trainer_app(
    tracker: RolloutCompletionTracker | None = None,
    tool_call_generator: ToolCallGenerator | None = None,
) -> MockTrainer:
    """Return the ASGI application of a trainer.

    `tracker` records results. `tool_call_generator` makes tool calls of the last message; without
    one, a message about a sum is answered by a call of `add`, with the first two numbers in it.
    """
    return MockTrainer(tracker, tool_call_generator or _calls_for_sum)


def _calls_for_sum(message: dict[str, Any]) -> list[dict[str, Any]] | None:
    text = get_message_content(message)
    if _SUM.search(text) is None:
        return None
    a, b = [*map(float, _NUMBER.findall(text)), 5.0, 3.0][:2]
    arguments = json.dumps({"a": a, "b": b})
    return [
        {"id": "call_add", "type": "function", "function": {"name": "add", "arguments": arguments}}
    ]


async def _body(receive: Receive) -> bytes:
    chunks, more = [], True
    while more:
        message = await receive()
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(chunks)


def patch_httpx_for_mock_trainer(client: Any, monkeypatch: Any) -> None:
    """Have every call to a trainer go to the mock trainer behind `client`, whatever its address.

    `client` is Starlette's TestClient, or another with its `post`, and `monkeypatch` pytest's.
    Those of a server and of `ctx.chat`, and those that code makes by an `httpx.AsyncClient` of its
    own; its other requests are sent as they are.
    """
    import httpx

    send = httpx.AsyncClient.send

    async def located(rules: TrainerRules, server_url: str, *, called: str = "") -> Trainer:
        return parse_url(server_url)

    async def posted(
        wire: TrainerClient,
        trainer: Trainer,
        path: str,
        body: bytes,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> TransportReply:
        sent = {"Content-Type": "application/json", **headers}
        reply = await asyncio.to_thread(client.post, path, content=body, headers=sent)
        return TransportReply(reply.status_code, reply.headers, reply.content)

    async def sent(own: httpx.AsyncClient, request: httpx.Request, **options: Any) -> Any:
        path = next((known for known in _PATHS if request.url.path.endswith(known)), None)
        if path is None or request.method != "POST":
            return await send(own, request, **options)
        given = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        content = await request.aread()
        reply = await asyncio.to_thread(client.post, path, content=content, headers=given)
        kind = {"Content-Type": reply.headers.get("content-type", "application/json")}
        return httpx.Response(
            reply.status_code, headers=kind, content=reply.content, request=request
        )

    monkeypatch.setattr(httpx.AsyncClient, "send", sent)
    monkeypatch.setattr(TrainerRules, "locate", located)
    monkeypatch.setattr(TrainerClient, "post", posted)
