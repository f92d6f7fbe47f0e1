"""The faults of `endpoints.py`, by name: what an endpoint may do instead of answering.

`FAULTS` is the list of all of them: patterns of names, and the steps of the reply, or a function
that gives them for a request. A name may hold a parameter: `fault-429-retry-after-2` asks for two
seconds.
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

from .endpoints import USAGE, Ask, Step, completion, error_reply, reply

_TIMES = {"once": 1, "twice": 2}


def misbehave(ask: Ask) -> Iterable[Step] | None:
    """The steps for a model named `fault-…`; None when its faults for this row are used up."""
    name = ask.model.removeprefix("fault-")
    base, _, times = name.rpartition("-")
    if times in _TIMES:
        if ask.attempt > _TIMES[times]:
            return None
        name = base
    for pattern, fault in FAULTS.items():
        if found := re.fullmatch(pattern, name):
            return fault(ask, *found.groups()) if callable(fault) else fault
    return [error_reply(404, f"The model `{ask.model}` does not exist.", code="model_not_found")]


def says(message: Any, **kwargs: Any) -> list[Step]:
    """An ordinary completion with `message`."""
    return [reply(200, completion(message, **kwargs))]


def with_field(name: str, value: Any, kind: str) -> list[Step]:
    """A completion whose field has this value, or is absent."""
    body = completion("42")
    body[name] = value
    if kind == "absent":
        del body[name]
    return [reply(200, body)]


ANSWER = json.dumps(completion("42")).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
STATUSES = {
    "400": "This model's maximum context length is 8192 tokens, you asked for 9000",
    "401": "Incorrect API key provided",
    "403": "You may not use this",
    "422": "temperature must be below 2",
    "429": "Rate limit reached",
}
FLAKY: list[Step] = [
    error_reply(500, "oops"), error_reply(503, "overloaded"), error_reply(429, STATUSES["429"]),
    "reset",
]  # fmt: skip
PARTS = [{"type": "text", "text": "The answer "}, {"type": "text", "text": "is 42"}]
CONTENTS = {"null": None, "empty": "", "parts": PARTS, "number": 42}
USAGES = {"strings": "10", "nan": float("nan"), "negative": -1}
NO_OBJECT = {"null": None, "string": "hello", "list": []}
EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"


def slow_down(ask: Ask, code: str, name: str, value: str, seconds: float) -> list[Step]:
    """Refuse, and count as early what comes within so many seconds."""
    ask.hold(seconds)
    return [error_reply(int(code), "slow down", headers={name: value})]


def retry_after_date(ask: Ask, code: str, seconds: str) -> list[Step]:
    until = int(time()) + int(seconds)
    return slow_down(ask, code, "Retry-After", formatdate(until, usegmt=True), until - time())


def flaky(ask: Ask, percent: str) -> Iterable[Step]:
    """So many per cent of the tries fail, the same ones in every session."""
    draw = zlib.crc32(f"{ask.row}/{ask.attempt}".encode())
    if draw % 100 >= int(percent):
        return ask.endpoint.good_answer(ask)
    return [FLAKY[draw // 100 % 4]]


def trickling(head: bytes, lines: Callable[[int], bytes], *, pause_s: float = 0.01) -> Any:
    """A reply that goes on and on, a little at a time."""

    def steps(ask: Ask) -> Iterable[Step]:
        yield head
        for number in range(3000):
            yield lines(number)
            yield pause_s

    return steps


def huge(ask: Ask, mebibytes: str) -> Iterable[Step]:
    """A body of so many MiB, without saying how long it is."""
    yield CHUNKED
    for _ in range(int(mebibytes) * 16):
        yield b"10000\r\n" + b" " * 65536 + b"\r\n"
        yield 0.0
    yield b"0\r\n\r\n"


def packed(body: bytes, encoding: str = "gzip") -> list[Step]:
    """A body in an encoding, as it says."""
    return [reply(200, body, headers={"Content-Encoding": encoding})]


@cache
def _packed_mib(count: int) -> bytes:
    mib = b" " * 2**20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(mib) + packer.flush(zlib.Z_FULL_FLUSH)
    check = reduce(lambda sum_, _: zlib.crc32(mib, sum_), range(count), 0)
    header, end = gzip.compress(b"")[:10], struct.pack("<II", check, count * len(mib))
    return header + block * count + packer.flush() + end


def _deflated_raw() -> bytes:
    """The answer as a deflate stream without the zlib format around it."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(ANSWER) + packer.flush()


def quoting_key(ask: Ask, how: str) -> list[Step]:
    """Quotes the key that was sent, plain and escaped."""
    key = ask.headers.get("authorization", "").removeprefix("Bearer ")
    text = f"your key is {key}, in JSON {json.dumps({'key': key})}"
    return says(text) if how == "echo" else [error_reply(400, text)]


def error_object(ask: Ask, code: str) -> list[Step]:
    named = int(code) if code.isdigit() else code
    return [reply(200, {"error": {"message": "Provider returned error", "code": named}})]


def moved(status: int, where: str) -> list[Step]:
    return [reply(status, headers={"Location": where})]


def of_vllm(ask: Ask) -> list[Step]:
    message = f"The model `{ask.model}` does not exist."
    body = {"object": "error", "message": message, "type": "NotFoundError", "code": 404}
    return [reply(404, body)]


FAULTS: dict[str, Any] = {
    # Statuses.
    r"(4\d\d|5\d\d)": lambda ask, code: [
        error_reply(int(code), STATUSES.get(code, "overloaded"))
    ],
    "model-not-found": lambda ask: [
        error_reply(404, f"The model `{ask.model}` does not exist", code="model_not_found")
    ],
    "model-not-found-vllm": of_vllm,
    "model-not-found-ollama": lambda ask: [
        reply(404, {"error": {"message": f'model "{ask.model}" not found, try pulling it first'}})
    ],
    "model-not-found-sglang": lambda ask: [
        reply(400, {"object": "error", "message": f"Model '{ask.model}' not found", "code": 400})
    ],
    "model-not-found-deepseek": [
        error_reply(400, "Model Not Exist", code="invalid_request_error")
    ],
    "model-not-found-openrouter": lambda ask: [
        error_reply(400, f"{ask.model} is not a valid model ID", code=400)
    ],
    "no-route": [reply(404, {"detail": "Not Found"})],
    # LiteLLM's proxy without a database: of every key but its master key, and of none.
    "litellm-wrong-key": [
        error_reply(400, "No connected db.", code="400", kind="no_db_connection")
    ],
    "litellm-no-key": [
        reply(500, b"Internal Server Error", headers={"Content-Type": "text/plain"})
    ],
    # A gateway that fails where it looks a key up.
    "500-wrong-key": [
        error_reply(500, "Authentication Error, No api key passed in.", kind="auth_error")
    ],
    "gemini-wrong-key": [
        reply(400, [{"error": {"code": 400, "message": "API key not valid.", "status":
              "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}])
    ],
    "quota": [
        error_reply(429, "You exceeded your current quota.", code="insufficient_quota")
    ],
    r"(\d+)-no-retry": lambda ask, code: [
        error_reply(int(code), "do not", headers={"x-should-retry": "false"})
    ],
    r"(\d+)-retry": lambda ask, code: [
        error_reply(int(code), "do", headers={"x-should-retry": "true"})
    ],
    r"(429|503)-retry-after-([\d.]+)": lambda ask, code, seconds: slow_down(
        ask, code, "Retry-After", seconds, float(seconds)
    ),
    r"(429|503)-retry-after-ms-(\d+)": lambda ask, code, ms: slow_down(
        ask, code, "retry-after-ms", ms, int(ms) / 1000
    ),
    r"(429|503)-retry-after-date-(\d+)": retry_after_date,
    "(429|503)-retry-after-(garbage|nan|-5|inf)": lambda ask, code, text: [
        error_reply(int(code), "slow down", headers={"Retry-After": text})
    ],
    r"flaky-(\d+)": flaky,
    # Time.
    "silent": ["hang"],
    r"slow-([\d.]+)": lambda ask, seconds: [float(seconds), *ask.endpoint.good_answer(ask)],
    "trickle": trickling(HEAD + b"Content-Length: 3000\r\n\r\n", lambda number: b" "),
    "trickle-head": trickling(b"HTTP/1.1 200 OK\r\n", lambda number: b"X-%d: y\r\n" % number),
    # Connections. `stale` answers well, promises to keep the connection, and drops it.
    "(reset|close)(?:-before)?": lambda ask, ending: [ending],
    "(reset|close)-headers": lambda ask, ending: [HEAD, 0.01, ending],
    "(reset|close)-body": lambda ask, ending: [
        HEAD + b'Content-Length: 500\r\n\r\n{"choices": ', 0.01, ending
    ],
    "(reset|close)-chunk": lambda ask, ending: [CHUNKED + b'40\r\n{"choices": ', 0.01, ending],
    "stale": lambda ask: [*ask.endpoint.good_answer(ask), 0.01, "close"],
    "not-http": [b"220 mail.example ESMTP ready\r\n", "close"],
    "broken-chunk": [CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"],
    "big-headers": [
        HEAD + b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(100))
        + b"Content-Length: 2\r\n\r\n{}"
    ],
    "endless-headers": trickling(HEAD + b"X-Long: ", lambda number: b"y" * 65536, pause_s=0.001),
    # Good answers: without a length, after early hints, in chunks of ten bytes.
    "http10": [HEAD.replace(b"1.1", b"1.0") + b"\r\n" + ANSWER, "close"],
    "interim": lambda ask: [EARLY_HINTS, *ask.endpoint.good_answer(ask)],
    "chunked": [
        CHUNKED, 0.001,
        b"".join(b"%x\r\n%b\r\n" % (len(part), part) for start in range(0, len(ANSWER), 10)
                 for part in [ANSWER[start : start + 10]]),
        b"0\r\n\r\n",
    ],
    # Bodies that are no JSON object.
    "empty": [reply(200, b"")],
    "204": [reply(204, b"", length=False)],
    "bad-json": [reply(200, b'{"choices": [')],
    "html": [
        reply(200, b"<html><body><h1>Welcome to nginx!</h1>" + b"<p>lorem</p>" * 400,
              headers={"Content-Type": "text/html"})
    ],
    "json-(null|string|list)": lambda ask, kind: [reply(200, NO_OBJECT[kind])],
    "nested": [reply(200, b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")],
    "digits": [reply(200, b'{"choices": [], "created": ' + b"1" * 5000 + b"}")],
    "(utf-16|latin-1|utf-8-sig)": lambda ask, encoding: [
        reply(200, json.dumps(completion("café"), ensure_ascii=False).encode(encoding))
    ],
    "stream": trickling(
        HEAD.replace(b"application/json", b"text/event-stream") + b"\r\n",
        lambda number: b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n',
    ),
    # JSON that is no answer.
    "choices-(empty|absent|null)": lambda ask, how: with_field(
        "choices", [] if how == "empty" else None, how
    ),
    "message-null": with_field("choices", [{"index": 0, "message": None}], "null"),
    r"error-object-(\w+)": error_object,
    # Answers that are unusual, and valid or not.
    "content-(null|empty|parts|number)": lambda ask, kind: says(
        {"role": "assistant", "content": CONTENTS[kind]}
    ),
    "content-absent": says({"role": "assistant"}),
    "refusal": says({"role": "assistant", "content": None, "refusal": "I cannot help with that"}),
    "finish-(length|content_filter|null)": lambda ask, reason: says(
        "The answer is", finish_reason=None if reason == "null" else reason
    ),
    "usage-(absent|null|strings|nan|negative)": lambda ask, kind: with_field(
        "usage", dict.fromkeys(USAGE, USAGES[kind]) if kind in USAGES else None, kind
    ),
    "tool-calls-text": says({"role": "assistant", "content": "42", "tool_calls": "add(1, 2)"}),
    "surrogate": says("lone \ud83d and paired \U0001f600"),
    "control": says("nul \x00 escape \x1b[31m bell \x07 arabic ٤٢"),
    "(echo|error)-key": quoting_key,
    # Size and encoding; the bomb is about 100 kB that unpack to 100 MiB.
    r"huge-(\d+)": huge,
    "huge-length": [HEAD + b"Content-Length: 52428800\r\n\r\n{", "hang"],
    "gzip-bomb": lambda ask: packed(_packed_mib(100)),
    "gzip-broken": packed(b"this is not gzip"),
    "gzip-cut": packed(gzip.compress(ANSWER)[:-20]),
    "gzip-members": packed(gzip.compress(ANSWER[:20]) + gzip.compress(ANSWER[20:])),
    "gzip-good": packed(gzip.compress(ANSWER)),
    "deflate-good": packed(zlib.compress(ANSWER), "deflate"),
    "deflate-raw": packed(_deflated_raw(), "deflate"),
    "encoding-br": packed(b"\x0b\x02\x80", "br"),
    # Redirects.
    "redirect-(30[12378])": lambda ask, code: moved(
        int(code), f"{ask.endpoint.base_url}/elsewhere"
    ),
    "redirect-loop": lambda ask: moved(307, ask.path),
    "redirect-other": moved(307, "http://user:pass@127.0.0.2:9/v1/chat/completions?key=abc"),
}  # fmt: skip
