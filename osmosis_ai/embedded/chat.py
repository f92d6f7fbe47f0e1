"""Chat completions in OpenAI's form: a request's JSON body -> an answer's.

    ChatError        a request that cannot be served; its status and OpenAI's error object

A rollout's mistakes are the same on every turn, so each request is attributed to a rollout: by its
`seed`, else the `X-Osmosis-Rollout` header, else the `user` or `metadata` field, else the ordinal
number of the rollout in its conversation. That number is part of the tool calls' ids, which clients
send back.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from .arithmetic import read_problem
from .personas import PERSONAS, Persona, find_persona, persona_name
from .slips import draw_slip
from .solver import NOTHING_TO_DO, Message, Task, next_turn, text_of
from .toolbox import Call, Toolbox

_ROLES = ("system", "developer", "user", "assistant", "tool")
_NAMES = ("user", "metadata")
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

    def body(self) -> dict[str, Any]:
        """Return OpenAI's error object."""
        error = {"message": str(self), "type": "invalid_request_error"}
        return {"error": {**error, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class Answer:
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

    def complete(self, body: bytes, *, rollout: str | None = None) -> Answer:
        """Return the answer to `POST /v1/chat/completions`; raise ChatError for a wrong request."""
        request = _read_request(body)
        persona = self._chosen(request["model"])
        messages: list[Message] = request["messages"]
        users = [at for at, message in enumerate(messages) if message["role"] == "user"]
        conversation = text_of(messages[users[0]]) if users else ""
        question = text_of(messages[users[-1]]) if users else ""
        history = messages[users[-1] + 1 :] if users else messages
        identity, mark = self._identity(request, rollout, conversation)
        turn: str | list[Call] = NOTHING_TO_DO
        if problem := read_problem(question):
            tools = request.get("tools") or () if persona.uses_tools else ()
            turn = next_turn(
                Task(
                    problem=problem,
                    slip=draw_slip(
                        persona,
                        problem,
                        seed=self._seed,
                        conversation=conversation,
                        rollout=identity,
                    ),
                    history=history,
                    toolbox=Toolbox.of(tools, request.get("tool_choice")),
                    parallel=request.get("parallel_tool_calls") is not False,
                    finishes=persona.finishes,
                )
            )
        stem = sha256(f"{identity}\0{conversation}\0{len(messages)}".encode("utf-8", "replace"))
        return Answer(_completion(request, turn, stem.hexdigest()[:16], mark), persona.latency_s)

    def _chosen(self, model: str) -> Persona:
        name = persona_name(model)
        if name is None or name == "default":
            return self._persona
        try:
            return find_persona(name)
        except ValueError as error:
            told = f"The model {model!r} does not exist: {error}"
            raise ChatError(told, status=404, param="model", code="model_not_found") from None

    def _identity(
        self, request: Mapping[str, Any], rollout: str | None, conversation: str
    ) -> tuple[str, str]:
        """Return which rollout this is, and the mark that its tool calls' ids carry."""
        named = {"seed": request.get("seed"), "rollout": rollout}
        for kind, value in (*named.items(), *((key, request.get(key)) for key in _NAMES)):
            if value is not None:
                return f"{kind}={json.dumps(value, sort_keys=True)}", ""
        number = _number_in_ids(request["messages"])
        if number is None:
            self._started[conversation] += 1
            number = self._started[conversation]
        return f"number={number}", f"n{number}_"


def _number_in_ids(messages: Sequence[Message]) -> int | None:
    for message in messages:
        for call in message.get("tool_calls") or ():
            match = _COUNTED_ID.match(call["id"])
            if match:
                return int(match.group(1))
    return None


def _read_request(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ChatError(f"The body is not JSON: {error}") from None
    _require(isinstance(request, dict), "The body must be a JSON object.")
    _require(isinstance(request.get("model"), str), "'model' must be a string.", "model")
    _check_messages(request.get("messages"))
    _check_tools(request.get("tools"), request.get("tool_choice"))
    seed = request.get("seed")
    whole = seed is None or (isinstance(seed, int) and not isinstance(seed, bool))
    _require(whole, "'seed' must be an integer.", "seed")
    _require(request.get("n") in (None, 1), "'n' other than 1 is not supported.", "n")
    _require(not request.get("stream"), "Streaming is not supported.", "stream")
    limit = _max_tokens(request)
    positive = limit is None or (isinstance(limit, int) and limit > 0)
    _require(positive, "'max_tokens' must be a positive integer.", "max_tokens")
    return request  # type: ignore[no-any-return]


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise ChatError("'messages' must be a non-empty array.", param="messages")
    for at, message in enumerate(messages):
        param = f"messages[{at}]"
        _require(isinstance(message, dict), f"'{param}' must be an object.", param)
        role = message.get("role")
        _require(role in _ROLES, f"'{param}.role' must be one of {', '.join(_ROLES)}.", param)
        answers = role != "tool" or isinstance(message.get("tool_call_id"), str)
        _require(answers, f"'{param}.tool_call_id' must be a string.", param)
        calls = message.get("tool_calls") or []
        valid = isinstance(calls, list) and all(
            isinstance(call, dict) and isinstance(call.get("id"), str) for call in calls
        )
        _require(valid, f"'{param}.tool_calls' must be an array of calls with an 'id'.", param)


def _check_tools(tools: object, choice: object) -> None:
    if tools is not None and not isinstance(tools, list):
        raise ChatError("'tools' must be an array.", param="tools")
    for at, tool in enumerate(tools or ()):
        param = f"tools[{at}]"
        _require(_is_named_function(tool), f"'{param}' must be a function with a name.", param)
    known = choice in (None, "none", "auto", "required") or _is_named_function(choice)
    _require(known, "'tool_choice' must be none, auto, required or a function.", "tool_choice")


def _is_named_function(tool: object) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _require(condition: object, message: str, param: str | None = None) -> None:
    if not condition:
        raise ChatError(message, param=param)


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
    characters = len(text_of(message))
    for call in message.get("tool_calls") or ():
        characters += len(str(call.get("function", "")))
    return (characters + 3) // 4
