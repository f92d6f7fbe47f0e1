"""Models by their LiteLLM name, against endpoints on loopback: request shapes, faults, prices."""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from osmosis_ai import providers
from osmosis_ai.models.base import ChatCompletion, Usage
from osmosis_ai.models.errors import ProviderError
from osmosis_ai.models.litellm.library import has_price, load, price_of
from osmosis_ai.models.litellm.model import LiteLLMModel
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.secret import Secret
from tests.support.endpoints import (
    Ask,
    Endpoint,
    Step,
    completion,
    refusing_address,
    reply,
    tool_call,
)

KEY = "sk-provider-0123456789abcdef"
TOKEN = "token-of-a-cloud-0123456789abcdef"
QUICK = RetryPolicy(max_tries=3, base_s=0.01, cap_s=0.02)
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What is 6 x 7?"}
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
TOOL = {
    "type": "function",
    "function": {"name": "multiply", "description": "a times b", "parameters": PARAMETERS},
}


class Provider(Endpoint):
    """An endpoint that gives one reply whatever the path, for APIs unlike OpenAI's."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.body = body

    def steps(self, ask: Ask) -> Iterable[Step]:
        return [reply(200, self.body)]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint({"What is 6 x 7?": "42"}) as running:
        yield running


async def acomplete(
    model: str,
    base: str | None,
    *,
    tools: list[dict[str, Any]] | None = None,
    params: dict[str, Any] | None = None,
    messages: list[dict[str, Any]] | None = None,
    **options: Any,
) -> ChatCompletion:
    options = {"api_key": Secret(KEY, "SOME_API_KEY"), "request_timeout_s": 10.0, **options}
    opened = LiteLLMModel(model=model, api_base=base, retry=QUICK, **options)
    try:
        asked = messages or [SYSTEM, USER]
        return await opened.complete(asked, tools=tools, params=params or {})
    finally:
        await opened.aclose()


def complete(model: str, base: str | None, **options: Any) -> ChatCompletion:
    return asyncio.run(acomplete(model, base, **options))


def failure(model: str, base: str | None, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        complete(model, base, **options)
    error = caught.value
    assert KEY not in str(error) + repr(error) + error.detail
    assert error.__cause__ is None and error.__context__ is None
    return error


# Request shapes. What each provider answers, and what must have been asked.

CHAT_REPLY = completion("42", model="some-model")
CHAT_CALL = completion(tool_call("multiply", '{"a": 6, "b": 7}'), finish_reason="tool_calls")
CLAUDE_REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "42"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
CLAUDE_CALL = {
    **CLAUDE_REPLY,
    "content": [
        {"type": "tool_use", "id": "call_1", "name": "multiply", "input": {"a": 6, "b": 7}}
    ],
    "stop_reason": "tool_use",
}
GEMINI_REPLY = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "42"}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    "modelVersion": "gemini-2.5-flash",
}
GEMINI_CALL = copy.deepcopy(GEMINI_REPLY)
GEMINI_CALL["candidates"][0]["content"]["parts"] = [  # type: ignore[index]
    {"functionCall": {"name": "multiply", "args": {"a": 6, "b": 7}}}
]
OLLAMA_REPLY = {
    "model": "llama3",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "42"},
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 10,
    "eval_count": 5,
}
OLLAMA_CALL = {
    **OLLAMA_REPLY,
    "message": {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "multiply", "arguments": {"a": 6, "b": 7}}}],
    },
}


def chat_parts(body: dict[str, Any]) -> Any:
    return body["messages"][0], body["tools"][0]["function"]["parameters"]


class Dialect(NamedTuple):
    """An answer of an API, one with a tool call, and what a request must have had."""

    answer: dict[str, Any]
    call: dict[str, Any]
    parts: Callable[[dict[str, Any]], Any]
    """The system message and the parameters of the tool."""


CHAT = Dialect(CHAT_REPLY, CHAT_CALL, chat_parts)
CLAUDE = Dialect(
    CLAUDE_REPLY,
    CLAUDE_CALL,
    lambda body: (
        {"role": "system", "content": body["system"][0]["text"]},
        body["tools"][0]["input_schema"],
    ),
)
GEMINI = Dialect(
    GEMINI_REPLY,
    GEMINI_CALL,
    lambda body: (
        {"role": "system", "content": body["system_instruction"]["parts"][0]["text"]},
        body["tools"][0]["function_declarations"][0]["parameters"],
    ),
)
OLLAMA = Dialect(
    OLLAMA_REPLY,
    OLLAMA_CALL,
    lambda body: (
        {key: body["messages"][0][key] for key in ("role", "content")},
        body["tools"][0]["function"]["parameters"],
    ),
)
AZURE = "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
Shape = tuple[str, str, Dialect, str, str]
SHAPES: list[Shape] = [
    ("openai/gpt-4o-mini", "/v1", CHAT, "/v1/chat/completions", "authorization"),
    ("anthropic/claude-sonnet-4-5", "", CLAUDE, "/v1/messages", "x-api-key"),
    ("gemini/gemini-2.5-flash", "", GEMINI, "/models/gemini-2.5-flash:generateContent",
     "x-goog-api-key"),
    ("openrouter/meta/llama-3", "/api/v1", CHAT, "/api/v1/chat/completions", "authorization"),
    ("ollama/llama3", "", OLLAMA, "/api/chat", "authorization"),
    ("azure/my-deployment", "", CHAT, AZURE, "api-key"),
]  # fmt: skip
NAMES = [shape[0].partition("/")[0] for shape in SHAPES]


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_each_provider_is_asked_and_read_in_its_own_way_tool_calls_too(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
):
    model, path, (answer, call, parts), wanted, header = shape
    monkeypatch.setenv("AZURE_API_VERSION", "2024-10-21")
    with Provider(answer) as provider:
        base = provider.base_url.removesuffix("/v1") + path
        found = complete(model, base, tools=[TOOL], params={"temperature": 0.5})
        [ask] = provider.seen
        provider.body = call
        called = complete(model, base, tools=[TOOL]).message
        [made] = called["tool_calls"]
        provider.body = answer
        result = {"role": "tool", "tool_call_id": made["id"], "content": "42"}
        history = [SYSTEM, USER, called, result]
        last = complete(model, base, tools=[TOOL], messages=history)
    assert ask.path == wanted
    assert ask.headers[header].removeprefix("Bearer ") == KEY
    system, parameters = parts(ask.body)
    assert system == SYSTEM
    assert parameters["required"] == ["a", "b"]
    assert "0.5" in ask.raw.decode()
    assert found.message["content"] == "42"
    assert found.finish_reason == "stop"
    usage = found.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (10, 5, 15)
    assert (found.retries, found.latency_ms > 0) == (0, True)
    assert made["function"]["name"] == "multiply"
    assert made["function"]["arguments"].replace(" ", "") == '{"a":6,"b":7}'
    assert last.message["content"] == "42"


@pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
def test_what_an_agent_sends_is_for_the_model_and_not_for_litellm(shape: Shape):
    model, path, (answer, *_), _, header = shape
    with Endpoint("fake") as elsewhere, Provider(answer) as provider:
        other = {
            "model": "openai/m",
            "api_base": elsewhere.base_url,
            "base_url": elsewhere.base_url,
        }
        params = {
            **other,
            "api_key": "sk-of-the-agent",
            "custom_llm_provider": "openai",
            "extra_headers": {"X-From": "the agent"},
            "fallbacks": [other],
            "mock_response": "fake",
            "repetition_penalty": 1.5,
        }
        del params["model"]
        base = provider.base_url.removesuffix("/v1") + path
        found = complete(model, base, params=params)
        assert (elsewhere.requests, provider.requests) == (0, 1)
        ask = provider.seen[0]
    assert found.message["content"] == "42"
    assert ask.headers[header].removeprefix("Bearer ") == KEY
    assert "x-from" not in ask.headers
    if answer is CHAT_REPLY:
        assert ask.body["repetition_penalty"] == 1.5


class WithImage(Provider):
    """Also serves an image, at the second of two addresses."""

    def steps(self, ask: Ask) -> Iterable[Step]:
        if ask.method == "POST":
            return [reply(200, self.body)]
        self.fetched = [*getattr(self, "fetched", []), ask]
        if ask.path == "/old.png":
            return [reply(302, b"", headers={"Location": "/new.png"})]
        return [reply(200, b"\x89PNG...", headers={"Content-Type": "image/png"})]


def with_image(url: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]


def test_an_image_that_litellm_fetches_or_not_is_no_answer_of_the_provider(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(load(), "user_url_allowed_hosts", ["localhost", "127.0.0.1"])
    with WithImage(GEMINI_REPLY) as provider, refusing_address() as netloc:
        model, base = "gemini/gemini-2.5-flash", provider.base_url[:-3]
        asked = with_image(f"http://localhost:{provider.netloc.partition(':')[2]}/old.png")
        found = complete(model, base, messages=asked)
        error = failure(model, base, messages=with_image(f"http://{netloc}/a.png"))
    assert (found.message["content"], found.retries) == ("42", 0)
    assert [ask.path for ask in provider.fetched] == ["/old.png", "/new.png"]
    assert all(ask.headers["host"].startswith("localhost") for ask in provider.fetched)
    assert not any(KEY in str(ask.headers) for ask in provider.fetched)
    assert b"iVBORy4uLg" in provider.seen[-1].raw
    assert (error.kind, error.tries, error.status, error.fatal) == ("bad_request", 1, None, False)
    assert "LiteLLM sent no request: no answer from 127.0.0.1" in str(error)
    assert f"Unable to fetch image from URL after 3 attempts. url=http://{netloc}" in str(error)


def test_a_bare_name_is_a_model_of_openai_and_the_key_comes_from_the_providers_variable(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    opened = LiteLLMModel(model="gpt-x", api_base=endpoint.base_url)
    assert (opened.name, opened.endpoint) == ("openai/gpt-x", endpoint.netloc)
    assert complete("gpt-x", endpoint.base_url).message["content"] == "42"
    assert endpoint.seen[0].model == "gpt-x"
    monkeypatch.setenv("XAI_API_KEY", "xai-0123456789")
    complete("xai/grok-4", endpoint.base_url, api_key=None)
    assert endpoint.last_headers["authorization"] == "Bearer xai-0123456789"
    hiding = LiteLLMModel(
        model="openai/m", api_base="http://me:pw@host:1/v1?k=1", api_key=Secret(KEY)
    )
    assert hiding.endpoint == "host:1"
    assert KEY not in repr(hiding) and "pw" not in repr(hiding)


def test_no_answer_comes_from_a_cache_that_the_users_code_gives_litellm(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    from litellm.caching.caching import Cache

    for name in ("input_callback", "success_callback", "_async_success_callback"):
        monkeypatch.setattr(load(), name, [])  # a cache adds itself to them
    monkeypatch.setattr(load(), "cache", Cache())
    for _ in range(2):
        assert complete("openai/m", endpoint.base_url).message["content"] == "42"
    assert endpoint.requests == 2
    assert "cache" not in endpoint.seen[-1].body


# Prices.


def test_a_known_price_is_given_and_an_unknown_one_is_not_zero(endpoint: Endpoint):
    known = complete("openai/gpt-4o-mini", endpoint.base_url).cost_usd
    assert known == pytest.approx(10 * 0.15e-6 + 5 * 0.60e-6)
    assert complete("openai/my-own", endpoint.base_url).cost_usd is None
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 1110}
    endpoint.answers = lambda ask: [reply(200, completion("42", usage=usage, model="gpt-4o-mini"))]
    apart = complete("openai/gpt-4o-mini", endpoint.base_url).cost_usd
    assert apart == pytest.approx(100 * 0.15e-6 + 1010 * 0.60e-6)
    half_cached = Usage(100, 10, 110, cached_tokens=100)
    assert price_of("openai/gpt-5-mini", half_cached) == pytest.approx(100 * 0.025e-6 + 10 * 2e-6)
    with Provider(OLLAMA_REPLY) as provider:
        assert complete("ollama/llama3", provider.base_url[:-3]).cost_usd is None
    assert has_price("openai/gpt-5-mini")
    assert not has_price("openai/no-such-model")
    assert not has_price("ollama/llama3"), "0 is what it has for local models"


def test_cached_tokens_are_read_in_every_providers_way_and_unknown_usage_has_no_price(
    endpoint: Endpoint,
):
    usage = {"input_tokens": 2, "cache_read_input_tokens": 8, "output_tokens": 5}
    with Provider({**CLAUDE_REPLY, "usage": usage}) as provider:
        found = complete("anthropic/claude-sonnet-4-5", provider.base_url[:-3])
        provider.body["usage"] = {"input_tokens": 0, "output_tokens": 0}
        silent = complete("anthropic/claude-sonnet-4-5", provider.base_url[:-3])
    assert (found.usage.prompt_tokens, found.usage.cached_tokens) == (10, 8)
    assert (found.usage.completion_tokens, found.usage.total_tokens) == (5, 15)
    assert found.usage.details["prompt_tokens_details"]["cached_tokens"] == 8
    for unknown in (silent, complete("openai/fault-usage-absent", endpoint.base_url)):
        assert (unknown.usage, unknown.cost_usd) == (Usage(), None)


# Faults: what went wrong is read off the wire.


@pytest.mark.parametrize(
    ("model", "retries", "content"),
    [
        ("fault-429-once", 1, None),
        ("fault-500-twice", 2, None),
        ("fault-reset-before-once", 1, None),
        ("fault-html-once", 1, None),
        ("fault-content-parts", 0, "The answer is 42"),
        ("fault-surrogate", 0, "lone \ufffd and paired 😀"),
    ],
)
def test_what_passes_is_tried_again(
    endpoint: Endpoint, model: str, retries: int, content: str | None
):
    found = complete(f"openai/{model}", endpoint.base_url)
    assert found.retries == retries
    assert endpoint.requests == retries + 1
    assert found.message["content"] == (content or "42")


@pytest.mark.parametrize(
    ("model", "kind", "tries", "said"),
    [
        ("fault-401", "auth", 1, "the key in SOME_API_KEY was refused"),
        ("fault-model-not-found", "model_not_found", 1, "is not known at 127.0.0.1"),
        ("fault-quota", "quota", 1, "no quota left"),
        ("fault-400", "bad_request", 1, "maximum context length"),
        ("fault-429-retry-after-99999", "rate_limited", 1, "asked to wait 27 h"),
        ("fault-503", "overloaded", 3, "503 from 127.0.0.1"),
        ("fault-silent", "timeout", 2, "no whole answer"),
        ("fault-nested", "protocol", 2, "nested too deeply"),
        ("fault-stream", "protocol", 1, "streamed although not asked"),
        ("fault-gzip-bomb", "too_large", 1, "over 32 of 32 MiB"),
        ("fault-redirect-307", "redirect", 1, "set the base URL"),
    ],
)
def test_what_does_not_pass_is_one_error_of_ours(
    endpoint: Endpoint, model: str, kind: str, tries: int, said: str
):
    patience_s = 0.3 if kind == "timeout" else 10.0
    error = failure(f"openai/{model}", endpoint.base_url, request_timeout_s=patience_s)
    assert (error.kind, error.tries) == (kind, tries)
    assert endpoint.requests == tries
    assert error.fatal is (kind in ("auth", "model_not_found", "quota"))
    assert said in str(error)
    assert error.endpoint == endpoint.netloc


def test_keys_that_the_provider_quotes_are_masked_also_those_that_litellm_finds_by_itself(
    monkeypatch: pytest.MonkeyPatch,
):
    def quoting(ask: Ask) -> list[Step]:
        return [reply(403, {"error": {"message": f"no: {ask.headers['authorization']}"}})]

    monkeypatch.setenv("HOSTED_VLLM_API_KEY", KEY)
    with Endpoint(quoting) as endpoint:
        for error in (
            failure("openai/m", endpoint.base_url),
            failure("hosted_vllm/m", endpoint.base_url, api_key=None),
        ):
            assert "no: Bearer ***" in str(error)


class Cloud(Provider):
    """A provider that gives out tokens for credentials, and answers with what it was sent."""

    def __init__(self, status: int = 200) -> None:
        super().__init__({})
        self.status = status

    def steps(self, ask: Ask) -> Iterable[Step]:
        if ask.path.startswith("/token"):
            given = {"access_token": TOKEN, "expires_in": 3600, "expiration": 4_000_000_000}
            return [reply(self.status, given if self.status == 200 else {"error": "who?"})]
        return [reply(403, {"error": {"message": f"no: {ask.headers['authorization']}"}})]


def test_the_giver_of_tokens_is_distinguished_from_the_model(
    monkeypatch: pytest.MonkeyPatch,
):
    def failed(cloud: str) -> ProviderError:
        """The key is another one for each, or LiteLLM keeps the token of the one before."""
        monkeypatch.setenv("WATSONX_API_KEY", f"{KEY}-{cloud}")
        monkeypatch.setenv("WATSONX_PROJECT_ID", "p")
        monkeypatch.setenv("WATSONX_IAM_URL", f"http://{cloud}/token")
        return failure("watsonx/m", f"http://{cloud}", api_key=None)

    with Cloud() as cloud:
        error = failed(cloud.netloc)  # a token that it gave is masked too
    assert (error.kind, error.status) == ("auth", 403)
    assert "no: Bearer ***" in str(error)
    with Cloud(status=400) as cloud:
        error = failed(cloud.netloc)
        assert cloud.requests == 1
    assert (error.kind, error.status, error.fatal) == ("auth", None, True)
    assert f"{cloud.netloc}: its credentials are missing, or were refused" in str(error)
    with refusing_address() as netloc:
        error = failed(netloc)
    assert (error.kind, error.tries, error.fatal) == ("unreachable", 3, False)


@pytest.mark.parametrize(
    ("name", "retryable", "kind"),
    [
        ("DefaultCredentialsError", False, "auth"),
        ("RefreshError", False, "auth"),
        ("RefreshError", True, "unreachable"),
        ("TransportError", False, "unreachable"),
    ],
)
def test_what_google_says_of_credentials_is_no_answer_of_the_model(
    monkeypatch: pytest.MonkeyPatch, name: str, retryable: bool, kind: str
):
    members = {"__module__": "google.auth.exceptions", "retryable": retryable}
    cause = type(name, (Exception,), members)("no credentials")

    async def refused(**arguments: Any) -> Any:
        error = load().APIConnectionError("no credentials", "vertex_ai", "m")
        raise error from cause

    monkeypatch.setattr(load(), "acompletion", refused)
    error = failure("vertex_ai/m", None, api_key=None)
    assert (error.kind, error.status) == (kind, None)


def test_a_redirect_of_another_api_never_takes_the_key_along():
    class Moved(Provider):
        def steps(self, ask: Ask) -> Iterable[Step]:
            return [reply(307, {}, headers={"Location": other.base_url})]

    with Provider(CLAUDE_REPLY) as other, Moved({}) as provider:
        error = failure("anthropic/claude-sonnet-4-5", provider.base_url[:-3])
        assert (error.kind, other.requests) == ("redirect", 0)


def test_nobody_there_is_reported_with_the_address():
    with refusing_address() as netloc:
        error = failure("openai/m", f"http://{netloc}/v1")
    assert (error.kind, error.tries) == ("unreachable", 3)
    assert f"cannot reach {error.endpoint} after 3 tries" in str(error)
    assert "connection refused" in str(error)


def test_the_total_deadline_ends_tries_and_pauses(endpoint: Endpoint):
    error = failure("openai/fault-429-retry-after-5", endpoint.base_url, total_timeout_s=1.0)
    assert (error.kind, endpoint.requests) == ("rate_limited", 1)


def test_what_litellm_itself_refuses_stops_every_row(endpoint: Endpoint):
    unknown = failure("opnai/gpt-5", endpoint.base_url)
    assert "did you mean 'openai'?" in str(unknown)
    unsupported = failure("anthropic/claude-x", endpoint.base_url, params={"seed": 1})
    assert "['seed']" in str(unsupported)
    value = failure("openai/gpt-5", endpoint.base_url, params={"temperature": 0.2})
    assert "temperature=0.2" in str(value) and "drop_params" not in str(value)
    assert unknown.fatal and unsupported.fatal and value.fatal
    with pytest.raises(ValueError, match="stream=True"):
        complete("openai/m", endpoint.base_url, params={"stream": True})
    assert endpoint.requests == 0


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("azure/m", "azure: it wants an API key and none is set: export AZURE_API_KEY, or name"),
        ("cloudflare/m", "cloudflare: it wants an API key and none is set: export CLOUDFLARE_API"),
        ("hosted_vllm/fault-401", ": its credentials are missing, or were"),  # are no key
    ],
)
def test_a_provider_without_its_credentials_stops_every_row_and_names_what_is_missing(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, model: str, said: str
):
    for name in [*os.environ]:
        if name.startswith(("AZURE_", "CLOUDFLARE_")):
            monkeypatch.delenv(name)
    refused = failure(model, endpoint.base_url if "fault" in model else None, api_key=None)
    assert (refused.kind, refused.fatal) == ("auth", True)
    assert said in str(refused)


def test_an_address_with_a_password_is_refused_and_not_repeated(endpoint: Endpoint):
    refused = failure("openai/m", endpoint.base_url.replace("://", "://me:hidden-word@"))
    assert "leave out everything up to '@'" in str(refused) and "hidden" not in str(refused)
    assert (refused.fatal, endpoint.requests) == (True, 0)


@pytest.mark.parametrize("provider", ["litellm_proxy", "hosted_vllm", "lm_studio"])
def test_a_server_of_ones_own_without_an_address_is_asked_nothing(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, provider: str
):
    """LiteLLM would send its key and the prompt to where OpenAI's models are."""
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_BASE", endpoint.base_url)
    monkeypatch.delenv(f"{provider.upper()}_API_BASE", raising=False)
    refused = failure(f"{provider}/m", None)
    assert f"{provider} has no address of its own: export {provider.upper()}_API" in str(refused)
    assert (refused.fatal, endpoint.requests) == (True, 0)
    monkeypatch.setenv(f"{provider.upper()}_API_BASE", endpoint.base_url)
    assert complete(f"{provider}/m", None).message["content"] == "42"


def test_a_cancelled_call_hangs_up(endpoint: Endpoint):
    async def cancelled() -> None:
        load()  # takes seconds, which do not belong to the wait
        call = asyncio.ensure_future(acomplete("openai/fault-silent", endpoint.base_url))
        await asyncio.to_thread(endpoint.wait_until, lambda seen: seen.in_flight == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    assert endpoint.wait_until(lambda seen: seen.hung_up == 1)


class Preparation:
    """LiteLLM's work before its request, held up until the test lets it go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started, self.go_on = threading.Event(), threading.Event()
        main = load().main
        real = main.completion

        def held(*args: Any, **kwargs: Any) -> Any:
            self.started.set()
            self.go_on.wait(60)
            return real(*args, **kwargs)

        monkeypatch.setattr(main, "completion", held)


@pytest.mark.slow
def test_what_litellm_imports_first_is_not_the_providers_time(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    held = Preparation(monkeypatch)

    async def slowly_prepared() -> ChatCompletion:
        asked = acomplete("openai/m", endpoint.base_url, request_timeout_s=1.0)
        call = asyncio.ensure_future(asked)
        await asyncio.to_thread(held.started.wait, 60)
        await asyncio.sleep(1.1)
        held.go_on.set()
        return await call

    found = asyncio.run(slowly_prepared())
    assert (found.message["content"], found.retries) == ("42", 0)


def test_a_call_that_is_cancelled_before_its_request_sends_none_and_says_nothing(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
):
    held = Preparation(monkeypatch)

    async def cancelled() -> None:
        call = asyncio.ensure_future(acomplete("openai/m", endpoint.base_url))
        await asyncio.to_thread(held.started.wait, 60)
        call.cancel()
        asyncio.get_running_loop().call_soon(held.go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    gc.collect()
    assert [str(one.message) for one in recwarn if "never awaited" in str(one.message)] == []
    assert endpoint.requests == 0


def test_many_calls_share_the_model_at_once(endpoint: Endpoint):
    async def several() -> list[ChatCompletion]:
        opened = LiteLLMModel(model="openai/echo", api_base=endpoint.base_url, api_key=Secret(KEY))
        try:
            asked = [[{"role": "user", "content": f"row {n}"}] for n in range(20)]
            return await asyncio.gather(*(opened.complete(messages) for messages in asked))
        finally:
            await opened.aclose()

    endpoint.full_at = 6
    found = asyncio.run(several())
    assert [one.message["content"] for one in found] == [f"row {n}" for n in range(20)]
    assert endpoint.max_in_flight >= 6


def test_every_provider_that_is_known_by_name_is_one_of_its():
    its = {str(getattr(each, "value", each)) for each in load().provider_list}
    assert its >= {*providers._HOSTED, *providers._OWN_CREDENTIALS, *providers._KEY_VARIABLES}
