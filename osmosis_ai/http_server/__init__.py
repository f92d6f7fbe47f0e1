"""A small HTTP/1.1 server for loopback: that of the embedded endpoint and the bridge.

    Request, Response, problem    what comes in, what goes out, OpenAI's error object
    Connection                    one client: bytes to requests, responses to bytes
    ThreadedServer                a port, a thread with its own event loop, and their end

Knows no chat, no keys and no routes: a `Handler` turns a `Request` into a `Response`.
"""

from __future__ import annotations

from .connection import MAX_BODY, MAX_HEAD, Connection, Handler
from .messages import Request, Response, problem
from .server import ThreadedServer

__all__ = [
    "MAX_BODY",
    "MAX_HEAD",
    "Connection",
    "Handler",
    "Request",
    "Response",
    "ThreadedServer",
    "problem",
]
