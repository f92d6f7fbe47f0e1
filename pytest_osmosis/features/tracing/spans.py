"""Rollouts as OpenTelemetry spans, by the GenAI semantic conventions (semconv 1.37 and later).

    invoke_agent NAME     a rollout; one trace each
      chat MODEL          a model call, with its tries
      execute_tool NAME   a tool call
      evaluate FUNCTION   an eval function, with the event `gen_ai.evaluation.result`

They go to where the variables `OTEL_EXPORTER_OTLP_*` say, unless the user's code has set a tracer
provider, which is used then. What is said goes along only where
`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is true. A collector that is slow or away
costs spans, and never a rollout its time. Needs the extra `otel`.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from osmosis_ai.agents import tools
from osmosis_ai.messages import text_of
from osmosis_ai.models.base import NO_HEADERS, NO_PARAMS, WrappedModel
from osmosis_ai.models.errors import ProviderError
from osmosis_ai.models.transport import cassettes
from osmosis_ai.secret import masked, redact

from ...rollouts.around import AroundRuns
from ...run_result import RolloutRecord, RunId, passes
from ...storage.excerpt import encode, plain

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatCompletion, ChatModel
    from osmosis_ai.models.other_apis import OtherRequest

    from ...rollouts.around import Scores
    from ...rollouts.suite import Suite
    from ...spec import ModelSpec

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CLOSE_TIMEOUT_S = 5.0
"""How long the end of a session waits for the last spans to be sent."""
_REQUESTED = ("temperature", "top_p", "max_tokens", "seed", "presence_penalty", "frequency_penalty")


class _Sender(SpanExporter):
    """Sends spans, and counts those that were not taken."""

    def __init__(self) -> None:
        self._exporter = OTLPSpanExporter()
        self.unsent = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send these."""
        self.unsent += len(spans)
        result = self._exporter.export(spans)  # early versions raise where there is no connection
        if result is SpanExportResult.SUCCESS:
            self.unsent -= len(spans)
        return result


class _Relay(SpanProcessor):
    """What the process's provider of ours hands spans to: a processor for each session."""

    def __init__(self) -> None:
        self.processor: SpanProcessor | None = None
        resource = Resource({"service.name": "pytest-osmosis"})
        self.provider = TracerProvider(
            resource=resource.merge(OTELResourceDetector().detect()), shutdown_on_exit=False
        )
        self.provider.add_span_processor(self)

    def on_start(self, span: Span, parent_context: context.Context | None = None) -> None:
        """Hand on a span that begins."""
        if self.processor is not None:
            self.processor.on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        """Hand on a span that has ended."""
        if self.processor is not None:
            self.processor.on_end(span)

    def close(self) -> None:
        """Send what waits; later spans are dropped."""
        processor, self.processor = self.processor, None
        if processor is not None:
            processor.shutdown()


@cache
def _own_provider() -> _Relay:
    """Return ours, one for a process: where the user has set none, it becomes the global one.

    Spans of the user's code and of frameworks are then children of ours.
    """
    relay = _Relay()
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(relay.provider)
    return relay


def _users_provider() -> tuple[Callable[[], Any], trace.TracerProvider | None]:
    """Return what sends all that waits at the provider that the user has set, and that provider.

    None: there is none, or one that records nothing.
    """
    found: Any = trace.get_tracer_provider()
    flush = getattr(found, "force_flush", None)
    is_ours = _own_provider.cache_info().currsize and found is _own_provider().provider
    return (flush, found) if callable(flush) and not is_ours else (lambda: None, None)


class Tracing(AroundRuns):
    """The spans of one process; used from any thread."""

    def __init__(self, suites: Mapping[str, Suite]) -> None:
        self._suites = suites
        self._with_content = os.environ.get(CONTENT, "").strip().lower() == "true"
        # Else its complaints stand in the sections of runs.
        self._logger, self._silence = logging.getLogger("opentelemetry"), logging.NullHandler()
        self._logger.addHandler(self._silence)
        self._logger.propagate = False
        self._sender: _Sender | None = None
        self._finish, provider = _users_provider()
        if provider is None:
            self._sender = _Sender()
            relay = _own_provider()
            relay.processor = BatchSpanProcessor(self._sender)
            self._finish, provider = relay.close, relay.provider
        self._tracer = provider.get_tracer("pytest-osmosis")
        self._open: dict[RunId, Span] = {}
        tools.around = self._around_tools

    def begin(self, run: RunId, *, again: bool) -> None:
        """Begin the span of a run, within which the running task continues."""
        suite = self._suites[run.suite]
        agent = suite.spec.agent
        span = self._tracer.start_span(
            f"invoke_agent {agent}",
            context.Context(),
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.request.model": suite.spec.model.model,
                "gen_ai.conversation.id": f"eval-{run.row_index}-run-{run.run_index}",
                "osmosis.suite": run.suite,
                "osmosis.row_index": run.row_index,
                "osmosis.run_index": run.run_index,
            },
        )
        self._open[run] = span
        if cassettes.current.get() is None:
            cassettes.current.set(cassettes.Caller(run))
        context.attach(trace.set_span_in_context(span))  # the task ends with its context

    def end(self, record: RolloutRecord) -> None:
        """End the span of a run with its result."""
        result = record.result
        span = self._open.pop(result.run_id, None)
        if span is None:
            return
        found: dict[str, Any] = {
            "osmosis.outcome": result.outcome,
            "gen_ai.usage.input_tokens": result.prompt_tokens,
            "gen_ai.usage.output_tokens": result.completion_tokens,
            "osmosis.cost_usd": result.cost_usd,
            **{f"osmosis.score.{name}": score for name, score in result.scores.items()},
        }
        _set(span, {**found, **self.contents("gen_ai.output.messages", record.messages[-1:])})
        if result.error_type is not None:
            _fail(span, result.error_type, result.error or "")
        span.end()

    def model(self, model: ChatModel, spec: ModelSpec) -> ChatModel:
        """Return the model with a span for each call."""
        return _TracedModel(model, spec, self)

    @contextmanager
    def scoring(self, name: str, scores: Scores) -> Iterator[None]:
        """Have a span around an eval function; what it scored is known behind it."""
        info = scores.suite.info
        threshold = info.thresholds.get(name, info.pass_threshold)
        with self.span(f"evaluate {name}", {"gen_ai.evaluation.name": name}) as span:
            yield
            if name in scores.errors:
                _fail(span, "eval_fn", redact(scores.errors[name]))
            score = scores.scores.get(name)
            found = {
                "gen_ai.evaluation.name": name,
                "gen_ai.evaluation.score.value": score,
                "gen_ai.evaluation.score.label": "pass" if passes(score, threshold) else "fail",
                "error.type": "eval_fn" if name in scores.errors else None,
                **self.contents("gen_ai.evaluation.explanation", scores.reasons.get(name, ())),
            }
            span.add_event("gen_ai.evaluation.result", _known(found))

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> Iterator[Span]:
        """Have a span of the running code, or of the run that it works for."""
        parent = None
        if not trace.get_current_span().get_span_context().is_valid:
            caller = cassettes.current.get()
            run = None if caller is None else self._open.get(caller.key)
            parent = None if run is None else trace.set_span_in_context(run)
        with self._tracer.start_as_current_span(
            name, parent, kind, _known(attributes), record_exception=False
        ) as span:
            yield span

    def contents(self, name: str, messages: Sequence[Any]) -> dict[str, str]:
        """Return an attribute with messages, masked, if contents are wanted."""
        if not self._with_content:
            return {}
        return {name: _content(messages)}

    def close(self) -> str | None:
        """Send what waits; return a sentence where spans were lost."""
        tools.around = None
        ending = threading.Thread(target=self._finish, daemon=True)
        ending.start()
        ending.join(CLOSE_TIMEOUT_S)
        self._logger.removeHandler(self._silence)
        self._logger.propagate = True
        unsent = 0 if self._sender is None else self._sender.unsent
        if not unsent and not ending.is_alive():
            return None
        many = f"{unsent} spans" if unsent else "the last spans"
        return (
            f"osmosis: {many} were not sent: no collector took them (OTEL_EXPORTER_OTLP_ENDPOINT)"
        )

    def _around_tools(self, execute: tools.Execute) -> tools.Execute:
        def traced(tool_call: dict[str, Any], executor: Any) -> Awaitable[dict[str, Any]]:
            return self._execute(execute, tool_call, executor)

        return traced

    async def _execute(
        self, execute: tools.Execute, tool_call: dict[str, Any], executor: Any
    ) -> dict[str, Any]:
        call: Mapping[str, Any] = tool_call if isinstance(tool_call, dict) else {}
        given = call.get("function")
        function: Mapping[str, Any] = given if isinstance(given, dict) else {}
        name = str(function.get("name"))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.get("id"),
            **self.contents("gen_ai.tool.call.arguments", [function.get("arguments")]),
        }
        with self.span(f"execute_tool {name}", attributes) as span:
            result = await execute(tool_call, executor)
            _set(span, self.contents("gen_ai.tool.call.result", [result.get("content")]))
            return result


class _TracedModel(WrappedModel):
    """A `ChatModel` with a span for each call."""

    def __init__(self, model: ChatModel, spec: ModelSpec, tracing: Tracing) -> None:
        super().__init__(model)
        self._tracing = tracing
        provider, _, name = model.name.partition("/")
        is_named = spec.base_url is None and spec.persona is None and name
        host, _, port = model.endpoint.rpartition(":")
        self._attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider if is_named else "openai",
            "gen_ai.request.model": name if is_named else model.name,
            "server.address": host if port.isdigit() else model.endpoint,
            "server.port": int(port) if port.isdigit() else None,
        }

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
        headers: Mapping[str, str] = NO_HEADERS,
        other: OtherRequest | None = None,
    ) -> ChatCompletion:
        """Return the model's answer."""
        tracing = self._tracing
        attributes = {
            **self._attributes,
            **{f"gen_ai.request.{name}": params.get(name) for name in _REQUESTED},
            **tracing.contents("gen_ai.input.messages", messages),
        }
        name = f"chat {attributes['gen_ai.request.model']}"
        with tracing.span(name, attributes, SpanKind.CLIENT) as span:
            try:
                answer = await self._model.complete(
                    messages, tools=tools, params=params, headers=headers, other=other
                )
            except ProviderError as error:
                _fail(span, error.kind, str(error))
                raise
            said = {**answer.message, "finish_reason": answer.finish_reason}
            reasons = [answer.finish_reason] if answer.finish_reason else None
            found = {
                "gen_ai.response.model": answer.model,
                "gen_ai.response.finish_reasons": reasons,
                "gen_ai.usage.input_tokens": answer.usage.prompt_tokens,
                "gen_ai.usage.output_tokens": answer.usage.completion_tokens,
                "osmosis.retries": answer.retries,
                "osmosis.cost_usd": answer.cost_usd,
                **tracing.contents("gen_ai.output.messages", [said]),
            }
            _set(span, found)
            return answer


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _set(span: Span, attributes: Mapping[str, Any]) -> None:
    span.set_attributes(_known(attributes))


def _fail(span: Span, kind: str, message: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _content(values: Sequence[Any]) -> str:
    """Return messages in the shape of the conventions, as JSON; texts as they are."""
    if all(isinstance(each, str) for each in values):
        return redact("\n".join(values))
    shaped = [_message(each) if isinstance(each, Mapping) else each for each in values]
    return encode(masked(plain(shaped)))


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    text, calls = text_of(message.get("content")), message.get("tool_calls")
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    if message.get("role") == "tool":
        answered = message.get("tool_call_id")
        parts = [{"type": "tool_call_response", "id": answered, "response": text}]
    for call in calls if isinstance(calls, list) else ():
        parts.append({"type": "tool_call", "id": call.get("id"), **(call.get("function") or {})})
    found = {"role": message.get("role", "assistant"), "parts": parts}
    reason = message.get("finish_reason")
    return found if reason is None else {**found, "finish_reason": reason}
