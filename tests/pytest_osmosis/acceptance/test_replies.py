"""Replies that are no usual answers, by every way in which the model is called.

The same rows at a base URL, through LiteLLM, and behind the bridge for a client of OpenAI's and one
of Anthropic's dialect: what each run scores, whose fault it is, and what is said of it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from osmosis_ai.models.litellm.library import load
from tests.support.endpoints import Ask, Endpoint, completion, error_reply, reply, tool_call
from tests.support.project import Project, Session

KEY = "sk-provider/0123456789+abcdef"
FLOW = '''
import asyncio
import json
from urllib.parse import urlsplit

from osmosis_ai.rollout import AgentWorkflow, get_rollout_context


async def asked(route, body):
    """One call of the bridge by a client without a library."""
    here = get_rollout_context()
    url = urlsplit(here.chat_completions_url)
    text = json.dumps({"model": "mine", **body})
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write((
        f"POST {url.path}{route} HTTP/1.1\\r\\nHost: {url.netloc}\\r\\n"
        f"Authorization: Bearer {here.api_key}\\r\\n"
        f"Content-Length: {len(text)}\\r\\nConnection: close\\r\\n\\r\\n{text}"
    ).encode())
    reply = await reader.read()
    writer.close()
    status, found = int(reply.split()[1]), json.loads(reply.partition(b"\\r\\n\\r\\n")[2])
    if status != 200:
        raise OSError(f"{status}: {found}")
    return found


class OpenAI(AgentWorkflow):
    async def run(self, ctx):
        found = await asked("/chat/completions", {"messages": ctx.prompt})
        return [*ctx.prompt, found["choices"][0]["message"]]


class Anthropic(AgentWorkflow):
    async def run(self, ctx):
        messages = [each for each in ctx.prompt if each["role"] != "system"]
        found = await asked("/messages", {"messages": messages, "max_tokens": 9})
        text = "".join(block.get("text", "") for block in found["content"])
        return [*ctx.prompt, {"role": "assistant", "content": text}]
'''
WAYS: dict[str, dict[str, str | None]] = {
    "base URL": {},
    "LiteLLM": {"base_url": None, "model": "openai/m"},
    "bridge": {"agent": "flow:OpenAI"},
    "bridge, Anthropic": {"agent": "flow:Anthropic"},
}
each_way = pytest.mark.parametrize("way", WAYS)


def broken(**choice: Any) -> bytes:
    body = completion("partial 4")
    body["choices"][0] |= choice
    return reply(200, body)


def counted(content: str, **usage: Any) -> bytes:
    return reply(200, completion(content, usage=usage))


UPSTREAM = {"code": 502, "message": "upstream failed"}
FLAGGED = {"error": {"code": 403, "message": "Your input was flagged", "metadata": {}}}
BLIND = "No endpoints found that support image input"
LIMIT = error_reply(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
    code="unsupported_parameter",
)

WEIRD = "weird" * 500
ANSWERS: dict[str, tuple[Any, dict[str, Any]]] = {
    # row: the reply, and what is reported of its run
    "usual": (counted("usual", prompt_tokens=1, completion_tokens=1), {"answer_kind": None}),
    "refused": (
        completion({"role": "assistant", "content": None, "refusal": "I cannot help with that."}),
        {"answer_kind": "refused", "answer": ""},
    ),
    "withheld": (broken(finish_reason="content_filter"), {"answer_kind": "filtered"}),
    "cut": (broken(finish_reason="length"), {"answer_kind": "cut"}),
    "empty": (completion(""), {"answer_kind": "empty"}),
    "no call": (
        completion({"role": "assistant", "content": None}, finish_reason="tool_calls"),
        {"answer_kind": "no tool call"},
    ),
    "weird": (broken(finish_reason=WEIRD), {"answer_kind": None, "finish_reason": WEIRD}),
    "thoughts apart": (
        counted("4", prompt_tokens=100, completion_tokens=10, total_tokens=1110,
                completion_tokens_details={"reasoning_tokens": 1000}),
        {"tokens": 1110, "completion_tokens": 1010, "reasoning_tokens": 1000, "cost_usd": 1.0101},
    ),
    "cached": (
        counted("4", prompt_tokens=1_000_000, completion_tokens=0, total_tokens=1_000_000,
                prompt_tokens_details={"cached_tokens": 900_000}),
        {"cached_tokens": 900_000, "cost_usd": pytest.approx(0.19)},
    ),
}  # fmt: skip
SUMMARY = [
    "1 answer was a refusal",
    "1 answer was withheld by a content filter",
    "1 answer was cut by length",
    "1 answer was empty",
    "1 answer ended for a tool call and has none",
    f"1 answer ended in '{WEIRD[:39]}…', an unknown finish reason",
]


@pytest.fixture(scope="module", autouse=True)
def litellm() -> None:
    """LiteLLM as it stays in this process: pytester forgets what is imported after it has begun."""
    load()


@pytest.fixture
def asked(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose endpoint is LiteLLM's provider too."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_BASE", project.endpoint.base_url)
    project.write("flow.py", FLOW)
    return project


def run(project: Project, way: str, *more: str, **replaced: str | None) -> Session:
    return project.run("--batch-size=4", *more, **{**WAYS[way], **replaced})


def by_row(session: Session, names: Any) -> dict[str, dict[str, Any]]:
    return dict(zip(names, session.runs, strict=True))


@pytest.mark.fault("a 200 holds an error")
@each_way
def test_a_failure_inside_a_200_is_tried_again_and_never_scored(asked: Project, way: str):
    failures = {
        "in its choice": broken(error=UPSTREAM, finish_reason="error"),
        "in its choice, as a usual end": broken(error=UPSTREAM),
        "in its finish reason": broken(finish_reason="error"),
        "aborted": broken(finish_reason="abort"),
    }

    def answers(ask: Ask) -> Any:
        return ask.row if ask.attempt > 1 else [failures[ask.row]]

    asked.endpoint.answers = answers
    asked.rows(*failures)
    session = run(asked, way)
    assert session.outcomes == {"passed": len(failures)}, session.out
    assert [run["retries"] for run in session.runs] == [1] * len(failures)


@pytest.mark.fault("it refuses one request: moderation, a picture, too long a context, a schema")
@each_way
def test_a_refusal_of_one_request_is_that_runs_alone(asked: Project, way: str):
    refusals = {
        "a fight": (reply(403, FLAGGED), "Your input was flagged"),
        "a picture": (error_reply(404, BLIND, code=404), BLIND),
        "a choice": (broken(error={**UPSTREAM, "code": 403, "message": "flagged"}), "flagged"),
    }

    def answers(ask: Ask) -> Any:
        return [refusals[ask.row][0]] if ask.row in refusals else ask.row

    asked.endpoint.answers = answers
    asked.rows(*refusals, "a", "b")
    session = run(asked, way)
    runs = by_row(session, [*refusals, "a", "b"])
    for row, (_, words) in refusals.items():
        assert runs[row]["error_kind"] == "bad_request"
        assert words in runs[row]["error"]
        assert "key" not in runs[row]["error"]
        assert runs[row]["retries"] == 0
    assert runs["a"]["passed"]
    assert runs["b"]["passed"]
    assert "stopped" not in session.out


@pytest.mark.fault("an answer is empty", "the model refuses, or is cut short")
@each_way
def test_each_kind_of_answer_has_a_word_and_a_line_and_every_token_is_billed(
    asked: Project, way: str
):
    asked.endpoint.answers = lambda ask: (
        [found] if isinstance(found := ANSWERS[ask.row][0], bytes) else found
    )
    asked.rows(*ANSWERS)
    session = run(asked, way, "--osmosis-price-per-mtok=1,1000,0.1")
    runs = by_row(session, ANSWERS)
    for row, (_, expected) in ANSWERS.items():
        expected = {**expected, "cost_usd": expected.get("cost_usd", runs[row]["cost_usd"])}
        assert {name: runs[row][name] for name in expected} == expected, row
    said = " ".join(session.out.split())
    assert [line for line in SUMMARY if line not in said] == []
    assert "(of them 900,000 cached, 1,000 reasoning)" in said
    assert "below the threshold 1 (cut)" in said
    assert "(refusal) I cannot help with that." in session.out or "Anthropic" in way
    summary = session.report["summary"]
    assert (summary["cached_tokens"], summary["reasoning_tokens"]) == (900_000, 1000)
    assert summary["answer_kinds"]["empty"] == 1


@each_way
def test_a_budget_counts_every_token(asked: Project, way: str):
    asked.endpoint.answers = lambda ask: [ANSWERS["thoughts apart"][0]]
    asked.rows(*"abcdefgh")
    more = ("--osmosis-price-per-mtok=1,1000", "--osmosis-max-cost=2")
    session = asked.run("--batch-size=1", *more, **WAYS[way])
    assert "the budget of $2 is spent" in session.out
    assert session.report["summary"]["cost_usd"] == pytest.approx(2.0202)


@pytest.mark.fault("it wants `max_completion_tokens`, or streams alone")
@pytest.mark.parametrize("way", [way for way in WAYS if way != "LiteLLM"])
def test_a_limit_is_sent_under_the_name_that_the_endpoint_wants(asked: Project, way: str):
    asked.endpoint.answers = lambda ask: [LIMIT] if "max_tokens" in ask.body else ask.row
    asked.rows(*"abcd")
    session = asked.run("--osmosis-max-tokens=50", **WAYS[way])
    assert session.outcomes == {"passed": 4}, session.out
    assert asked.endpoint.requests == 5
    assert asked.endpoint.seen[-1].body["max_completion_tokens"] in (50, 9)
    note = "max_tokens sent as max_completion_tokens (4 runs)"
    assert session.out.count(note) == 1
    assert session.report["summary"]["notes"] == {note.removesuffix(" (4 runs)"): 4}


def test_a_limit_is_sent_under_its_other_name_through_litellm(asked: Project):
    asked.endpoint.answers = lambda ask: [LIMIT] if "max_tokens" in ask.body else ask.row
    asked.rows(*"abcd")
    session = run(asked, "LiteLLM", "--osmosis-max-tokens=50")
    assert session.outcomes == {"passed": 4}, session.out
    assert asked.endpoint.seen[-1].body["max_completion_tokens"] == 50
    assert "max_tokens sent as max_completion_tokens (4 runs)" in session.out


CHUNKS = [
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "4"}}]},
    {"choices": [{"index": 0, "delta": {"content": "2"}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
]


@pytest.mark.fault("it wants `max_completion_tokens`, or streams alone")
def test_an_endpoint_that_only_streams_is_read(asked: Project):
    events = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"

    def answers(ask: Ask) -> Any:
        if not ask.body.get("stream"):
            return [error_reply(400, "stream must be true")]
        return [reply(200, events.encode(), headers={"Content-Type": "text/event-stream"})]

    asked.endpoint.answers = answers
    asked.rows({"user_prompt": "a", "ground_truth": "42"})
    session = asked.run()
    assert session.outcomes == {"passed": 1}, session.out
    assert session.runs[0]["tokens"] == 5
    assert "answers streamed: the endpoint gives no others (1 run)" in session.out


@pytest.mark.fault("a tool call is of an unknown tool, lacks an id or repeats one")
def test_a_call_with_null_as_arguments_is_one_without_any(asked: Project):
    asked.write(
        "clock.py",
        """
from osmosis_ai.rollout import RolloutAgentLoop, execute_tool_calls
from osmosis_ai.rollout import get_tool_call_info

TOOL = {"type": "function", "function": {"name": "now", "parameters": {
    "type": "object", "properties": {}}}}


class Agent(RolloutAgentLoop):
    name = "clock"

    def get_tools(self, request):
        return [TOOL]

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        answer = await ctx.chat(messages)
        messages.append(answer.message)
        messages += await execute_tool_calls(answer.tool_calls, self.now)
        return ctx.complete([*messages, {"role": "assistant", "content": messages[-1]["content"]}])

    def now(self, call):
        _, name, arguments = get_tool_call_info(call)
        return f"{name} {arguments}"


agent_loop = Agent()
""",
    )
    asked.endpoint.answers = lambda ask: completion(
        tool_call("now", None), finish_reason="tool_calls"
    )
    asked.rows({"user_prompt": "a", "ground_truth": "now {}"})
    session = asked.run(agent="clock:agent_loop")
    assert session.outcomes == {"passed": 1}, session.out


SENT = (
    '--osmosis-extra-body={"top_k": 20, "chat_template_kwargs": {"enable_thinking": false}}',
    "--osmosis-header=X-Team=evals",
    "--osmosis-header=Api-Key=$GATEWAY_KEY",
)
GATEWAY_KEY = "gk/0123456789+abcdef"


IN_BODY = "body/0123456789+secret"
BODY = {"data_sources": [{"type": "search", "parameters": {"authentication": {"key": IN_BODY}}}]}


@each_way
def test_further_fields_and_headers_go_with_each_call_and_no_key_is_shown(
    asked: Project, monkeypatch: pytest.MonkeyPatch, way: str
):
    monkeypatch.setenv("GATEWAY_KEY", GATEWAY_KEY)
    asked.endpoint.answers = lambda ask: (
        f"the keys are {ask.headers['api-key']} and {json.dumps(ask.body['data_sources'])}"
    )
    asked.rows("a")
    body = {"top_k": 20, "chat_template_kwargs": {"enable_thinking": False}, **BODY}
    options = (f"--osmosis-extra-body={json.dumps(body)}", *SENT[1:])
    session = run(asked, way, *options, "--osmosis-record=taped", "--osmosis-html=out.html")
    (seen,) = asked.endpoint.seen
    assert {name: seen.body[name] for name in body} == body
    assert "extra_body" not in seen.body
    assert (seen.headers["x-team"], seen.headers["api-key"]) == ("evals", GATEWAY_KEY)
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert session.runs[0]["answer"].startswith("the keys are *** and ")
    settings = session.report["config"]["settings"]
    assert settings["headers"][1] == "Api-Key=$GATEWAY_KEY"
    hidden = {"type": "search", "parameters": {"authentication": {"key": "***"}}}
    assert settings["extra_body"] == {**body, "data_sources": [hidden]}
    assert session.leaks(GATEWAY_KEY, IN_BODY, '"evals"') == []


def test_what_holds_a_key_goes_to_no_other_endpoint(
    asked: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GATEWAY_KEY", GATEWAY_KEY)
    asked.rows("a")
    body = {**BODY, "top_k": 20}
    with Endpoint() as other:
        other.answers = lambda ask: ask.row
        compare = ("--osmosis-baseline-model=b", f"--osmosis-baseline-base-url={other.base_url}")
        asked.run(*SENT[1:], f"--osmosis-extra-body={json.dumps(body)}", *compare)
        (seen,) = other.seen
    assert (seen.body["top_k"], seen.headers["x-team"]) == (20, "evals")
    assert "data_sources" not in seen.body
    assert "api-key" not in seen.headers
    assert "data_sources" in asked.endpoint.seen[0].body


def test_a_change_of_what_is_sent_starts_another_evaluation(
    asked: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GATEWAY_KEY", GATEWAY_KEY)
    down = error_reply(500, "down", headers={"x-should-retry": "false"})
    asked.endpoint.answers = lambda ask: [down] if ask.row == "b" else ask.row
    asked.rows("a", "b")
    asked.run(*SENT)
    monkeypatch.setenv("GATEWAY_KEY", "another-key-of-the-same-gateway")
    assert asked.run(*SENT).report["summary"]["cached"] == 1
    refused = asked.run(*SENT[1:], "--osmosis-resume")
    assert "extra_body was" in refused.err.replace("extra body", "extra_body")
    assert refused.ret == 4


def test_a_query_of_the_base_url_goes_with_each_call_and_its_keys_are_masked(
    asked: Project,
):
    asked.endpoint.answers = lambda ask: [error_reply(400, f"no: {ask.path}", code="wrong")]
    asked.rows("a")
    secret = "q-0123456789abcdef"
    url = f"{asked.endpoint.base_url}?api-version=2024-06-01&code={secret}"
    session = asked.run(base_url=url)
    assert "no: /v1/chat/completions?api-version=2024-06-01&code=***" in session.runs[0]["error"]
    assert asked.endpoint.seen[0].path == (
        f"/v1/chat/completions?api-version=2024-06-01&code={secret}"
    )
    assert session.report["config"]["settings"]["query"] == "api-version=2024-06-01&code=***"
    assert session.leaks(secret) == []


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("header=X-Team", "--osmosis-header X-Team: expected NAME=VALUE"),
        ("header=Authorization=Bearer sk-1234567890", "the header Authorization holds the key"),
        ("header=Content-Type=text/plain", "is set by the request itself"),
        ("header=X-Auth=Bearer $TOKEN", "such as $GATEWAY_KEY, must be the whole value"),
        ("header=X-Key=$NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set"),
        ("extra-body=[1]", "expected a JSON object, such as"),
        ("extra-body={", "expected a JSON object, such as"),
        ('extra-body={"a": NaN}', "expected a JSON object, such as"),
        ('extra-body={"messages": []}', "'messages' of a request cannot be set"),
        ("price-per-mtok=1", "expected IN,OUT or IN,OUT,CACHED"),
        ("price-per-mtok=1,2,-1", "expected IN,OUT or IN,OUT,CACHED"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_one_sentence(asked: Project, option: str, said: str):
    asked.rows("a")
    session = asked.run(f"--osmosis-{option}")
    assert session.ret == 4
    assert said in session.mistake
    assert "sk-1234567890" not in session.out + session.err
    assert asked.endpoint.requests == 0


HALF = """
def answer(question):
    if question == "raise":
        raise ValueError("half \\ud83d")
    return [{"role": "assistant", "content": "ok \\ud83d", "sure\\udc00": ["\\udfff"]}]


def inside(question):
    said = [{"role": "assistant", "content": "half \\ud83d"}, {"role": "user", "content": "so?"}]
    return [*said, {"role": "assistant", "content": "pair \\U0001f600"}]


def judged(solution_str, ground_truth, extra_info):
    return {"score": 1.0, "reason": "half \\udc00"}


def broken(solution_str, ground_truth, extra_info):
    raise ValueError("half \\udfff")
"""
FILES = ("--osmosis-html=out.html", "--osmosis-markdown=out.md", "--osmosis-runs-table=out.csv")


def without_halves(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, as strict parsers read it."""
    for name, value in pairs:
        json.dumps([name, value], ensure_ascii=False).encode("utf-8")
    return dict(pairs)


@pytest.mark.fault("an answer holds half characters or control characters")
@pytest.mark.parametrize(
    ("agent", "rows"), [("half:answer", ["a", "raise"]), ("half:inside", ["a"])]
)
def test_half_a_character_is_written_as_a_whole_one_in_every_file(
    asked: Project, agent: str, rows: list[str]
):
    asked.write("half.py", HALF)
    asked.rows(*rows)
    more = ("--eval-fn=half:broken", "--junitxml=out.xml")
    session = asked.run(*FILES, *more, agent=agent, eval_fn="half:judged", model=None,
                        base_url=None)  # fmt: skip
    for path in asked.path.rglob("*.json*"):
        for line in (
            path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        ):
            json.loads(line, object_pairs_hook=without_halves)
    for name in ("out.html", "out.md", "out.xml"):
        (asked.path / name).read_bytes().decode("utf-8")
    assert session.out.count("text that is not valid Unicode, written with U+FFFD") == 1
    assert session.report["summary"]["notes"]
    if agent == "half:answer":
        assert session.runs[0]["answer"] == "ok \ufffd"
        assert session.runs[0]["reasons"]["half:judged"] == "half \ufffd"
        assert session.runs[1]["error"] == "ValueError: half \ufffd"


@each_way
def test_half_a_character_of_the_endpoint_is_a_whole_one_and_counted(asked: Project, way: str):
    asked.endpoint.answers = lambda ask: "ok \ud83d"
    asked.rows("a", "b")
    session = run(asked, way)
    assert [run["answer"] for run in session.runs] == ["ok \ufffd"] * 2
    assert "text that is not valid Unicode, written with U+FFFD (2 runs)" in session.out
