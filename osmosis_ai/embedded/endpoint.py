"""The embedded endpoint: a server in a thread of this process, which speaks chat completions.

A rollout's mistakes are the same on every turn, so each request is attributed to a rollout: by its
`seed`, else its `user` field, else the ordinal number of the rollout in its conversation. That
number is part of the tool calls' ids, which clients send back.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..agents.results import CompletionsResult
from ..bridge.openai import BadRequest, completion, read_call, streamed
from ..http_server import Response, ThreadedServer, problem
from ..messages import text_of
from .arithmetic import read_problem
from .personas import PERSONAS, Persona, find_persona, persona_name
from .solver import LOOKUP_DIFFICULTY, Message, draw_slip, next_lookup, next_turn

if TYPE_CHECKING:
    from aiohttp import web

_PATH = "/v1/chat/completions"
_COUNTED_ID = re.compile(r"call_n(\d{1,9})_")


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

    async def _handle(self, request: web.BaseRequest) -> Response:
        if (request.method, request.path) != ("POST", _PATH):
            return problem(404, f"There is only POST {_PATH} here.", code="unknown_url")
        try:
            call = read_call(await request.read())
            if call.params.get("n") not in (None, 1):
                raise BadRequest("'n' other than 1 is not supported: make one request an answer")
            name = persona_name(call.model)
            own = name in (None, "default")
            persona = self._persona if own else PERSONAS.get(str(name))
            if persona is None:
                known = ", ".join(one.model for one in PERSONAS.values())
                missing = f"There is no {call.model!r}: known are {known}."
                return problem(404, missing, param="model", code="model_not_found")
            result = self._solve(call.messages, call.params, persona)
        except BadRequest as error:
            return problem(400, str(error))
        except (LookupError, TypeError, AttributeError) as error:
            return problem(400, f"This is no request for a chat completion: {error!r}")
        if persona.latency_s:
            await asyncio.sleep(persona.latency_s)
        if call.stream:
            return streamed(result, model=call.model, with_usage=call.stream_usage)
        return completion(result, model=call.model)

    def _solve(
        self, messages: list[dict[str, Any]], params: Mapping[str, Any], persona: Persona
    ) -> CompletionsResult:
        users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
        conversation = text_of(messages[users[0]].get("content")) if users else ""
        prompt = text_of(messages[users[-1]].get("content")) if users else ""
        history = messages[users[-1] + 1 :] if users else messages
        identity, mark = self._identity(params, messages, conversation)
        posed = read_problem(prompt)
        difficulty = posed.difficulty if posed else LOOKUP_DIFFICULTY
        slip = draw_slip(
            persona, difficulty, seed=self._seed, conversation=conversation, rollout=identity
        )
        offered = params.get("tools") or ()
        tools = offered if persona.uses_tools and params.get("tool_choice") != "none" else ()
        if posed:
            turn = next_turn(posed, slip, history, tools)
        else:
            turn = next_lookup(prompt, slip, history, tools)
        message: dict[str, Any] = {"role": "assistant", "content": turn}
        if not isinstance(turn, str):
            stem = sha256(f"{identity}\0{conversation}\0{len(messages)}".encode("utf-8", "replace"))
            first = turn if params.get("parallel_tool_calls") is not False else turn[:1]
            message["content"] = None
            message["tool_calls"] = [
                {
                    "id": f"call_{mark}{stem.hexdigest()[:16]}_{step}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for step, name, arguments in first
            ]
        read = sum(3 + _tokens(each) for each in messages)
        read += sum(12 + len(str(tool["function"])) // 4 for tool in offered)
        written = _tokens(message)
        counts = {"prompt_tokens": read, "completion_tokens": written}
        return CompletionsResult(message, usage={**counts, "total_tokens": read + written})

    def _identity(
        self, params: Mapping[str, Any], messages: list[dict[str, Any]], conversation: str
    ) -> tuple[str, str]:
        """Return which rollout this is, and the mark that its tool calls' ids carry."""
        for field in ("seed", "user"):
            if params.get(field) is not None:
                return f"{field}={json.dumps(params[field])}", ""
        ids = (str(message.get("tool_call_id")) for message in messages)
        counted = next(filter(None, map(_COUNTED_ID.match, ids)), None)
        if counted is None:
            self._begun[conversation] += 1
        number = counted[1] if counted else self._begun[conversation]
        return f"number={number}", f"n{number}_"


def start_embedded(
    persona: str = "default", *, seed: int = 0, host: str = "127.0.0.1"
) -> EmbeddedEndpoint:
    """Start an endpoint on a free port of `host`; ValueError for an unknown persona."""
    return EmbeddedEndpoint(find_persona(persona), seed=seed, host=host)


def _tokens(message: Message) -> int:
    """Estimate: four characters a token."""
    characters = len(text_of(message.get("content")))
    for call in message.get("tool_calls") or ():
        characters += len(str(call.get("function", "")))
    return (characters + 3) // 4
