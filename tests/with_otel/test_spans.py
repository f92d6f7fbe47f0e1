"""`--osmosis-otel` with the OpenTelemetry SDK, and a collector of OTLP over HTTP on loopback.

The SDK is in the environment of `tox -e otel` alone.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.endpoints import Ask, Endpoint, completion
from tests.support.modes import each_mode
from tests.support.project import NO_NEIGHBOURS, Project

KEY = "sk-a-key-that-no-span-may-hold"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
AGENT = """
from opentelemetry import trace
from osmosis_ai.agents.tools import execute_tool_calls
from osmosis_ai.rollout import RolloutAgentLoop

SCHEMA = {"type": "function", "function": {"name": "double", "description": "Doubles.",
          "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}}


class Agent(RolloutAgentLoop):
    name = "doubling"

    def get_tools(self, request):
        return [SCHEMA]

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        assert trace.get_current_span().name == "invoke_agent agent:agent_loop"
        answer = await ctx.chat(messages, temperature=0.5)
        messages.append(answer.message)

        async def double(tool_call):
            assert trace.get_current_span().name == "execute_tool double"
            return "42"

        messages += await execute_tool_calls(answer.tool_calls, double)
        messages.append((await ctx.chat(messages)).message)
        return ctx.complete(messages)


agent_loop = Agent()
"""
FLOW = """
import json
from urllib.request import Request, urlopen

from osmosis_ai.rollout import AgentWorkflow, get_rollout_context


class Flow(AgentWorkflow):
    async def run(self, ctx):
        here = get_rollout_context()
        body = json.dumps({"model": "x", "messages": ctx.prompt}).encode()
        headers = {"Authorization": f"Bearer {here.api_key}", "Content-Type": "application/json"}
        with urlopen(Request(f"{here.chat_completions_url}/chat/completions", body, headers)) as r:
            message = json.load(r)["choices"][0]["message"]
        return [*ctx.prompt, message]
"""


class Collector:
    """Takes spans over HTTP; `spans` has all of them, as mappings."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[dict[str, Any]] = []
        self.services: set[str] = set()
        self.raw = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if status == 200 and self.path == "/v1/traces":
                    outer.take(body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, body: bytes) -> None:
        self.raw += body
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            self.services |= {
                each.value.string_value
                for each in resource.resource.attributes
                if each.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += map(as_mapping, scope.spans)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def named(self, beginning: str) -> list[dict[str, Any]]:
        return [span for span in self.spans if span["name"].startswith(beginning)]


def values(attributes: Any) -> dict[str, Any]:
    found = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        if kind == "array_value":
            value = [item.string_value for item in value.values]
        found[each.key] = value
    return found


def as_mapping(span: Any) -> dict[str, Any]:
    events = {event.name: values(event.attributes) for event in span.events}
    return {
        "name": span.name, "trace": span.trace_id, "id": span.span_id,
        "parent": span.parent_span_id, "kind": span.kind, "status": span.status.code,
        "message": span.status.message, "events": events, **values(span.attributes),
        "ns": span.end_time_unix_nano - span.start_time_unix_nano,
    }  # fmt: skip


def asks_for_a_tool(ask: Ask) -> Any:
    if ask.messages[-1]["role"] == "tool":
        return completion(ask.messages[-1]["content"])
    function = {"name": "double", "arguments": '{"x": 21}'}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(asks_for_a_tool) as endpoint:
        yield endpoint


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    yield collector
    collector.close()


@pytest.fixture
def project(
    pytester: pytest.Pytester, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> Project:
    monkeypatch.setenv("PYTEST_ADDOPTS", NO_NEIGHBOURS)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project = Project(pytester, endpoint)
    project.write("agent.py", AGENT)
    project.rows({"user_prompt": f"Twice 21, {KEY}?", "ground_truth": "42"}, "other")
    return project


@each_mode
def test_a_rollout_is_a_trace_of_its_calls_tools_and_scores(
    project: Project, collector: Collector, workers: int
):
    session = project.run("--osmosis-otel", "--n=2", "--batch-size=2", workers=workers)
    assert session.outcomes == {"passed": 2, "failed": 2} and "not sent" not in session.out
    assert collector.services == {"pytest-osmosis"} and len(collector.spans) == 4 * 5
    rollouts = collector.named("invoke_agent agent:agent_loop")
    assert len({span["trace"] for span in rollouts}) == 4
    assert sorted((s["osmosis.row_index"], s["osmosis.run_index"]) for s in rollouts) == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    for rollout in rollouts:
        passed = rollout["osmosis.row_index"] == 0
        assert rollout["gen_ai.operation.name"] == "invoke_agent" and not rollout["parent"]
        assert rollout["osmosis.score.rewards:exact"] == passed
        children = [span for span in collector.spans if span["parent"] == rollout["id"]]
        assert {span["trace"] for span in children} == {rollout["trace"]}
        assert [span["name"] for span in sorted(children, key=lambda span: span["name"])] == [
            "chat m", "chat m", "evaluate rewards:exact", "execute_tool double",
        ]  # fmt: skip
        by_name = {span["name"]: span for span in children}
        assert by_name["execute_tool double"]["gen_ai.tool.call.id"] == "call_1"
        event = by_name["evaluate rewards:exact"]["events"]["gen_ai.evaluation.result"]
        assert event["gen_ai.evaluation.score.value"] == passed
        assert event["gen_ai.evaluation.score.label"] == ("pass" if passed else "fail")
    chats = collector.named("chat")
    host, port = project.endpoint.netloc.split(":")
    for chat in chats:
        assert (chat["server.address"], chat["server.port"]) == (host, int(port))
        assert chat["gen_ai.provider.name"] == "openai" and chat["gen_ai.request.model"] == "m"
        assert chat["gen_ai.usage.input_tokens"] == 10 and chat["kind"] == 3 and chat["ns"] > 0
    assert {chat.get("gen_ai.request.temperature") for chat in chats} == {0.5, None}
    assert b"Twice" not in collector.raw and KEY.encode() not in collector.raw


def test_contents_go_along_only_where_they_are_wanted_and_without_keys(
    project: Project, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(CAPTURE, "true")
    project.run("--osmosis-otel", "--osmosis-rows=0")
    first, last = sorted(collector.named("chat"), key=lambda span: len(span[INPUT]))
    assert json.loads(first[INPUT]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Answer."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Twice 21, ***?"}]},
    ]
    assert json.loads(last[INPUT])[2:] == [
        {"role": "assistant", "parts": [
            {"type": "tool_call", "id": "call_1", "name": "double", "arguments": '{"x": 21}'}]},
        {"role": "tool", "parts": [
            {"type": "tool_call_response", "id": "call_1", "response": "42"}]},
    ]  # fmt: skip
    [said] = json.loads(last["gen_ai.output.messages"])
    assert said["parts"] == [{"type": "text", "content": "42"}] and said["finish_reason"] == "stop"
    [tool] = collector.named("execute_tool")
    assert tool["gen_ai.tool.call.arguments"] == '{"x": 21}'
    assert tool["gen_ai.tool.call.result"] == "42"
    assert KEY.encode() not in collector.raw


INPUT = "gen_ai.input.messages"


def test_calls_at_the_bridge_belong_to_their_rollout(
    project: Project, collector: Collector, endpoint: Endpoint
):
    endpoint.answers = None
    project.write("flow.py", FLOW)
    session = project.run("--osmosis-otel", "--batch-size=2", "-n0", agent="flow:Flow")
    assert session.ret in (0, 1)
    rollouts = {span["id"]: span for span in collector.named("invoke_agent")}
    chats = collector.named("chat")
    assert len(rollouts) == len({rollouts[chat["parent"]]["trace"] for chat in chats}) == 2


OWN_SPANS = """
from opentelemetry import trace

tracer = trace.get_tracer("mine")


def agent(question):
    with tracer.start_as_current_span("search"):
        return "42"
"""
OWN_PROVIDER = """
import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider(resource=Resource({"service.name": "mine"}))
exporter = OTLPSpanExporter(endpoint=os.environ["MINE"])
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
trace.set_tracer_provider(provider)
"""


@pytest.mark.parametrize("own", [False, True])
def test_spans_of_the_users_code_are_children_and_a_provider_that_is_set_is_used(
    project: Project, collector: Collector, monkeypatch: pytest.MonkeyPatch, own: bool
):
    project.rows({"user_prompt": "?", "ground_truth": "42"})
    project.write("agent.py", (OWN_PROVIDER if own else "") + OWN_SPANS)
    given: dict[str, Any] = {"agent": "agent:agent", "model": None, "base_url": None}
    if own:
        monkeypatch.setenv("MINE", f"{collector.url}/v1/traces")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    session = project.apart(*project.options("-n0", "--osmosis-otel", **given))
    assert session.outcomes == {"passed": 1}, session.out
    by_name = {span["name"]: span for span in collector.spans}
    rollout, inner = by_name["invoke_agent agent:agent"], by_name["search"]
    assert (inner["trace"], inner["parent"]) == (rollout["trace"], rollout["id"])
    assert collector.services == {"mine" if own else "pytest-osmosis"}
    assert "were not sent" not in session.out + session.err


def test_what_failed_is_an_error_with_its_kind(
    project: Project, collector: Collector, endpoint: Endpoint
):
    endpoint.answers = lambda ask: b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"
    project.run("--osmosis-otel", "--osmosis-rows=0")
    [chat], [rollout] = collector.named("chat"), collector.named("invoke_agent")
    assert (chat["status"], chat["error.type"]) == (2, "bad_request")
    assert (rollout["status"], rollout["error.type"]) == (2, "agent")
    assert "400 from" in rollout["message"]


@pytest.mark.fault("the collector of traces is away, slow, or refuses spans")
@pytest.mark.parametrize("kind", ["away", "refuses"])
def test_a_collector_that_takes_nothing_costs_spans_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, kind: str
):
    refusing = Collector(status=400)
    refusing.close() if kind == "away" else None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    session = project.run("--osmosis-otel", "--osmosis-rows=0")
    assert session.outcomes == {"passed": 1} and "spans were not sent" in session.out
    assert "Traceback" not in session.out + session.err
