"""Every way in which an endpoint misbehaves, over real connections: what the caller gets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from osmosis_ai.models.base import CallOutcome, ChatCompletion, ChatModel
from osmosis_ai.models.errors import ProviderError
from osmosis_ai.models.openai import OpenAIModel
from osmosis_ai.models.rate_limiter import RateLimiter
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.secret import Secret
from tests.support.endpoint_faults import FAULTS
from tests.support.endpoints import Ask, Endpoint, Step, completion, reply

KEY = "sk-proj-a+b/c=0123456789"
FAST = RetryPolicy(base_s=0.01, cap_s=0.02)


@pytest.fixture(scope="module")
def shared() -> Iterator[Endpoint]:
    """One endpoint for the tests that count nothing but their own row."""
    with Endpoint("42") as endpoint:
        yield endpoint


def opened(endpoint: Endpoint, model: str, **options: Any) -> ChatModel:
    settings: dict[str, Any] = {
        "base_url": endpoint.base_url,
        "api_key": Secret(KEY, "MY_KEY"),
        "pool_size": 4,
        "request_timeout_s": 5.0,
        "retry": FAST,
        **options,
    }
    return OpenAIModel(model=model, **settings)


def ask(
    endpoint: Endpoint, model: str, row: str = "", *, params: Any = None, **options: Any
) -> ChatCompletion:
    """The answer to one question, in an event loop of its own that must end clean."""

    async def main() -> ChatCompletion:
        chat = opened(endpoint, model, **options)
        try:
            return await chat.complete(
                [{"role": "user", "content": row or model}], params=params or {}
            )
        finally:
            await chat.aclose()

    return asyncio.run(main())


def error(endpoint: Endpoint, model: str, row: str = "", **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(endpoint, model, row, **options)
    assert caught.value.endpoint == endpoint.netloc
    assert len(str(caught.value)) < 800
    assert len(caught.value.detail) <= 200
    assert caught.value.__cause__ is None
    return caught.value


# An endpoint that behaves.


def test_an_answer_carries_message_usage_and_latency():
    with Endpoint("six times seven is 42") as endpoint:
        answer = ask(endpoint, "some/model:7b", "What is 6 x 7?", params={"temperature": 0.5})
        (seen,) = endpoint.seen
    assert answer.message == {"role": "assistant", "content": "six times seven is 42"}
    assert answer.finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (10, 5)
    assert answer.usage.total_tokens == 15
    assert answer.model == "some/model:7b"
    assert answer.retries == 0
    assert answer.latency_ms > 0
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.headers["host"] == endpoint.netloc
    assert seen.body == {
        "model": "some/model:7b",
        "messages": [{"role": "user", "content": "What is 6 x 7?"}],
        "temperature": 0.5,
    }


def test_tools_are_sent_and_an_empty_list_of_them_is_not():
    tool = {"type": "function", "function": {"name": "add", "parameters": {}}}

    async def main(endpoint: Endpoint) -> None:
        chat = opened(endpoint, "m")
        await chat.complete([], tools=[tool])
        await chat.complete([], tools=[])
        await chat.aclose()

    with Endpoint("42") as endpoint:
        asyncio.run(main(endpoint))
        first, second = endpoint.seen
    assert first.body["tools"] == [tool]
    assert "tools" not in second.body


def test_text_beyond_ascii_and_lone_surrogates_can_be_sent_without_a_key(shared: Endpoint):
    ask(shared, "m", "Grüße 😀 \ud800", api_key=None)
    assert "authorization" not in shared.last_headers
    assert "Grüße 😀 ?" in shared.by_row


def test_what_is_no_json_is_the_callers_mistake(shared: Endpoint):
    with pytest.raises(TypeError, match="request to m is not JSON"):
        ask(shared, "m", params={"temperature": float("nan")})
    with pytest.raises(TypeError, match="request to m is not JSON"):
        ask(shared, "m", params={"stop": object()})
    with pytest.raises(ValueError, match="stream=True is not supported"):
        ask(shared, "m", params={"stream": True})


def test_connections_are_kept_and_never_more_than_the_pool_holds():
    async def main(endpoint: Endpoint) -> None:
        chat = opened(endpoint, "m", pool_size=3)
        questions = [[{"role": "user", "content": str(n)}] for n in range(30)]
        await asyncio.gather(*(chat.complete(question) for question in questions))
        await chat.aclose()

    with Endpoint("42", latency_s=0.01) as endpoint:
        endpoint.full_at = 3
        asyncio.run(main(endpoint))
        assert endpoint.wait_until(lambda e: e.open_connections == 0)
    assert endpoint.requests == 30
    assert endpoint.max_in_flight == 3
    assert endpoint.connections == 3


def test_a_cancelled_call_closes_its_connection_and_frees_its_place():
    async def main(endpoint: Endpoint) -> str:
        chat = opened(endpoint, "fault-silent", pool_size=1)
        hanging = asyncio.create_task(chat.complete([{"role": "user", "content": "a"}]))
        waiting = asyncio.create_task(chat.complete([{"role": "user", "content": "b"}]))
        await asyncio.to_thread(endpoint.wait_until, lambda e: e.in_flight == 1)
        waiting.cancel()
        hanging.cancel()
        await asyncio.wait([hanging, waiting])
        assert await asyncio.to_thread(endpoint.wait_until, lambda e: e.hung_up == 1)
        other = opened(endpoint, "m", pool_size=1)
        answer = await other.complete([])
        await chat.aclose()
        await other.aclose()
        await chat.aclose()
        return str(answer.message["content"])

    with Endpoint("42") as endpoint:
        assert asyncio.run(main(endpoint)) == "42"
        assert endpoint.by_row == {"a": 1, "": 1}


def test_a_closed_model_ends_its_calls_and_takes_no_more():
    async def main(endpoint: Endpoint) -> None:
        chat = opened(endpoint, "fault-silent")
        hanging = asyncio.create_task(chat.complete([]))
        await asyncio.to_thread(endpoint.wait_until, lambda e: e.in_flight == 1)
        await chat.aclose()
        with pytest.raises(RuntimeError, match="the model is closed"):
            await hanging
        with pytest.raises(RuntimeError, match="the model is closed"):
            await chat.complete([])

    with Endpoint("42") as endpoint:
        asyncio.run(main(endpoint))
    assert endpoint.requests == 1


def test_a_place_is_handed_on_when_the_one_who_waited_for_it_is_gone():
    async def main(endpoint: Endpoint) -> int:
        chat = opened(endpoint, "m", pool_size=1)
        calls = [asyncio.create_task(chat.complete([])) for _ in range(6)]
        await asyncio.sleep(0)
        calls[2].cancel()
        calls[3].cancel()
        done = await asyncio.gather(*calls, return_exceptions=True)
        await chat.aclose()
        return sum(isinstance(answer, ChatCompletion) for answer in done)

    with Endpoint("42", latency_s=0.01) as endpoint:
        assert asyncio.run(main(endpoint)) == 4
    assert endpoint.max_in_flight == 1


# Connections.


def test_a_refused_connection_is_unreachable_after_three_tries():
    endpoint = Endpoint("42").start()
    endpoint.close()
    failure = error(endpoint, "m")
    assert failure.kind == "unreachable"
    assert (failure.status, failure.tries, failure.fatal) == (None, 3, False)
    assert str(failure).startswith(f"cannot reach http://{endpoint.netloc} after 3 tries in ")
    assert str(failure).endswith("(connection refused)")


@pytest.mark.fault("the port is closed, or the name does not resolve")
def test_a_name_that_does_not_resolve_is_unreachable():
    async def main() -> None:
        chat = OpenAIModel(
            model="m",
            base_url="http://nowhere.invalid/v1",
            api_key=None,
            pool_size=1,
            retry=FAST,
        )
        try:
            await chat.complete([])
        finally:
            await chat.aclose()

    with pytest.raises(ProviderError, match=r"cannot reach http://nowhere.invalid after 3 tries"):
        asyncio.run(main())


BROKEN = ["before", "headers", "body", "chunk"]


@pytest.mark.parametrize("where", BROKEN)
def test_connections_that_always_break_end_as_such(shared: Endpoint, where: str):
    failure = error(shared, f"fault-reset-{where}", "always")
    assert (failure.kind, failure.tries) == ("connection", FAST.max_tries)
    assert f"no answer from {shared.netloc} after 8 tries" in str(failure)
    assert "the connection was closed" in str(failure)


def dropping(endpoint: Endpoint, after_s: float, **options: Any) -> list[int]:
    """The retries of two calls, the second over a kept connection that the server drops."""

    async def main() -> list[int]:
        chat = opened(endpoint, "m", **options)
        try:
            retries = [(await chat.complete([])).retries]
            # Dropped while the request is on its way: the client cannot know before it sends.
            endpoint.answers = lambda ask: [after_s, "close"] if ask.attempt == 2 else "42"
            retries.append((await chat.complete([])).retries)
        finally:
            await chat.aclose()
        return retries

    return asyncio.run(main())


@pytest.mark.fault("it drops a connection that was kept")
@pytest.mark.parametrize("max_tries", [1, 8])
def test_a_kept_connection_that_the_server_dropped_is_replaced_and_counted(max_tries: int):
    slow = RetryPolicy(max_tries=max_tries, base_s=60.0)
    with Endpoint("42") as endpoint:
        assert dropping(endpoint, 0.0, retry=slow) == [0, 1]
    assert endpoint.requests == 3
    assert endpoint.connections == 2


def test_a_kept_connection_that_ends_later_is_a_failed_try_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("osmosis_ai.models.transport.client.STALE_WITHIN_S", 0.05)
    with Endpoint("42") as endpoint:
        with pytest.raises(ProviderError, match="the connection was closed before the answer"):
            dropping(endpoint, 0.2, retry=RetryPolicy(max_tries=1))
        assert endpoint.requests == 2
    with Endpoint("42") as endpoint:
        assert dropping(endpoint, 0.2) == [0, 1]
        assert endpoint.requests == 3
    for how in ("close", "reset"):  # as is a fresh one that is dropped
        with Endpoint("42") as endpoint:
            error(endpoint, f"fault-{how}", retry=RetryPolicy(max_tries=1))
        assert endpoint.requests == 1


GHOST = reply(200, completion("a ghost"))


@pytest.mark.parametrize("cut", [10, 60, len(GHOST)])
def test_bytes_behind_a_reply_never_answer_the_next_call(cut: int):
    def answers(ask: Ask) -> list[Any]:
        good = reply(200, completion(ask.row))
        return [good + GHOST[:cut]] if ask.attempt == 1 else [GHOST[cut:] + good]

    async def main(endpoint: Endpoint) -> list[str]:
        chat = opened(endpoint, "m", pool_size=1)
        said = []
        try:
            for row in ("a", "b", "a", "b"):
                answer = await chat.complete([{"role": "user", "content": row}])
                said.append(str(answer.message["content"]))
        except ProviderError as failure:
            said.append(str(failure))
        await chat.aclose()
        return said

    with Endpoint(answers) as endpoint:
        said = asyncio.run(main(endpoint))
    assert "a ghost" not in str(said)
    assert said == ["a", "b", "a", "b"] or said[-1].startswith("not an HTTP reply from")


def test_an_idle_connection_that_was_closed_is_not_used_again():
    async def main(endpoint: Endpoint) -> None:
        chat = opened(endpoint, "fault-stale")
        for _ in range(3):
            await chat.complete([])
            await asyncio.to_thread(endpoint.wait_until, lambda e: e.open_connections == 0)
        await chat.aclose()

    with Endpoint("42") as endpoint:
        asyncio.run(main(endpoint))
    assert (endpoint.requests, endpoint.connections) == (3, 3)


# Statuses.


def test_a_key_that_is_wrong_or_missing_is_fatal_and_named(shared: Endpoint):
    with Endpoint("42", api_key="another") as endpoint:
        failure = error(endpoint, "m")
    assert (failure.kind, failure.status, failure.tries, failure.fatal) == ("auth", 401, 1, True)
    assert str(failure) == (
        f'401 from {endpoint.netloc}: the key in MY_KEY was refused ("Incorrect API key provided")'
    )
    missing = error(shared, "fault-401", api_key=None)
    assert missing.fatal
    assert "it wants an API key and none is set" in str(missing)


@pytest.mark.fault(
    "a gateway answers 500 and speaks of the key, or says nothing where none was sent"
)
@pytest.mark.parametrize(
    ("model", "key", "said"),
    [
        ("fault-500-wrong-key", Secret(KEY, "MY_KEY"), "the key in MY_KEY was refused"),
        ("fault-500-wrong-key", None, "no request has succeeded: it may want an API key and none"),
        ("fault-litellm-no-key", None, "no request has succeeded: it may want an API key and none"),
    ],
)
def test_a_500_about_a_key_five_times_in_a_row_is_a_refused_key(
    shared: Endpoint, model: str, key: Secret | None, said: str
):
    failure = error(shared, model, api_key=key)
    assert (failure.kind, failure.status, failure.tries, failure.fatal) == ("auth", 500, 5, True)
    assert str(failure).startswith(f"500 from {shared.netloc}: {said}")


@pytest.mark.fault(
    "a gateway answers 500 and speaks of the key, or says nothing where none was sent"
)
def test_a_500_is_otherwise_one_that_may_pass(shared: Endpoint):
    failure = error(shared, "fault-litellm-no-key")  # with a key
    assert (failure.kind, failure.tries, failure.fatal) == ("overloaded", 8, False)

    async def after_an_answer(endpoint: Endpoint) -> ProviderError:
        chat = opened(endpoint, "m")
        await chat.complete([])
        endpoint.answers = FAULTS["500-wrong-key"]
        with pytest.raises(ProviderError) as caught:
            await chat.complete([])
        await chat.aclose()
        return caught.value

    with Endpoint("42") as endpoint:
        failure = asyncio.run(after_an_answer(endpoint))
    assert (failure.kind, failure.tries, failure.fatal) == ("overloaded", 8, False)


@pytest.mark.parametrize("code", ["403", "no-route"])
def test_a_refusal_after_good_answers_concerns_its_row_alone(code: str):
    async def main(endpoint: Endpoint) -> ProviderError:
        chat = opened(endpoint, f"fault-{code}")
        endpoint.answers = "42"
        chat._succeeded = True  # type: ignore[attr-defined]
        with pytest.raises(ProviderError) as caught:
            await chat.complete([])
        await chat.aclose()
        return caught.value

    with Endpoint("42") as endpoint:
        assert not asyncio.run(main(endpoint)).fatal


MANY = ["paris", *(f"town-{number}" for number in range(300))]


@pytest.mark.parametrize(
    ("model", "served", "hint"),
    [
        (
            "openai/paris",
            ["paris"],
            "; at a base URL the name is sent whole: did you mean 'paris'? (",
        ),
        ("Qwen/Qwen3-8B", ["paris"], "; it serves 'paris' ("),
        ("pari", MANY, "; of its 301 models the nearest are 'paris', "),
        ("pari", ["a\x1b[31mb", "x" * 99], f"; it serves 'a [31mb', '{'x' * 79}…'"),
    ],
)
def test_an_unknown_model_is_answered_with_what_there_is(model: str, served: list[str], hint: str):
    with Endpoint("42", models=served) as endpoint:
        failure = error(endpoint, model)
        assert f"at {endpoint.base_url} (404){hint}" in str(failure)


@pytest.mark.parametrize(
    "listing",
    [b"not HTTP", reply(500, {}), reply(200, []), reply(200, {"data": [None, {"id": 5}]})],
)
def test_models_that_are_not_listed_are_asked_for_once_and_not_named(listing: bytes):
    endpoint = Listing("42", models=["paris"])
    endpoint.listing = listing

    async def main() -> list[str]:
        chat = opened(endpoint, "pari")
        failures = await asyncio.gather(*(chat.complete([]) for _ in "abc"), return_exceptions=True)
        await chat.aclose()
        return [str(failure) for failure in failures]

    with endpoint:
        expected = f"model 'pari' is not known at {endpoint.base_url} (404) ("
        assert all(said.startswith(expected) for said in asyncio.run(main()))
    assert endpoint.asked == 1


class Listing(Endpoint):
    """An endpoint whose list of models is what a test says."""

    listing = b""
    asked = 0

    def steps(self, ask: Ask) -> Iterable[Step]:
        if ask.method == "POST":
            return super().steps(ask)
        self.asked += 1
        return [self.listing]


def test_a_path_that_serves_nothing_is_fatal_and_hints_at_v1(shared: Endpoint):
    failure = error(shared, "fault-no-route", base_url=f"http://{shared.netloc}")
    assert (failure.kind, failure.status, failure.fatal) == ("model_not_found", 404, True)
    assert f"nothing is served at http://{shared.netloc}/chat/completions" in str(failure)
    assert f"did you mean http://{shared.netloc}/v1?" in str(failure)


class NotedReplies(RateLimiter):
    """Tells when the first reply has come."""

    def __init__(self) -> None:
        super().__init__()
        self.replied = asyncio.Event()

    def record_response(self, outcome: CallOutcome, retry_after_s: float) -> None:
        super().record_response(outcome, retry_after_s)
        self.replied.set()


@pytest.mark.parametrize("form", ["429-retry-after-0.2", "503-retry-after-ms-200"])
def test_no_request_is_sent_before_its_retry_after(form: str):
    question = [{"role": "user", "content": "42?"}]

    async def main(endpoint: Endpoint) -> None:
        limit = NotedReplies()
        chat = opened(endpoint, f"fault-{form}-once", pool_size=8, rate_limit=limit)
        first = asyncio.ensure_future(chat.complete(question))
        await limit.replied.wait()
        await asyncio.gather(first, *(chat.complete(question) for _ in range(7)))
        await chat.aclose()

    with Endpoint("42") as endpoint:
        asyncio.run(main(endpoint))
    first, *others = (ask.at for ask in endpoint.seen)
    assert len(others) == 8
    assert min(others) >= first + 0.2


def test_a_retry_after_that_is_a_date_is_waited_for():
    with Endpoint("42") as endpoint:
        assert ask(endpoint, "fault-429-retry-after-date-1-once").retries == 1
    assert (endpoint.requests, endpoint.early) == (2, 0)


# Deadlines.


@pytest.mark.parametrize("model", ["silent", "trickle", "trickle-head"])
def test_the_deadline_of_a_try_is_total_and_leaves_nothing_open(model: str):
    with Endpoint("42") as endpoint:
        failure = error(endpoint, f"fault-{model}", request_timeout_s=0.1)
        assert endpoint.wait_until(lambda e: e.hung_up == e.requests and e.open_connections == 0)
    assert (failure.kind, failure.tries, failure.fatal) == ("timeout", 2, False)
    assert f"no whole answer from {endpoint.netloc} within 0.1 s after 2 tries" in str(failure)


def test_a_try_that_was_too_slow_is_repeated_and_all_tries_together_have_a_deadline(
    shared: Endpoint,
):
    assert ask(shared, "fault-silent-once", request_timeout_s=0.5).retries == 1
    slow = RetryPolicy(base_s=60.0, cap_s=60.0)
    failure = error(shared, "fault-503", "hurry", retry=slow, total_timeout_s=1.0)
    assert failure.tries == 1


def test_the_wait_for_a_connection_counts_towards_the_deadline():
    async def main(endpoint: Endpoint) -> ProviderError:
        chat = opened(
            endpoint,
            "fault-silent",
            pool_size=1,
            request_timeout_s=0.1,
            retry=RetryPolicy(max_tries=1),
        )
        calls = [chat.complete([]) for _ in range(2)]
        first, second = await asyncio.gather(*calls, return_exceptions=True)
        await chat.aclose()
        assert isinstance(first, ProviderError)
        assert isinstance(second, ProviderError)
        return second

    with Endpoint("42") as endpoint:
        assert asyncio.run(main(endpoint)).kind == "timeout"


# A 200 that is no answer.

NO_JSON = {
    "empty": "a 200 with an empty body",
    "204": "a 204 with an empty body",
    "bad-json": "a 200 that is not JSON (application/json)",
    "html": "a 200 that is not JSON (text/html)",
    "nested": "a 200 that is nested too deeply",
    "utf-16": "a 200 that is not UTF-8",
    "latin-1": "a 200 that is not UTF-8",
    "choices-empty": "an answer without choices",
    "choices-absent": "an answer without choices",
    "choices-null": "an answer without choices",
    "message-null": "an answer without a message",
}


@pytest.mark.fault(
    "a 200 is nested deeply, has endless numbers, or is not UTF-8",
    "an answer has no choices or no message",
)
@pytest.mark.parametrize("model", NO_JSON)
def test_a_200_that_is_no_answer_is_tried_once_more(shared: Endpoint, model: str):
    failure = error(shared, f"fault-{model}", "always")
    assert (failure.kind, failure.tries, failure.fatal) == ("protocol", 2, False)
    assert str(failure).startswith(f"{NO_JSON[model]}")
    assert f"from {shared.netloc} after 2 tries" in str(failure)


ANSWERS = [
    # Unusual but valid HTTP, compressed bodies, a byte order mark.
    *((model, "42", 0) for model in ("http10", "interim", "chunked")),
    *((model, "42", 0) for model in ("gzip-good", "gzip-members", "deflate-good", "deflate-raw")),
    ("utf-8-sig", "café", 0),
    # Content that is unusual.
    ("content-null", None, 0),
    ("content-absent", None, 0),
    ("content-empty", "", 0),
    ("content-parts", "The answer is 42", 0),
    ("surrogate", "lone \ufffd and paired \U0001f600", 0),
    ("control", "nul \x00 escape \x1b[31m bell \x07 arabic ٤٢", 0),
    # What passes.
    *((f"{how}-{where}-once", "42", 1) for how in ("reset", "close") for where in BROKEN),
    *((f"{status}-twice", "42", 2) for status in (408, 409, 429, 500, 502, 503, 504, 529)),
    *((f"429-retry-after-{text}-once", "42", 1) for text in ("garbage", "nan", "-5", "inf")),
    ("400-retry-once", "42", 1),
    *((f"{model}-once", "42", 1) for model in NO_JSON),
]


@pytest.mark.fault(
    "the connection breaks before, within or behind the headers, or in the body",
    "it has a passing trouble (408, 409, 429, 5xx)",
)
@pytest.mark.parametrize(("model", "content", "retries"), ANSWERS)
def test_an_unusual_answer_is_read_and_what_passes_is_tried_again(
    shared: Endpoint, model: str, content: str | None, retries: int
):
    answer = ask(shared, f"fault-{model}")
    assert (answer.message["content"], answer.retries) == (content, retries)


UNKNOWN = "model 'fault-{model}' is not known at {url}"
WITHIN = "Provider returned error"
FAILURES = [
    *((model, "protocol", 1, "not an HTTP reply from {host}") for model in (
        "not-http", "broken-chunk", "big-headers", "endless-headers",
    )),
    *((model, "auth", 1, "the key in MY_KEY was refused") for model in (
        "gemini-wrong-key", "litellm-wrong-key",
    )),
    ("403", "auth", 1, "403 from {host}: refused; the key in MY_KEY may lack access ("),
    *((f"model-not-found{dialect}", "model_not_found", 1, UNKNOWN) for dialect in (
        "", "-vllm", "-ollama", "-sglang", "-deepseek", "-openrouter",
    )),
    *((f"{status}", "bad_request", 1, f'{status} from {{host}} ("') for status in (400, 413, 422)),
    ("400", "bad_request", 1, "maximum context length is 8192"),
    ("429", "rate_limited", 8, "429 from {host} after 8 tries in "),
    ("503", "overloaded", 8, "503 from {host} after 8 tries in "),
    ("503", "overloaded", 8, '("overloaded")'),
    ("503-no-retry", "overloaded", 1, "503 from {host}"),
    ("429-retry-after-99999", "rate_limited", 1, "asked to wait 27 h"),
    ("quota", "quota", 1, "the account has no quota left"),
    ("402", "quota", 1, "402 from {host}"),
    ("json-null", "protocol", 1, "a 200 whose JSON is null, no object from {host}"),
    ("json-string", "protocol", 1, "a 200 whose JSON is a string, no object from {host}"),
    ("json-list", "protocol", 1, "a 200 whose JSON is a list, no object from {host}"),
    ("content-number", "protocol", 1, "an answer whose content is a number, no text from {host}"),
    ("tool-calls-text", "protocol", 1, "whose tool_calls is no list of calls from {host}"),
    ("stream", "protocol", 1, "an answer streamed although not asked from {host}"),
    ("gzip-broken", "protocol", 1, "a broken compressed body from {host}"),
    ("gzip-cut", "protocol", 1, "a compressed body cut short from {host}"),
    ("encoding-br", "protocol", 1, "a body in an unknown encoding from {host}"),
    ("huge-length", "too_large", 1, "of 32 MiB"),
    ("digits", "protocol", 2, "a 200 that is not JSON"),
    ("html", "protocol", 2, "Welcome to nginx!"),
    ("error-object-503", "overloaded", 8, WITHIN),
    ("error-object-429", "rate_limited", 8, WITHIN),
    ("error-object-rate_limit_exceeded", "rate_limited", 8, WITHIN),
    ("error-object-server_error", "overloaded", 8, WITHIN),
    ("error-object-400", "bad_request", 1, WITHIN),
    ("error-object-invalid_request_error", "bad_request", 1, WITHIN),
    ("error-object-401", "auth", 1, WITHIN),
    ("error-object-insufficient_quota", "quota", 1, WITHIN),
    ("error-object-model_not_found", "model_not_found", 1, WITHIN),
]  # fmt: skip


@pytest.mark.fault(
    "it does not know the model (404)",
    "a 200 holds an error",
    "it forbids another try (`x-should-retry: false`)",
    "a 200 is JSON but no object",
    "a 200 is empty, broken JSON or a web page",
    "an answer is a number",
    "a tool call is of an unknown tool, lacks an id or repeats one",
)
@pytest.mark.parametrize(("model", "kind", "tries", "said"), FAILURES)
def test_what_does_not_pass_is_reported_and_ends_the_session_where_no_row_can_succeed(
    shared: Endpoint, model: str, kind: str, tries: int, said: str
):
    failure = error(shared, f"fault-{model}")
    assert (failure.kind, failure.tries) == (kind, tries)
    assert failure.fatal == (kind in ("auth", "quota", "model_not_found"))
    assert failure.elapsed_s > 0
    assert said.format(model=model, host=shared.netloc, url=shared.base_url) in str(failure)


# Unusual answers.


def test_a_refusal_the_finish_reason_and_control_characters_are_kept(shared: Endpoint):
    assert "\x1b[31m" in ask(shared, "fault-control").message["content"]
    refusal = ask(shared, "fault-refusal")
    assert refusal.message["refusal"] == "I cannot help with that"
    assert refusal.message["content"] is None
    assert ask(shared, "fault-finish-length").finish_reason == "length"
    assert ask(shared, "fault-finish-content_filter").finish_reason == "content_filter"
    assert ask(shared, "fault-finish-null").finish_reason is None


@pytest.mark.fault("usage is absent, or nonsense")
@pytest.mark.parametrize("kind", ["absent", "null", "strings", "nan", "negative"])
def test_unknown_usage_is_unknown_and_never_zero(shared: Endpoint, kind: str):
    answer = ask(shared, f"fault-usage-{kind}")
    assert answer.message["content"] == "42"
    usage = answer.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (None,) * 3


# Sizes.


@pytest.mark.parametrize("model", ["huge-3", "huge-length", "gzip-bomb"])
def test_a_body_is_cut_off_at_the_cap_on_decoded_bytes(shared: Endpoint, model: str):
    failure = error(shared, f"fault-{model}", max_body_bytes=2**21)
    assert (failure.kind, failure.tries) == ("too_large", 1)
    assert f"too large an answer from {shared.netloc}" in str(failure)
    assert "of 2 MiB" in str(failure)


# Redirects.


@pytest.mark.fault("it redirects")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(code: int):
    with Endpoint("42") as endpoint:
        failure = error(endpoint, f"fault-redirect-{code}")
    assert (failure.kind, failure.status, failure.tries) == ("redirect", code, 1)
    assert endpoint.requests == 1
    assert f"redirects to {endpoint.base_url}/elsewhere ({code})" in str(failure)
    assert "set the base URL" in str(failure)


@pytest.mark.fault("the key is in the base URL")
def test_where_a_redirect_points_is_printed_without_credentials(shared: Endpoint):
    message = str(error(shared, "fault-redirect-other"))
    assert "http://127.0.0.2:9/v1/chat/completions" in message
    assert "pass" not in message
    assert "abc" not in message
    assert "/v1/chat/completions" in str(error(shared, "fault-redirect-loop"))


# What an answer may hold.


def test_neither_error_nor_model_nor_traceback_shows_the_key(shared: Endpoint):
    failure = error(shared, "fault-error-key")
    for shown in (str(failure), failure.detail, repr(failure)):
        assert KEY not in shown
    assert "your key is ***" in failure.detail

    async def main() -> None:
        chat = opened(shared, "fault-400")
        assert KEY not in repr(chat)
        with pytest.raises(ProviderError) as caught:
            await chat.complete([])
        frames = str(caught.getrepr(showlocals=True, style="long"))
        assert "osmosis_ai/models/openai.py" in frames
        assert KEY not in frames
        await chat.aclose()

    asyncio.run(main())


@pytest.mark.fault("three of ten calls fail")
def test_with_three_of_ten_tries_failing_every_row_ends_alike_twice():
    def session() -> dict[str, int]:
        async def main() -> None:
            chat = opened(endpoint, "fault-flaky-30", pool_size=8)
            rows = [[{"role": "user", "content": f"row {n}"}] for n in range(60)]
            answers = await asyncio.gather(*(chat.complete(row) for row in rows))
            for n, answer in enumerate(answers):
                assert answer.retries == endpoint.by_row[f"row {n}"] - 1
            assert sum(answer.retries for answer in answers) > 5
            await chat.aclose()

        with Endpoint("42") as endpoint:
            asyncio.run(main())
            return dict(endpoint.by_row)

    first = session()
    assert len(first) == 60
    assert sum(first.values()) > 65
    assert first == session()


# The gate.


class CountingGate:
    def __init__(self) -> None:
        self.acquired = 0
        self.notes: list[tuple[str, float]] = []

    async def acquire(self) -> None:
        self.acquired += 1

    def record_response(self, outcome: str, retry_after_s: float) -> None:
        self.notes.append((outcome, retry_after_s))


def test_a_gate_is_passed_before_each_try_and_learns_how_it_ended(shared: Endpoint):
    gate = CountingGate()
    ask(shared, "fault-429-retry-after-0.05-twice", "gate", rate_limit=gate)
    error(shared, "fault-400", "gate", rate_limit=gate)
    assert gate.acquired == 4
    limited = ("rate_limited", 0.05)
    assert gate.notes == [limited, limited, ("ok", 0.0), ("failed", 0.0)]


def test_a_call_that_is_cancelled_leaves_the_gate():
    gate = CountingGate()

    async def main(endpoint: Endpoint) -> None:
        chat = opened(endpoint, "fault-silent", rate_limit=gate)
        call = asyncio.ensure_future(chat.complete([]))
        await asyncio.to_thread(endpoint.wait_until, lambda e: e.in_flight == 1)
        call.cancel()
        await asyncio.wait([call])
        await chat.aclose()

    with Endpoint("42") as endpoint:
        asyncio.run(main(endpoint))
    assert gate.notes == [("failed", 0.0)]


def test_an_answer_with_token_ids_logprobs_and_cost_keeps_them(shared: Endpoint):
    body = completion("42", usage={"prompt_tokens": 1, "completion_tokens": 2.0, "cost": 0.01})
    body["choices"][0].update(token_ids=[1, 2], logprobs={"content": []})
    with Endpoint(body) as endpoint:
        answer = ask(endpoint, "m")
    assert answer.token_ids == [1, 2]
    assert answer.logprobs == {"content": []}
    assert answer.cost_usd == 0.01
    assert answer.usage.total_tokens == 3


def test_waiting_for_the_endpoint_takes_no_processor_time(shared: Endpoint):
    before = time.thread_time()
    ask(shared, "fault-slow-0.3")
    assert time.thread_time() - before < 0.2
