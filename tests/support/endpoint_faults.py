"""The faults of `endpoints.py`, by name: what an endpoint may do instead of answering.

Each function takes the request and gives the steps of the reply. A name may hold a parameter:
`fault-429-retry-after-2` asks for two seconds. `FAULTS` is the list of all of them.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import cache, reduce
from time import time
from typing import Any

from .endpoints import USAGE, Ask, Step, completion, error_reply, reply, tool_call

Fault = Callable[..., Iterable[Step]]
FAULTS: list[tuple[re.Pattern[str], Fault]] = []
_TIMES = {"once": 1, "twice": 2}


def misbehave(ask: Ask) -> Iterable[Step] | None:
    """The steps for a model named `fault-…`; None when its faults for this row are used up."""
    name = ask.model.removeprefix("fault-")
    base, _, times = name.rpartition("-")
    if times in _TIMES:
        if ask.attempt > _TIMES[times]:
            return None
        name = base
    for pattern, fault in FAULTS:
        found = pattern.fullmatch(name)
        if found is not None:
            return fault(ask, *found.groups())
    return [error_reply(404, f"The model `{ask.model}` does not exist.", code="model_not_found")]


def fault(pattern: str) -> Callable[[Fault], Fault]:
    """Register a fault under the names that `pattern` matches."""

    def register(function: Fault) -> Fault:
        FAULTS.append((re.compile(pattern), function))
        return function

    return register


def says(message: Any, **kwargs: Any) -> list[Step]:
    """An ordinary completion with `message`."""
    return [reply(200, completion(message, **kwargs))]


# Statuses.


@fault(r"(4\d\d|5\d\d)")
def status(ask: Ask, code: str) -> list[Step]:
    messages = {
        "400": "This model's maximum context length is 8192 tokens, you asked for 9000",
        "401": "Incorrect API key provided",
        "403": "You may not use this",
        "422": "temperature must be below 2",
        "429": "Rate limit reached",
    }
    return [error_reply(int(code), messages.get(code, "overloaded"))]


@fault(r"model-not-found")
def model_not_found(ask: Ask) -> list[Step]:
    message = f"The model `{ask.model}` does not exist or you do not have access to it."
    return [error_reply(404, message, code="model_not_found", kind="invalid_request_error")]


@fault(r"model-not-found-vllm")
def model_not_found_vllm(ask: Ask) -> list[Step]:
    message = f"The model `{ask.model}` does not exist."
    body = {"object": "error", "message": message, "type": "NotFoundError", "code": 404}
    return [reply(404, body)]


@fault(r"model-not-found-ollama")
def model_not_found_ollama(ask: Ask) -> list[Step]:
    message = f'model "{ask.model}" not found, try pulling it first'
    return [reply(404, {"error": {"message": message, "type": "api_error"}})]


@fault(r"model-not-found-sglang")
def model_not_found_sglang(ask: Ask) -> list[Step]:
    message = f"Model '{ask.model}' not found"
    return [reply(400, {"object": "error", "message": message, "type": "BadRequest", "code": 400})]


@fault(r"model-not-found-deepseek")
def model_not_found_deepseek(ask: Ask) -> list[Step]:
    return [error_reply(400, "Model Not Exist", code="invalid_request_error")]


@fault(r"model-not-found-openrouter")
def model_not_found_openrouter(ask: Ask) -> list[Step]:
    return [error_reply(400, f"{ask.model} is not a valid model ID", code=400)]


@fault(r"no-route")
def no_route(ask: Ask) -> list[Step]:
    return [reply(404, {"detail": "Not Found"})]


@fault(r"litellm-wrong-key")
def litellm_wrong_key(ask: Ask) -> list[Step]:
    """LiteLLM's proxy without a database, of every key but its master key."""
    return [error_reply(400, "No connected db.", code="400", kind="no_db_connection")]


@fault(r"500-wrong-key")
def wrong_key_in_a_500(ask: Ask) -> list[Step]:
    """A gateway that fails where it looks a key up."""
    return [error_reply(500, "Authentication Error, No api key passed in.", kind="auth_error")]


@fault(r"litellm-no-key")
def litellm_no_key(ask: Ask) -> list[Step]:
    """LiteLLM's proxy without a database, of a request without a key."""
    return [reply(500, b"Internal Server Error", headers={"Content-Type": "text/plain"})]


@fault(r"gemini-wrong-key")
def gemini_wrong_key(ask: Ask) -> list[Step]:
    error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}
    return [reply(400, [{"error": {**error, "details": [{"reason": "API_KEY_INVALID"}]}}])]


@fault(r"quota")
def quota(ask: Ask) -> list[Step]:
    message = "You exceeded your current quota, please check your plan and billing details."
    return [error_reply(429, message, code="insufficient_quota", kind="insufficient_quota")]


@fault(r"(\d+)-no-retry")
def no_retry(ask: Ask, code: str) -> list[Step]:
    return [error_reply(int(code), "do not", headers={"x-should-retry": "false"})]


@fault(r"(\d+)-retry")
def please_retry(ask: Ask, code: str) -> list[Step]:
    return [error_reply(int(code), "do", headers={"x-should-retry": "true"})]


@fault(r"(429|503)-retry-after-([\d.]+)")
def retry_after(ask: Ask, code: str, seconds: str) -> list[Step]:
    ask.hold(float(seconds))
    return [error_reply(int(code), "slow down", headers={"Retry-After": seconds})]


@fault(r"(429|503)-retry-after-ms-(\d+)")
def retry_after_ms(ask: Ask, code: str, milliseconds: str) -> list[Step]:
    ask.hold(int(milliseconds) / 1000)
    return [error_reply(int(code), "slow down", headers={"retry-after-ms": milliseconds})]


@fault(r"(429|503)-retry-after-date-(\d+)")
def retry_after_date(ask: Ask, code: str, seconds: str) -> list[Step]:
    until = int(time()) + int(seconds)
    ask.hold(until - time())
    return [
        error_reply(int(code), "slow down", headers={"Retry-After": formatdate(until, usegmt=True)})
    ]


@fault(r"(429|503)-retry-after-(garbage|nan|-5|inf)")
def retry_after_garbage(ask: Ask, code: str, text: str) -> list[Step]:
    return [error_reply(int(code), "slow down", headers={"Retry-After": text})]


@fault(r"flaky-(\d+)")
def flaky(ask: Ask, percent: str) -> Iterable[Step]:
    """So many per cent of the tries fail, the same ones in every session."""
    draw = zlib.crc32(f"{ask.row}/{ask.attempt}".encode())
    if draw % 100 >= int(percent):
        return ask.endpoint.good_answer(ask)
    kinds: list[Step] = [
        error_reply(500, "oops"),
        error_reply(503, "overloaded"),
        error_reply(429, "Rate limit reached"),
        "reset",
    ]
    return [kinds[draw // 100 % 4]]


# Time.


@fault(r"silent")
def silent(ask: Ask) -> list[Step]:
    return ["hang"]


@fault(r"slow-([\d.]+)")
def slow(ask: Ask, seconds: str) -> list[Step]:
    return [float(seconds), *ask.endpoint.good_answer(ask)]


@fault(r"trickle")
def trickle(ask: Ask) -> Iterable[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3000\r\n\r\n"
    for _ in range(3000):
        yield b" "
        yield 0.01


@fault(r"trickle-head")
def trickle_head(ask: Ask) -> Iterable[Step]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in range(3000):
        yield b"X-%d: y\r\n" % number
        yield 0.01


# Connections.

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@fault(r"(reset|close)(?:-before)?")
def broken_before(ask: Ask, ending: Any) -> list[Step]:
    return [ending]


@fault(r"(reset|close)-headers")
def broken_in_headers(ask: Ask, ending: Any) -> list[Step]:
    return [_HEAD, 0.01, ending]


@fault(r"(reset|close)-body")
def broken_in_body(ask: Ask, ending: Any) -> list[Step]:
    return [_HEAD + b'Content-Length: 500\r\n\r\n{"choices": ', 0.01, ending]


@fault(r"(reset|close)-chunk")
def broken_in_chunk(ask: Ask, ending: Any) -> list[Step]:
    return [_HEAD + b'Transfer-Encoding: chunked\r\n\r\n40\r\n{"choices": ', 0.01, ending]


@fault(r"stale")
def stale(ask: Ask) -> list[Step]:
    """Answers well, promises to keep the connection, and drops it."""
    return [*ask.endpoint.good_answer(ask), 0.01, "close"]


@fault(r"not-http")
def not_http(ask: Ask) -> list[Step]:
    return [b"220 mail.example ESMTP ready\r\n", "close"]


@fault(r"broken-chunk")
def broken_chunk(ask: Ask) -> list[Step]:
    return [_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"]


@fault(r"big-headers")
def big_headers(ask: Ask) -> list[Step]:
    fields = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(100))
    return [_HEAD + fields + b"Content-Length: 2\r\n\r\n{}"]


@fault(r"endless-headers")
def endless_headers(ask: Ask) -> Iterable[Step]:
    yield _HEAD + b"X-Long: "
    for _ in range(3000):
        yield b"y" * 65536
        yield 0.001


@fault(r"http10")
def http10(ask: Ask) -> list[Step]:
    """No length, no chunks: the body ends where the connection does. A good answer."""
    body = json.dumps(completion("42")).encode()
    return [b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body, "close"]


@fault(r"interim")
def interim(ask: Ask) -> list[Step]:
    """103 Early Hints, then a good answer."""
    return [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", *ask.endpoint.good_answer(ask)]


@fault(r"chunked")
def chunked(ask: Ask) -> list[Step]:
    """A good answer in chunks of ten bytes."""
    body = json.dumps(completion("42")).encode()
    parts = [body[start : start + 10] for start in range(0, len(body), 10)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return [_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", 0.001, chunks, b"0\r\n\r\n"]


# Bodies that are no JSON object.


@fault(r"empty")
def empty(ask: Ask) -> list[Step]:
    return [reply(200, b"")]


@fault(r"204")
def no_content(ask: Ask) -> list[Step]:
    return [reply(204, b"", length=False)]


@fault(r"bad-json")
def bad_json(ask: Ask) -> list[Step]:
    return [reply(200, b'{"choices": [')]


@fault(r"html")
def html(ask: Ask) -> list[Step]:
    page = b"<html><body><h1>Welcome to nginx!</h1>" + b"<p>lorem</p>" * 400
    return [reply(200, page, headers={"Content-Type": "text/html"})]


@fault(r"json-(null|string|list)")
def json_of_another_type(ask: Ask, kind: str) -> list[Step]:
    return [reply(200, {"null": None, "string": "hello", "list": []}[kind])]


@fault(r"nested")
def nested(ask: Ask) -> list[Step]:
    return [reply(200, b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")]


@fault(r"digits")
def digits(ask: Ask) -> list[Step]:
    return [reply(200, b'{"choices": [], "created": ' + b"1" * 5000 + b"}")]


@fault(r"(utf-16|latin-1|utf-8-sig)")
def encoded(ask: Ask, encoding: str) -> list[Step]:
    text = json.dumps(completion("café"), ensure_ascii=False)
    return [reply(200, text.encode(encoding))]


@fault(r"stream")
def stream(ask: Ask) -> Iterable[Step]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    for _ in range(1000):
        yield b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n'
        yield 0.01


# JSON that is no answer.


@fault(r"choices-(empty|absent|null)")
def no_choices(ask: Ask, how: str) -> list[Step]:
    body = completion("x")
    body["choices"] = [] if how == "empty" else None
    if how == "absent":
        del body["choices"]
    return [reply(200, body)]


@fault(r"message-null")
def message_null(ask: Ask) -> list[Step]:
    body = completion("x")
    body["choices"][0]["message"] = None
    return [reply(200, body)]


@fault(r"error-object-(\w+)")
def error_object(ask: Ask, code: str) -> list[Step]:
    named: str | int = int(code) if code.isdigit() else code
    return [reply(200, {"error": {"message": "Provider returned error", "code": named}})]


# Answers that are unusual, and valid or not.


@fault(r"content-(null|empty|absent|parts|number)")
def content(ask: Ask, kind: str) -> list[Step]:
    parts = [{"type": "text", "text": "The answer "}, {"type": "text", "text": "is 42"}]
    contents: dict[str, Any] = {"null": None, "empty": "", "parts": parts, "number": 42}
    message = {"role": "assistant", "content": contents.get(kind)}
    if kind == "absent":
        del message["content"]
    return says(message)


@fault(r"refusal")
def refusal(ask: Ask) -> list[Step]:
    return says({"role": "assistant", "content": None, "refusal": "I cannot help with that"})


@fault(r"finish-(length|content_filter|null)")
def finish(ask: Ask, reason: str) -> list[Step]:
    return says("The answer is", finish_reason=None if reason == "null" else reason)


@fault(r"usage-(absent|null|strings|nan|negative)")
def usage(ask: Ask, kind: str) -> list[Step]:
    body = completion("42")
    values: dict[str, Any] = {"strings": "10", "nan": float("nan"), "negative": -1}
    body["usage"] = dict.fromkeys(USAGE, values.get(kind)) if kind in values else None
    if kind == "absent":
        del body["usage"]
    return [reply(200, body)]


@fault(r"tool-arguments-(bad|dict|null|list)")
def tool_arguments(ask: Ask, kind: str) -> list[Step]:
    arguments: dict[str, Any] = {"bad": '{"a": ', "dict": {"a": 1}, "list": [1]}
    return says(tool_call("add", arguments.get(kind)), finish_reason="tool_calls")


@fault(r"tool-no-id")
def tool_without_id(ask: Ask) -> list[Step]:
    return says(tool_call("add", "{}", call_id=None), finish_reason="tool_calls")


@fault(r"tool-calls-(null|empty|text)")
def tool_calls_of_another_type(ask: Ask, kind: str) -> list[Step]:
    kinds: dict[str, Any] = {"null": None, "empty": [], "text": "add(1, 2)"}
    return says({"role": "assistant", "content": "42", "tool_calls": kinds[kind]})


@fault(r"surrogate")
def surrogate(ask: Ask) -> list[Step]:
    return says("lone \ud83d and paired \U0001f600")


@fault(r"control")
def control(ask: Ask) -> list[Step]:
    return says("nul \x00 escape \x1b[31m bell \x07 arabic ٤٢")


@fault(r"(echo|error)-key")
def quoting_key(ask: Ask, how: str) -> list[Step]:
    """Quotes the key that was sent, plain and escaped."""
    key = ask.headers.get("authorization", "").removeprefix("Bearer ")
    text = f"your key is {key}, in JSON {json.dumps({'key': key})}"
    return says(text) if how == "echo" else [error_reply(400, text)]


# Size and encoding.


@fault(r"huge-(\d+)")
def huge(ask: Ask, mebibytes: str) -> Iterable[Step]:
    """A body of so many MiB, without saying how long it is."""
    yield _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    for _ in range(int(mebibytes) * 16):
        yield b"10000\r\n" + b" " * 65536 + b"\r\n"
        yield 0.0
    yield b"0\r\n\r\n"


@fault(r"huge-length")
def huge_length(ask: Ask) -> list[Step]:
    return [_HEAD + b"Content-Length: 52428800\r\n\r\n{", "hang"]


_GZIP = {"Content-Encoding": "gzip"}


@fault(r"gzip-bomb")
def gzip_bomb(ask: Ask) -> list[Step]:
    """About 100 kB that unpack to 100 MiB."""
    return [reply(200, _packed_mib(100), headers=_GZIP)]


@cache
def _packed_mib(count: int) -> bytes:
    mib = b" " * 2**20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(mib) + packer.flush(zlib.Z_FULL_FLUSH)
    check = reduce(lambda sum_, _: zlib.crc32(mib, sum_), range(count), 0)
    header, end = gzip.compress(b"")[:10], struct.pack("<II", check, count * len(mib))
    return header + block * count + packer.flush() + end


@fault(r"gzip-broken")
def gzip_broken(ask: Ask) -> list[Step]:
    return [reply(200, b"this is not gzip", headers=_GZIP)]


@fault(r"gzip-cut")
def gzip_cut(ask: Ask) -> list[Step]:
    body = gzip.compress(json.dumps(completion("42")).encode())
    return [reply(200, body[:-20], headers=_GZIP)]


@fault(r"gzip-members")
def gzip_members(ask: Ask) -> list[Step]:
    """A good answer in two gzip members."""
    body = json.dumps(completion("42")).encode()
    return [reply(200, gzip.compress(body[:20]) + gzip.compress(body[20:]), headers=_GZIP)]


@fault(r"deflate-raw")
def deflate_raw(ask: Ask) -> list[Step]:
    """A good answer as a deflate stream without the zlib format around it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = packer.compress(json.dumps(completion("42")).encode()) + packer.flush()
    return [reply(200, packed, headers={"Content-Encoding": "deflate"})]


@fault(r"(gzip|deflate)-good")
def compressed(ask: Ask, encoding: str) -> list[Step]:
    body = json.dumps(completion("42")).encode()
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    return [reply(200, packed, headers={"Content-Encoding": encoding})]


@fault(r"encoding-br")
def unknown_encoding(ask: Ask) -> list[Step]:
    return [reply(200, b"\x0b\x02\x80", headers={"Content-Encoding": "br"})]


# Redirects.


@fault(r"redirect-(30[12378])")
def redirect(ask: Ask, code: str) -> list[Step]:
    return [reply(int(code), headers={"Location": f"{ask.endpoint.base_url}/elsewhere"})]


@fault(r"redirect-loop")
def redirect_loop(ask: Ask) -> list[Step]:
    return [reply(307, headers={"Location": ask.path})]


@fault(r"redirect-other")
def redirect_other(ask: Ask) -> list[Step]:
    where = "http://user:pass@127.0.0.2:9/v1/chat/completions?key=abc"
    return [reply(307, headers={"Location": where})]
