"""The context of one rollout, and the way to reach it from anywhere inside that rollout.

`RolloutContext` serves both kinds of agents; an attribute that a rollout does not have raises an
error that says so:

- an agent loop gets one as `ctx`: `request`, `tools`, `llm`, `chat`, `complete`, `error`;
- a workflow gets one from `get_rollout_context()`: `chat_completions_url`, `api_key`,
  `rollout_id`, `set_sample_source`, `get_sample`.

`with ctx:` makes it the ambient one of the current task and of the tasks and threads that copy its
context. This module knows neither which model answers nor who runs the agent.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..deprecation import warn_deprecated
from ..running.forked import end_forked
from ..secret import Secret, redact
from .errors import OsmosisRolloutError, OsmosisValidationError
from .results import CompletionsResult, RolloutResult

if TYPE_CHECKING:
    from ..models.base import RateLimit
    from .client import LLMClient
    from .request import RolloutMetrics, RolloutRequest
    from .schemas import RolloutSample

__all__ = ["RolloutContext", "SampleSource", "get_rollout_context", "logger"]

logger = logging.getLogger(__name__)

_current: ContextVar[RolloutContext | None] = ContextVar("osmosis_rollout_context", default=None)


def get_rollout_context() -> RolloutContext | None:
    """Return the context of the rollout that is running here; None outside of one."""
    return _current.get()


@runtime_checkable
class SampleSource(Protocol):
    """The provider of a rollout's sample after the workflow has ended."""

    async def get_sample(self) -> RolloutSample:
        """Return the rollout's sample."""
        ...


class RolloutContext:
    """The request, tools and model of one rollout.

    An agent loop gets `request`, `tools` and `llm`; a workflow's rollout has a
    `chat_completions_url` with its own `api_key`. `rollout_id` defaults to the request's;
    `redact` takes secrets out of what `log_event` writes.
    """

    def __init__(
        self,
        request: RolloutRequest | None = None,
        tools: Sequence[Any] | None = None,
        llm: LLMClient | None = None,
        *,
        rollout_id: str | None = None,
        chat_completions_url: str | None = None,
        api_key: Secret | str | None = None,
        debug_dir: str | os.PathLike[str] | None = None,
        redact: Callable[[str], str] = redact,
        run_sync: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
    ) -> None:
        if rollout_id is None:
            rollout_id = "" if request is None else request.rollout_id
        self.rollout_id = rollout_id
        """The name of the rollout in logs and requests."""
        self.tools: list[Any] = list(tools or ())
        """What the agent loop's `get_tools` returned."""
        self._request = request
        self._llm = llm
        self._chat_completions_url = chat_completions_url
        self._api_key = Secret(api_key, "rollout key") if isinstance(api_key, str) else api_key
        self._debug_dir = debug_dir
        self._redact = redact
        self.run_sync = run_sync
        """Makes a synchronous call in a thread, with this context; None: a thread for each."""
        self.rate_limit: RateLimit | None = None
        """The pause that calls of the user's own clients wait for, too."""
        self.price_per_mtok: tuple[float, ...] | None = None
        """What the user says that tokens of these calls cost."""
        self.cause: BaseException | None = None
        """The exception that the agent reported, or handled while it reported an error."""
        self.recorded: Any = None
        """The calls of such clients (`osmosis_ai.recording`); None before the first."""
        self.bridged: Callable[[], list[dict[str, Any]]] | None = None
        """Returns what was said at `chat_completions_url`, where the rollout has one."""
        self.model_name = ""
        """The name of the evaluated model; empty where there is none."""
        self._process = os.getpid()
        self._started = time.monotonic()
        self._tool_latency_ms = 0.0
        self.num_tool_calls = 0
        """Tool calls that were recorded so far."""
        self._source: SampleSource | None = None
        self._source_name: str | None = None
        self._tokens: list[Token[RolloutContext | None]] = []

    def __repr__(self) -> str:
        return f"<RolloutContext {self.rollout_id!r}>"

    def __enter__(self) -> RolloutContext:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._process:
            end_forked()
        try:
            _current.reset(self._tokens.pop())
        except ValueError:
            # A coroutine that is closed by a loop that shuts down is unwound in another context,
            # in which there is nothing to restore.
            logger.debug("rollout %s was closed from outside of its context", self.rollout_id)

    # What an agent loop works with.

    @property
    def request(self) -> RolloutRequest:
        """The request of the rollout."""
        if self._request is None:
            raise self._lacks("request")
        return self._request

    @property
    def llm(self) -> LLMClient:
        """The model client behind `chat`."""
        if self._llm is None:
            raise self._lacks("llm")
        return self._llm

    @property
    def has_llm(self) -> bool:
        """Whether calls are counted here: a workflow's rollout has the bridge for that."""
        return self._llm is not None

    async def chat(self, messages: list[dict[str, Any]], **params: Any) -> CompletionsResult:
        """Ask the model: `messages` is the whole history, `params` are sampling options."""
        if os.getpid() != self._process:
            end_forked()
        return await self.llm.chat_completions(messages, **params)

    def complete(
        self,
        final_messages: list[dict[str, Any]],
        finish_reason: str = "stop",
        reward: float | None = None,
    ) -> RolloutResult:
        """Return the result of a completed rollout."""
        return RolloutResult(
            status="COMPLETED",
            final_messages=final_messages,
            finish_reason=finish_reason,
            metrics=self.metrics(),
            reward=reward,
        )

    def error(
        self,
        error_message: str | BaseException,
        final_messages: list[dict[str, Any]] | None = None,
    ) -> RolloutResult:
        """Return the result of a failed rollout."""
        is_raised = isinstance(error_message, BaseException)
        self.cause = error_message if is_raised else sys.exc_info()[1]  # type: ignore[assignment]
        return RolloutResult(
            status="ERROR",
            final_messages=[] if final_messages is None else final_messages,
            finish_reason="error",
            error_message=str(error_message),
            metrics=self.metrics(),
        )

    def record_tool_call(self, latency_ms: float = 0.0) -> None:
        """Count one tool call into the rollout's metrics."""
        self.num_tool_calls += 1
        self._tool_latency_ms += latency_ms

    def conversation(self) -> list[dict[str, Any]]:
        """Return what was said in calls that did not go through `chat`, as far as it is known."""
        if self.bridged is not None:
            return self.bridged()
        messages: list[dict[str, Any]] = (
            [] if self.recorded is None else self.recorded.conversation()
        )
        return messages

    def metrics(self) -> RolloutMetrics:
        """Return latencies, calls and tokens of the rollout so far."""
        if self._llm is None:
            from .request import RolloutMetrics  # pydantic

            metrics = RolloutMetrics()
        else:
            metrics = self._llm.get_metrics()
        metrics.total_latency_ms = (time.monotonic() - self._started) * 1000.0
        metrics.tool_latency_ms = self._tool_latency_ms
        metrics.num_tool_calls = self.num_tool_calls
        return metrics

    # What a workflow works with.

    @property
    def chat_completions_url(self) -> str:
        """What OpenAI clients call `base_url`."""
        if self._chat_completions_url is None:
            raise self._lacks("chat_completions_url")
        return self._chat_completions_url

    @property
    def api_key(self) -> str:
        """The bearer key that `chat_completions_url` takes; valid for this rollout only."""
        if self._api_key is None:
            raise self._lacks("api_key")
        return self._api_key.reveal()

    def set_sample_source(self, source: SampleSource) -> None:
        """Register the object that provides the sample; one for each rollout."""
        if not callable(getattr(source, "get_sample", None)):
            raise TypeError(
                f"a sample source needs `async def get_sample(self)`; "
                f"{type(source).__name__} has none"
            )
        if self._source is not None and self._source is not source:
            raise ValueError(
                "this rollout has a sample source already: it yields one sample, so register one "
                "agent or session in a run"
            )
        self._source = source

    async def get_sample(self) -> RolloutSample | None:
        """Return the sample of the registered source; None when there is no source."""
        if self._source is None:
            return None
        from .schemas import RolloutSample

        sample = await self._source.get_sample()
        if not isinstance(sample, RolloutSample):
            raise OsmosisValidationError(
                f"{type(self._source).__name__}.get_sample returned {type(sample).__name__}; "
                f"expected RolloutSample"
            )
        if self._source_name is not None:
            sample = sample.model_copy(update={"id": self._source_name})
        return sample

    def register_sample_source(self, name: str, source: SampleSource) -> None:
        """Deprecated: call `set_sample_source`."""
        instead = "a rollout has one sample, call set_sample_source(source)"
        warn_deprecated("RolloutContext.register_sample_source", instead)
        self.set_sample_source(source)
        self._source_name = name

    def get_samples(self) -> Awaitable[dict[str, RolloutSample]]:
        """Deprecated: call `get_sample`."""
        warn_deprecated(
            "RolloutContext.get_samples", "a rollout has one sample, await get_sample()"
        )
        return self._by_name()

    async def _by_name(self) -> dict[str, RolloutSample]:
        sample = await self.get_sample()
        return {} if sample is None else {sample.name: sample}

    # The debug log.

    def redacted(self, text: str) -> str:
        """Return `text` without the secrets that this rollout knows."""
        return self._redact(text)

    @property
    def debug_enabled(self) -> bool:
        """Whether `log_event` writes anything."""
        return self._debug_dir is not None

    def log_event(self, event_type: str, **data: Any) -> None:
        """Append one JSON line to the rollout's file in the folder of this session.

        That is `<debug dir>/<seconds since 1970>/<rollout_id>.jsonl`; nothing when it is off.
        Values that JSON cannot represent are written as their repr. When the log cannot be
        written, a warning is logged once and the log is switched off.
        """
        if self._debug_dir is None:
            return
        try:
            self._append_event(event_type, data)
        except OSError as exc:
            logger.warning("debug log of rollout %s is off: %s", self.rollout_id, exc)
            self._debug_dir = None

    def _append_event(self, kind: str, data: dict[str, Any]) -> None:
        from ..escaping import encodable_json
        from .event_log import append_line

        assert self._debug_dir is not None
        head = {"event": kind, "rollout_id": self.rollout_id, "timestamp": time.time()}
        text = _event_text({**head, **data, "event": kind})
        append_line(self._debug_dir, self.rollout_id, encodable_json(self.redacted(text)))

    def _lacks(self, what: str) -> OsmosisRolloutError:
        hint = {
            "request": "only an agent loop's rollout has one",
            "llm": "only an agent loop's rollout has one; use chat_completions_url",
            "chat_completions_url": "only a workflow's rollout has one; use ctx.chat",
            "api_key": "only a workflow's rollout has one; use ctx.chat",
        }[what]
        return OsmosisRolloutError(f"rollout {self.rollout_id!r} has no {what}: {hint}")


def _event_text(event: dict[str, Any]) -> str:
    try:
        return json.dumps(event, default=repr, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # Odd keys, NaN or cycles: keep the event, as text.
        return json.dumps({key: repr(value) for key, value in event.items()})
