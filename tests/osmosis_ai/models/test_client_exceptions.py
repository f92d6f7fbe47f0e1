"""Exceptions of client libraries, made by name and attributes as the libraries have them.

What the libraries themselves raise was tried against an endpoint on loopback; here are the shapes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from osmosis_ai.models.client_exceptions import provider_error_of
from osmosis_ai.models.errors import ProviderError

URL = "http://model.example:8000/v1/chat/completions"
LONG = "This model's maximum context length is 10 tokens"


def made(name: str, *bases: type[BaseException], text: str = "boom", **fields: Any) -> Exception:
    """An exception of the class `module.Name`, whose bases may be of other modules."""
    module, _, called = name.rpartition(".")
    kind = type(called, bases or (Exception,), {"__module__": module})
    error = kind(text)
    for field, value in fields.items():
        setattr(error, field, value)
    assert isinstance(error, Exception)
    return error


def kind_of(name: str, *bases: type[BaseException]) -> type[BaseException]:
    return type(made(name, *bases))


def asked(url: str = URL) -> Any:
    return SimpleNamespace(url=url, content=json.dumps({"model": "m"}).encode())


def caused(error: Exception, by: BaseException) -> Exception:
    error.__cause__ = by
    return error


OPENAI = kind_of("openai.APIError", kind_of("openai.OpenAIError"))
STATUS = kind_of("openai.APIStatusError", OPENAI)
LOST = kind_of("openai.APIConnectionError", OPENAI)
REFUSED = made("httpx.ConnectError", text="[Errno 111] Connection refused")
LATE = made("httpx2.ReadTimeout", text="timed out")
RESET = caused(made("httpx.ReadError"), ConnectionResetError(104, "reset by peer"))
OTHER_LOOP = caused(made("httpcore.ReadError"), RuntimeError("Event loop is closed"))


def status(
    number: int, message: str = "boom", *, name: str = "openai.SomeError", **more: Any
) -> Any:
    body = {"message": message, **more}
    return made(name, STATUS, status_code=number, body=body, request=asked())


def botocore(operation: str, code: str, http: int, message: str = "boom") -> Exception:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": http},
    }
    return made("botocore.exceptions.ClientError", response=response, operation_name=operation)


def google(code: int, message: str) -> Exception:
    details = {"error": {"code": code, "message": message}}
    return made("google.genai.errors.ClientError", code=code, details=details, message=message)


def litellm(code: int, text: str, *bases: type[BaseException]) -> Exception:
    made_up = asked("https://docs.litellm.ai/x")
    return made(
        "litellm.exceptions.SomeError", *(bases or (STATUS,)), text=text, status_code=code,
        message=text, llm_provider="anthropic", model="m", request=made_up,
    )  # fmt: skip


FAILURES: dict[str, tuple[Callable[[], BaseException], str, int | None, str]] = {
    # what: (the exception, kind, status, part of the sentence)
    "500": (lambda: status(500), "overloaded", 500, '500 from model.example:8000 ("boom")'),
    "529": (lambda: status(529, name="anthropic.Overloaded"), "overloaded", 529, "529 from"),
    "429": (lambda: status(429, "slow down"), "rate_limited", 429, "slow down"),
    "429, no credit": (lambda: status(429, code="insufficient_quota"), "quota", 429, "quota"),
    "401": (lambda: status(401, "Incorrect key"), "auth", 401, "the key was refused"),
    "404": (lambda: status(404, "The model `m` does not exist", code="model_not_found"),
        "model_not_found", 404, "model 'm' is not known at model.example:8000"),
    "400": (lambda: status(400, LONG), "bad_request", 400, LONG),
    "403, flagged": (lambda: status(403, "your input was flagged"), "bad_request", 403, "flagged"),
    "no connection": (lambda: caused(made("openai.APIConnectionError", LOST, request=asked()),
        REFUSED), "unreachable", None, "cannot reach http://model.example:8000"),
    "reset": (lambda: caused(made("groq.APIConnectionError", request=asked()), RESET), "connection",
        None, "no answer from model.example:8000"),
    "timeout": (lambda: caused(made("openai.APITimeoutError", LOST, request=asked()), LATE),
        "timeout", None, "no answer in time from model.example:8000"),
    "within a stream": (lambda: made("openai.APIError", OPENAI, request=asked(),
        body={"message": "busy", "code": 503}), "overloaded", 200, "busy"),
    "within a stream of Anthropic's": (lambda: made("anthropic.APIStatusError",
        kind_of("anthropic.APIError"), status_code=200, request=asked(),
        body={"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        "overloaded", 200, "busy"),
    "within a stream, in words": (lambda: made("openai.APIError", OPENAI, body=None,
        text="An error occurred during streaming"), "overloaded", 200, "during streaming"),
    "no key": (lambda: made("openai.OpenAIError", text="The api_key client option must be set"),
        "auth", None, "api_key client option"),
    "google, 429": (lambda: google(429, "slow"), "rate_limited", 429, '429 from google ("slow")'),
    "google, 404": (lambda: google(404, "The model x is not found"), "model_not_found", 404, "404"),
    "litellm, 500": (lambda: litellm(500, 'litellm.InternalServerError: AnthropicException - '
        '{"error": {"message": "boom"}}. Handle with `litellm.InternalServerError`.'),
        "overloaded", 500, '500 from anthropic ("boom")'),
    "litellm, no connection": (lambda: caused(litellm(500, "x"), REFUSED), "unreachable", None,
        "Connection refused"),
    "litellm, too long": (lambda: litellm(400, f"litellm.ContextWindowExceededError: x - {LONG}"),
        "bad_request", 400, LONG),
    "bedrock, 429": (lambda: botocore("Converse", "ThrottlingException", 429), "rate_limited", 429,
        "429 from Bedrock (Converse)"),
    "bedrock, in a stream": (lambda: botocore("ConverseStream", "throttlingException", 200),
        "rate_limited", 429, "429"),
    "bedrock, no connection": (lambda: caused(made("botocore.exceptions.EndpointConnectionError",
        kwargs={"endpoint_url": "http://127.0.0.1:9/model/m/converse"}), REFUSED), "unreachable",
        None, "cannot reach http://127.0.0.1:9"),
    "pydantic-ai": (lambda: caused(made("pydantic_ai.exceptions.ModelHTTPError", status_code=503,
        model_name="m", body={"message": "busy"}), status(503, "busy")), "overloaded", 503,
        '503 from model.example:8000 ("busy")'),
    "pydantic-ai, no connection": (lambda: caused(
        made("pydantic_ai.exceptions.ModelConnectionError", model_name="m"), REFUSED),
        "unreachable", None, "Connection refused"),
    "pydantic-ai, its deadline": (lambda: made("pydantic_ai.exceptions.ModelRequestTimeout",
        model_name="m"), "timeout", None, "no answer in time"),
    "langchain": (lambda: made("langchain_openai.chat_models.base.OpenAIAPIError", STATUS,
        status_code=500, body={"message": "boom"}, request=asked()), "overloaded", 500, "500"),
    "langchain, a stream that stalls": (lambda: made(
        "langchain_openai.chat_models._client_utils.StreamChunkTimeoutError", TimeoutError),
        "timeout", None, "no answer in time"),
    "a wrapper's cause": (lambda: caused(ValueError("no plan"), status(500)), "overloaded", 500,
        "500"),
    "a member of a group": (lambda: made("a.ExceptionGroup",
        exceptions=[ValueError(), status(429)]), "rate_limited", 429, "429"),
    "ours": (lambda: caused(ValueError(), ProviderError("x", kind="tls")), "tls", None, "x"),
}  # fmt: skip

OF_THE_AGENT: dict[str, Callable[[], BaseException]] = {
    "its own": lambda: ValueError("no plan"),
    "a tool's HTTP client": lambda: made("httpx.HTTPStatusError", response=SimpleNamespace(
        status_code=500)),
    "a tool's aiohttp": lambda: made("aiohttp.client_exceptions.ClientResponseError", status=429),
    "a tool's requests": lambda: made("requests.exceptions.ConnectionError"),
    "a tool's socket": lambda: ConnectionRefusedError(111, "refused"),
    "a tool's S3": lambda: botocore("GetObject", "NoSuchKey", 404),
    "a tool's DynamoDB, away": lambda: made("botocore.exceptions.EndpointConnectionError",
        kwargs={"endpoint_url": "https://dynamodb.eu-west-1.amazonaws.com/"}),
    "a tool's BigQuery": lambda: made("google.api_core.exceptions.NotFound", code=404),
    "an answer that is cut": lambda: made("openai.LengthFinishReasonError", kind_of(
        "openai.OpenAIError"), text="the length limit was reached"),
    "an answer of another shape": lambda: made("pydantic_ai.exceptions.UnexpectedModelBehavior"),
    "another event loop": lambda: caused(made("openai.APIConnectionError", LOST), OTHER_LOOP),
    "an address without a scheme": lambda: caused(made("openai.APIConnectionError", LOST),
        made("httpx.UnsupportedProtocol")),
    "a hook of the client's that fails": lambda: caused(made("openai.APIConnectionError", LOST),
        KeyError("tenant")),
}  # fmt: skip


@pytest.mark.parametrize("what", FAILURES)
def test_a_clients_exception_tells_the_endpoints_failure(what: str):
    error, kind, code, said = FAILURES[what]
    found = provider_error_of(error())
    assert found is not None
    assert (found.kind, found.status) == (kind, code)
    assert said in str(found)
    assert found.fatal == (kind in ("auth", "model_not_found", "quota"))


@pytest.mark.parametrize("what", OF_THE_AGENT)
def test_other_exceptions_tell_of_no_endpoint(what: str):
    assert provider_error_of(OF_THE_AGENT[what]()) is None


def test_what_was_being_handled_is_looked_at_unless_it_is_hidden():
    handled, hidden = ValueError("a"), ValueError("b")
    handled.__context__ = hidden.__context__ = status(500)
    hidden.__suppress_context__ = True
    assert provider_error_of(handled) is not None
    assert provider_error_of(handled, with_context=False) is None
    assert provider_error_of(hidden) is None


def test_a_chain_that_ends_in_itself_ends():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__context__ = second, first
    assert provider_error_of(first) is None


def test_a_deadline_that_the_agent_has_set_is_its_own():
    frames: dict[str, Any] = {"__name__": "openai._base_client", "asyncio": asyncio}
    exec("async def send():\n    await asyncio.sleep(60)", frames)

    async def ask() -> None:
        await asyncio.wait_for(frames["send"](), 0.01)

    with pytest.raises(asyncio.TimeoutError) as raised:
        asyncio.run(ask())
    assert provider_error_of(raised.value) is None


@pytest.mark.parametrize("tool", [True, False])
def test_a_networks_exception_is_a_clients_where_it_came_through_it(tool: bool):
    """google.genai lets exceptions of its HTTP client pass; so does one that runs a tool."""
    refused = made("httpx.ConnectError")
    frames: dict[str, Any] = {"__name__": "google.genai.models", "refused": refused}
    exec("def ask(tool):\n    tool()\n\ndef send():\n    raise refused", frames)
    own: dict[str, Any] = {"__name__": "my_tools", "refused": refused}
    exec("def look():\n    raise refused", own)
    with pytest.raises(Exception) as raised:
        frames["ask"](own["look"] if tool else frames["send"])
    found = provider_error_of(raised.value)
    assert (None if found is None else found.kind) == (None if tool else "unreachable")
