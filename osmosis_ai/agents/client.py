"""Model calls of agent code: the `LLMClient` protocol, and `ModelLLM`, one over a `ChatModel`.

`ModelLLM` counts the calls, tokens and cost of its rollout. Knows neither HTTP nor providers, and
retries nothing: the model does.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..models.answers import kind_of_answer
from ..models.errors import ProviderError
from ..models.headers import header_mistake
from ..models.progress import CallProgress
from .errors import OsmosisRolloutError, OsmosisValidationError
from .results import NO_USAGE, CompletionsResult

if TYPE_CHECKING:
    from ..models.base import ChatCompletion, ChatModel, Usage
    from ..models.other_apis import OtherRequest
    from ..models.passing import Passing
    from .request import RolloutMetrics


_NOT_FOR_THE_WIRE = {
    "extra_query": "put a query into --osmosis-base-url",
    "timeout": "--osmosis-agent-timeout bounds a run, and asyncio.wait_for a call",
}
"""Keywords of SDKs that are no fields of a request."""


class LLMClient(Protocol):
    """The client behind `ctx.chat`."""

    async def chat_completions(
        self, messages: list[dict[str, Any]], **params: Any
    ) -> CompletionsResult:
        """Return the model's answer to the whole history."""
        ...

    def get_metrics(self) -> RolloutMetrics:
        """Return the totals of all calls so far; a new object at each call."""
        ...


class ModelLLM:
    """One rollout's client of a model, with that rollout's totals.

    `params` are sent with every call unless the call says otherwise (None: not sent), and so are
    `tools`. With `record`, `calls` keeps the usage of each call.
    """

    __slots__ = (
        "_closed",
        "_model",
        "_params",
        "_record",
        "_tools",
        "answer_kind",
        "cached_tokens",
        "calls",
        "cost_usd",
        "counts_all",
        "finish_reason",
        "last_answer",
        "last_asked",
        "last_error",
        "llm_latency_ms",
        "max_context_tokens",
        "notes",
        "num_llm_calls",
        "prompt_tokens",
        "reasoning_tokens",
        "response_tokens",
        "retries",
        "total_tokens",
        "under_way",
    )

    def __init__(
        self,
        model: ChatModel | None,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] | None = None,
        record: bool = False,
    ) -> None:
        self._model = model
        self._tools = tools or None
        self._params = params or {}
        self._record = record
        self._closed = False
        self.under_way: list[CallProgress] = []
        """Calls that wait for their answers."""
        self.counts_all = True
        """Whether every call is made, or recorded, here; else nothing is known before the first."""
        self.prompt_tokens: int | None = 0
        self.response_tokens: int | None = 0
        self.total_tokens: int | None = 0
        """As the two above, the sum over all calls; None once a call did not report it."""
        self.cached_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        """As `cached_tokens`, part of the tokens above; None where no call told any."""
        self.max_context_tokens: int | None = 0
        self.num_llm_calls = 0
        """Calls that the model answered."""
        self.llm_latency_ms = 0.0
        """Time in calls, answered or not, retries included."""
        self.retries = 0
        """Requests beyond the first of each call, answered or not."""
        self.cost_usd: float | None = None
        """The cost of the calls; None before the first, and once a price is unknown."""
        self.calls: list[dict[str, Any]] = []
        """Usage of each call, when recording."""
        self.last_asked: list[dict[str, Any]] = []
        """The messages of the last call: the caller's own list."""
        self.last_answer: dict[str, Any] | None = None
        """The answer to the last call; None when it failed."""
        self.last_error: ProviderError | None = None
        """The error of the call that ended last; None when it was answered."""
        self.finish_reason: str | None = None
        """Of the last answer; "none" when the endpoint reported none, None before the first."""
        self.answer_kind: str | None = None
        """What the last answer is, unless it is a usual one: see `kind_of_answer`."""
        self.notes: dict[str, None] = {}
        """How requests were sent otherwise than asked, in order."""

    async def chat_completions(
        self,
        messages: list[dict[str, Any]],
        *,
        _other: OtherRequest | None = None,
        _passing: Passing | None = None,
        **params: Any,
    ) -> CompletionsResult:
        """Ask the model; raise what it raises, mostly `ProviderError`.

        `_other` is what the bridge sends in the place of a chat completion, `_passing` who reads
        the answer there while it comes.
        """
        if self._closed:
            raise OsmosisRolloutError("the rollout has ended: its model takes no more calls")
        if self._model is None:
            raise OsmosisRolloutError("this rollout has no model: give --osmosis-model")
        self.last_error = None
        self.last_asked, self.last_answer = messages, None
        tools = params.pop("tools", self._tools) or None
        headers = _headers(params.pop("extra_headers")) if "extra_headers" in params else None
        sent = _merge(self._params, params)
        tools = sent.pop("tools", tools) or None  # of an extra body
        options: dict[str, Any] = {"headers": headers} if headers else {}
        if _other is not None:
            options["other"] = _other.with_defaults(self._params)
        call = CallProgress(self._model.endpoint, asyncio.current_task()).begin()
        self.under_way.append(call)
        if _passing is not None:
            call.passing = _passing
        try:
            completion = await self._model.complete(messages, tools=tools, params=sent, **options)
        except ProviderError as error:
            self.note_error(error)
            raise
        except asyncio.CancelledError:
            self.retries += max(0, call.tries - 1)
            raise
        finally:
            self.under_way.remove(call)
            self.llm_latency_ms += call.end() * 1000.0
        return self.note_answer(completion)

    def longest_wait(self) -> CallProgress | None:
        """Return the call that has waited longest without a part of its reply; from any thread."""
        for call in self.under_way[:]:
            if not call.is_arriving:
                return call
        return None

    def get_metrics(self) -> RolloutMetrics:
        """Return the totals of all calls so far."""
        from .request import RolloutMetrics  # pydantic

        return RolloutMetrics(
            llm_latency_ms=self.llm_latency_ms,
            num_llm_calls=self.num_llm_calls,
            prompt_tokens=self.prompt_tokens,
            response_tokens=self.response_tokens,
            max_context_tokens=self.max_context_tokens,
        )

    def measures(self) -> dict[str, Any]:
        """Return what was measured of all calls so far, by the names that reports of runs have."""
        known = self.counts_all or self.num_llm_calls
        return {
            "llm_ms": round(self.llm_latency_ms),
            "tokens": self.total_tokens if known else None,
            "prompt_tokens": self.prompt_tokens if known else None,
            "completion_tokens": self.response_tokens if known else None,
            "llm_calls": self.num_llm_calls,
            "retries": self.retries,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "cost_usd": self.cost_usd,
            "finish_reason": self.finish_reason,
            "answer_kind": self.answer_kind,
            "notes": "; ".join(self.notes) or None,
        }

    def close(self) -> None:
        """End the rollout: later calls raise."""
        self._closed = True

    def note_error(self, error: ProviderError) -> None:
        """Note that a call failed."""
        self.last_error = error
        self.retries += max(0, error.tries - 1)

    def note_answer(self, completion: ChatCompletion) -> CompletionsResult:
        """Count an answered call, and return it as the agent sees it."""
        self.last_error = None
        first = self.num_llm_calls == 0
        self.num_llm_calls += 1
        self.retries += completion.retries
        cost = completion.cost_usd
        self.cost_usd = cost if first else _add(self.cost_usd, cost)
        message = completion.message
        if message:  # embeddings say nothing
            reason = completion.finish_reason
            self.finish_reason = "none" if reason is None else reason
            self.answer_kind = kind_of_answer(message, reason)
            self.last_answer = message
        self.notes.update(dict.fromkeys(completion.notes))
        known = self._note_usage(completion.usage)
        if self._record:
            self.calls.append(_call_record(completion, known))
        if "tool_calls" in message:
            _repair_tool_calls(message, self.num_llm_calls)
        return _result(completion, known)

    def _note_usage(self, usage: Usage) -> dict[str, Any]:
        prompt, response, total = usage.prompt_tokens, usage.completion_tokens, usage.total_tokens
        if total is None and prompt is not None and response is not None:
            total = prompt + response
        self.prompt_tokens = _add(self.prompt_tokens, prompt)
        self.response_tokens = _add(self.response_tokens, response)
        self.total_tokens = _add(self.total_tokens, total)
        if total is None or self.max_context_tokens is None:
            self.max_context_tokens = None
        elif total > self.max_context_tokens:
            self.max_context_tokens = total
        cached, reasoning = usage.cached_tokens, usage.reasoning_tokens
        if cached is not None:
            self.cached_tokens = (self.cached_tokens or 0) + cached
        if reasoning is not None:
            self.reasoning_tokens = (self.reasoning_tokens or 0) + reasoning
        counts = {
            "prompt_tokens": prompt,
            "completion_tokens": response,
            "total_tokens": total,
            "cached_tokens": cached,
            "reasoning_tokens": reasoning,
        }
        return {name: count for name, count in counts.items() if count is not None}


def _result(completion: ChatCompletion, known: dict[str, int]) -> CompletionsResult:
    """Return the answer for the agent, which sees 0, "stop" and empty lists for what is unknown."""
    return CompletionsResult(
        completion.message,
        token_ids=completion.token_ids or [],
        logprobs=completion.logprobs or [],
        usage={**NO_USAGE, **{name: known[name] for name in NO_USAGE if name in known}},
        usage_details=completion.usage.details,
        further=completion.further,
        document=completion.document,
        finish_reason=completion.finish_reason or "stop",
    )


def _add(total: Any, value: Any) -> Any:
    return None if total is None or value is None else total + value


def _merge(defaults: Mapping[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return the call's parameters over the defaults, without the name of a model."""
    if params.get("stream"):
        raise OsmosisValidationError("ctx.chat returns whole answers: leave out stream=True")
    for name in _NOT_FOR_THE_WIRE.keys() & params.keys():
        raise OsmosisValidationError(f"ctx.chat takes no {name}: {_NOT_FOR_THE_WIRE[name]}")
    merged = {**defaults, **params}
    if "extra_body" in params:
        merged.update(_extra_body(params["extra_body"]))
    for name in ("model", "rollout_id", "stream", "extra_body", "messages"):
        merged.pop(name, None)
    if None in merged.values():
        merged = {name: value for name, value in merged.items() if value is not None}
    return merged


def _extra_body(given: Any) -> Mapping[str, Any]:
    """Return the fields that an SDK puts into the request itself."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OsmosisValidationError(f"extra_body must be a dict, not {type(given).__name__}")
    if given.get("stream") or "messages" in given:
        raise OsmosisValidationError("extra_body must hold neither stream nor messages")
    return given


def _headers(given: Any) -> dict[str, str]:
    """Return the headers that a call adds; raise OsmosisValidationError for one that may not be."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise OsmosisValidationError(f"extra_headers must be a dict, not {type(given).__name__}")
    for name, value in given.items():
        mistake = header_mistake(str(name), value, of_agent=True)
        if mistake is not None:
            raise OsmosisValidationError(f"extra_headers: {mistake}")
    return dict(given)


def _repair_tool_calls(message: dict[str, Any], call_number: int) -> None:
    """Add missing ids and encode arguments as text, so that the history can be sent back.

    Some endpoints omit ids or send arguments as objects, and refuse both in a request.
    """
    tool_calls = message["tool_calls"]
    if not tool_calls:
        del message["tool_calls"]
        return
    if not isinstance(tool_calls, list):
        return
    for index, tool_call in enumerate(tool_calls):
        if not isinstance(tool_call, dict):
            continue
        if not isinstance(tool_call.get("id"), str) or not tool_call["id"]:
            tool_call["id"] = f"call_{call_number}_{index}"
        tool_call.setdefault("type", "function")
        function = tool_call.get("function")
        if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
            given = function.get("arguments")
            given = {} if given is None else given  # of a tool without parameters
            function["arguments"] = json.dumps(given, ensure_ascii=False)


def _call_record(completion: ChatCompletion, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        **usage,
        "finish_reason": completion.finish_reason,
        "latency_ms": round(completion.latency_ms),
        "retries": completion.retries,
        "cost_usd": completion.cost_usd,
        "model": completion.model,
    }
