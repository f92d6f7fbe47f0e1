"""The embedded endpoint: a server in a thread of this process, which speaks chat completions.

    ChatError        a request that cannot be served; its status and OpenAI's error object

A rollout's mistakes are the same on every turn, so each request is attributed to a rollout: by its
`seed`, else its `user` or `metadata` field, else the ordinal number of the rollout in its
conversation. That number is part of the tool calls' ids, which clients send back.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..http_server import Response, ThreadedServer, problem
from ..messages import text_of
from .arithmetic import read_problem
from .personas import PERSONAS, Persona, find_persona, persona_name
from .solver import LOOKUP_DIFFICULTY, Call, Message, draw_slip, next_lookup, next_turn

if TYPE_CHECKING:
    from aiohttp import web

_ROUTES = {"/v1/models": "GET", "/v1/chat/completions": "POST"}
_COUNTED_ID = re.compile(r"call_n(\d{1,9})_")


class ChatError(Exception):
    """A request that cannot be served, with the status and the parameter at fault."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code


class EmbeddedEndpoint(ThreadedServer):
    """A running endpoint; `close()` it, or use it as a context manager.

    It answers as one persona; a request's model name may select another.
    """

    def __init__(self, persona: Persona, *, seed: int, host: str) -> None:
        self.model: str = persona.model
        "The model name that the endpoint answers to."
        self._persona = persona
        self._seed = seed
        self._begun: Counter[str] = Counter()
        super().__init__(self._handle, name=f"{persona.model} endpoint", host=host)
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
            return Response(200, self._models())
        try:
            asked = _read_request(await request.read())
            persona = self._chosen(asked["model"])
            body = self._complete(asked, persona)
        except ChatError as error:
            return problem(error.status, str(error), param=error.param, code=error.code)
        if persona.latency_s:
            await asyncio.sleep(persona.latency_s)
        return Response(200, body)

    def _models(self) -> dict[str, Any]:
        names = dict.fromkeys((self.model, *(one.model for one in PERSONAS.values())))
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "osmosis"} for name in names
        ]
        return {"object": "list", "data": data}

    def _chosen(self, model: str) -> Persona:
        name = persona_name(model)
        if name is None or name == "default":
            return self._persona
        try:
            return find_persona(name)
        except ValueError as error:
            missing = f"The model {model!r} does not exist: {error}"
            raise ChatError(missing, status=404, param="model", code="model_not_found") from None

    def _complete(self, request: Mapping[str, Any], persona: Persona) -> dict[str, Any]:
        messages: list[Message] = request["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        conversation = text_of(messages[users[0]].get("content")) if users else ""
        prompt = text_of(messages[users[-1]].get("content")) if users else ""
        history = messages[users[-1] + 1 :] if users else messages
        identity, mark = self._identity(request, conversation)
        posed = read_problem(prompt)
        slip = draw_slip(
            persona,
            posed.difficulty if posed else LOOKUP_DIFFICULTY,
            seed=self._seed,
            conversation=conversation,
            rollout=identity,
        )
        has_tools = persona.uses_tools and request.get("tool_choice") != "none"
        tools = (request.get("tools") or ()) if has_tools else ()
        turn = (
            next_turn(posed, slip, history, tools)
            if posed
            else next_lookup(prompt, slip, history, tools)
        )
        if request.get("parallel_tool_calls") is False and isinstance(turn, list):
            turn = turn[:1]
        stem = sha256(f"{identity}\0{conversation}\0{len(messages)}".encode("utf-8", "replace"))
        return _completion(request, turn, stem.hexdigest()[:16], mark)

    def _identity(self, request: Mapping[str, Any], conversation: str) -> tuple[str, str]:
        """Return which rollout this is, and the mark that its tool calls' ids carry."""
        for field in ("seed", "user", "metadata"):
            if request.get(field) is not None:
                return f"{field}={json.dumps(request[field], sort_keys=True)}", ""
        calls = (
            call for message in request["messages"] for call in message.get("tool_calls") or ()
        )
        counted = next(filter(None, (_COUNTED_ID.match(call["id"]) for call in calls)), None)
        if counted is None:
            self._begun[conversation] += 1
        number = counted[1] if counted else self._begun[conversation]
        return f"number={number}", f"n{number}_"


def start_embedded(
    persona: str = "default", *, seed: int = 0, host: str = "127.0.0.1"
) -> EmbeddedEndpoint:
    """Start an endpoint on a free port of `host`; ValueError for an unknown persona."""
    return EmbeddedEndpoint(find_persona(persona), seed=seed, host=host)


def _read_request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ChatError(f"The body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise ChatError("The body must be a JSON object.")
    for valid, param, legal in _checks(request):
        if not valid:
            raise ChatError(f"'{param}' must be {legal}.", param=param)
    return request


def _checks(request: Mapping[str, Any]) -> Iterator[tuple[bool, str, str]]:
    """Yield for each parameter that is read whether it is valid, its name and what it must be."""
    yield isinstance(request.get("model"), str), "model", "a string"
    messages, tools = request.get("messages"), request.get("tools") or []
    yield isinstance(messages, list) and messages != [], "messages", "a non-empty array"
    for at, message in enumerate(messages or ()):
        fits = isinstance(message, dict) and isinstance(message.get("role"), str)
        calls = (message.get("tool_calls") or []) if fits else []
        fits &= isinstance(calls, list) and all(_has(call, "id", str) for call in calls)
        yield fits, f"messages[{at}]", "an object with a role, and its tool calls with an id"
    yield isinstance(tools, list), "tools", "an array"
    for at, tool in enumerate(tools):
        fits = _has(tool, "function", dict) and _has(tool["function"], "name", str)
        yield fits, f"tools[{at}]", "a function with a name"
    limit = _max_tokens(request)
    yield limit is None or (isinstance(limit, int) and limit > 0), "max_tokens", "positive"
    yield request.get("n") in (None, 1), "n", "1: more choices are not supported"
    yield not request.get("stream"), "stream", "false: streaming is not supported"


def _has(found: object, key: str, kind: type) -> bool:
    return isinstance(found, dict) and isinstance(found.get(key), kind)


def _max_tokens(request: Mapping[str, Any]) -> Any:
    limit = request.get("max_completion_tokens")
    return request.get("max_tokens") if limit is None else limit


def _completion(
    request: Mapping[str, Any], turn: str | list[Call], stem: str, mark: str
) -> dict[str, Any]:
    message, finish_reason = _message(request, turn, f"call_{mark}{stem}")
    used = {
        "prompt_tokens": sum(3 + _tokens(each) for each in request["messages"])
        + sum(12 + len(str(tool["function"])) // 4 for tool in request.get("tools") or ()),
        "completion_tokens": _tokens(message),
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": f"chatcmpl-{stem}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [choice],
        "usage": {**used, "total_tokens": sum(used.values())},
    }


def _message(
    request: Mapping[str, Any], turn: str | list[Call], call_id: str
) -> tuple[dict[str, Any], str]:
    if isinstance(turn, str):
        limit = _max_tokens(request)
        cut = limit is not None and len(turn) > 4 * limit
        content = turn[: 4 * limit] if cut else turn
        return {"role": "assistant", "content": content}, "length" if cut else "stop"
    calls = [
        {
            "id": f"{call_id}_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for at, (name, arguments) in enumerate(turn)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"


def _tokens(message: Message) -> int:
    """Estimate: four characters a token."""
    characters = len(text_of(message.get("content")))
    for call in message.get("tool_calls") or ():
        characters += len(str(call.get("function", "")))
    return (characters + 3) // 4
