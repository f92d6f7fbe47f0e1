"""Chat completions in OpenAI's form: a request's JSON body -> an answer's.

    ChatError        a request that cannot be served; its status and OpenAI's error object

A rollout's mistakes are the same on every turn, so each request is attributed to a rollout: by its
`seed`, else its `user` or `metadata` field, else the ordinal number of the rollout in its
conversation. That number is part of the tool calls' ids, which clients send back.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ..messages import text_of
from .arithmetic import read_problem
from .personas import PERSONAS, Persona, find_persona, persona_name
from .slips import NO_SLIP, draw_slip
from .solver import LOOKUP_DIFFICULTY, NOTHING_TO_DO, Message, Task, next_lookup, next_turn
from .toolbox import Call, Toolbox

_ROLES = ("system", "developer", "user", "assistant", "tool")
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


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A completion's JSON, and the seconds to wait before it is sent."""

    body: dict[str, Any]
    latency_s: float


class Chat:
    """Answer chat completions as one persona; a request's model name may select another."""

    def __init__(self, persona: Persona, *, seed: int = 0) -> None:
        self._persona = persona
        self._seed = seed
        self._started: Counter[str] = Counter()

    def models(self) -> dict[str, Any]:
        """Return the answer to `GET /v1/models`."""
        names = {self._persona.model: None} | {one.model: None for one in PERSONAS.values()}
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "osmosis"} for name in names
        ]
        return {"object": "list", "data": data}

    def complete(self, body: bytes) -> ChatAnswer:
        """Return the answer to `POST /v1/chat/completions`; raise ChatError for a wrong request."""
        request = _read_request(body)
        persona = self._chosen(request["model"])
        messages: list[Message] = request["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        conversation = text_of(messages[users[0]].get("content")) if users else ""
        prompt = text_of(messages[users[-1]].get("content")) if users else ""
        history = messages[users[-1] + 1 :] if users else messages
        identity, mark = self._identity(request, conversation)
        problem = read_problem(prompt)
        difficulty = problem.difficulty if problem else LOOKUP_DIFFICULTY
        slip = draw_slip(
            persona, difficulty, seed=self._seed, conversation=conversation, rollout=identity
        )
        choice = request.get("tool_choice")
        tools = request.get("tools") or () if persona.uses_tools and choice != "none" else ()
        if problem:
            parallel = request.get("parallel_tool_calls") is not False
            box = Toolbox.of(tools, choice)
            turn = next_turn(Task(problem, slip, history, box, parallel))
        else:
            turn = next_lookup(prompt, tools, history, is_right=slip is NO_SLIP) or NOTHING_TO_DO
        stem = sha256(f"{identity}\0{conversation}\0{len(messages)}".encode("utf-8", "replace"))
        return ChatAnswer(
            _completion(request, turn, stem.hexdigest()[:16], mark), persona.latency_s
        )

    def _chosen(self, model: str) -> Persona:
        name = persona_name(model)
        if name is None or name == "default":
            return self._persona
        try:
            return find_persona(name)
        except ValueError as error:
            missing = f"The model {model!r} does not exist: {error}"
            raise ChatError(missing, status=404, param="model", code="model_not_found") from None

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
            self._started[conversation] += 1
        number = counted[1] if counted else self._started[conversation]
        return f"number={number}", f"n{number}_"


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
    """Yield for each parameter whether it is valid, its name and what it must be."""
    yield isinstance(request.get("model"), str), "model", "a string"
    messages, tools = request.get("messages"), request.get("tools") or []
    yield isinstance(messages, list) and messages != [], "messages", "a non-empty array"
    for at, message in enumerate(messages or ()):
        param = f"messages[{at}]"
        yield isinstance(message, dict), param, "an object"
        yield message.get("role") in _ROLES, param, f"from one of {', '.join(_ROLES)}"
        answers = message["role"] != "tool" or isinstance(message.get("tool_call_id"), str)
        yield answers, param, "an answer with a 'tool_call_id', a string"
        yield _are_calls(message.get("tool_calls")), param, "without tool_calls that lack an 'id'"
    yield isinstance(request.get("tools", []), list | None), "tools", "an array"
    for at, tool in enumerate(tools):
        yield _is_named_function(tool), f"tools[{at}]", "a function with a name"
    choice = request.get("tool_choice")
    known = choice in (None, "none", "auto", "required") or _is_named_function(choice)
    yield known, "tool_choice", "none, auto, required or a function"
    seed, limit = request.get("seed"), _max_tokens(request)
    whole = seed is None or (isinstance(seed, int) and not isinstance(seed, bool))
    yield whole, "seed", "an integer"
    yield request.get("n") in (None, 1), "n", "1: more choices are not supported"
    yield not request.get("stream"), "stream", "false: streaming is not supported"
    positive = limit is None or (isinstance(limit, int) and limit > 0)
    yield positive, "max_tokens", "a positive integer"


def _are_calls(calls: object) -> bool:
    return isinstance(calls, list | None) and all(
        isinstance(call, dict) and isinstance(call.get("id"), str) for call in calls or ()
    )


def _is_named_function(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _max_tokens(request: Mapping[str, Any]) -> Any:
    limit = request.get("max_completion_tokens")
    return request.get("max_tokens") if limit is None else limit


def _completion(
    request: Mapping[str, Any], turn: str | list[Call], stem: str, mark: str
) -> dict[str, Any]:
    message, finish_reason = _message(request, turn, f"call_{mark}{stem}")
    used = {"prompt_tokens": _prompt_tokens(request), "completion_tokens": _tokens(message)}
    return {
        "id": f"chatcmpl-{stem}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
        ],
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


def _prompt_tokens(request: Mapping[str, Any]) -> int:
    """Estimate: four characters a token, and a few for each message and tool."""
    messages = sum(3 + _tokens(message) for message in request["messages"])
    tools = request.get("tools") or ()
    return messages + sum(12 + len(str(tool["function"])) // 4 for tool in tools)


def _tokens(message: Message) -> int:
    characters = len(text_of(message.get("content")))
    for call in message.get("tool_calls") or ():
        characters += len(str(call.get("function", "")))
    return (characters + 3) // 4
