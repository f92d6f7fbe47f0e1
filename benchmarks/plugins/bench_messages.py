"""In xdist's controller: the messages and bytes that it gets from its workers and sends them."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from typing import Any

import pytest
from execnet.gateway_base import Message

HEADER = 9
"""Bytes of execnet's own ahead of each message."""

counts = {"up": 0, "up_bytes": 0, "down": 0, "down_bytes": 0}
receive, send = Message.from_io, Message.to_io


def note(way: str, message: Message) -> None:
    """Count a message; there is one thread each way for a worker, and few are lost."""
    counts[way] += 1
    counts[f"{way}_bytes"] += HEADER + len(message.data)


def received(io: Any) -> Message:
    """Read a message."""
    message = receive(io)
    note("up", message)
    return message


def sent(message: Message, io: Any) -> None:
    """Write a message."""
    note("down", message)
    send(message, io)


if "PYTEST_XDIST_WORKER" not in os.environ:
    Message.from_io, Message.to_io = staticmethod(received), sent


@pytest.hookimpl(wrapper=True)
def pytest_unconfigure() -> Generator[None, None, None]:
    """Write what was found."""
    yield
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with open("bench_messages.json", "w") as file:
            json.dump(counts, file)
