"""From the window of rollouts to the HTTP client a model call passes few coroutines.

Each suspension of a rollout goes through all of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import osmosis_ai
import pytest_osmosis
from tests.support.endpoints import Ask
from tests.support.project import Project

MOST = 12
"""Coroutines of ours and the agent's; this number only falls."""
OURS = tuple(str(Path(package.__path__[0])) for package in (osmosis_ai, pytest_osmosis))
AGENT = """
import asyncio

tasks = []


async def agent(ctx):
    tasks.append(asyncio.current_task())
    answer = await ctx.chat(list(ctx.request.messages))
    return ctx.complete([*ctx.request.messages, answer.message], reward=1.0)
"""
BODY = json.dumps({"choices": [{"message": {"role": "assistant", "content": "a"}}]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    BODY
)


def chain_of(task: asyncio.Task[Any]) -> list[str]:
    """Return the coroutines that a task awaits, from the outermost to those of other packages."""
    found: list[str] = []
    inner: Any = task.get_coro()
    while (code := getattr(inner, "cr_code", None)) is not None:
        if code.co_filename.startswith(OURS) or code.co_filename.endswith("chain.py"):
            found.append(code.co_name)
        inner = inner.cr_await
    return found


def waiting_chain(tasks: list[asyncio.Task[Any]]) -> list[str]:
    """Return the chain of the task once it awaits the HTTP client; from another thread."""
    for _ in range(6000):
        chain = chain_of(tasks[-1])
        if "request" in chain:
            return chain
        time.sleep(0.01)
    raise AssertionError(f"the task awaits no HTTP client: {chain}")


def test_a_model_call_passes_at_most_so_many_coroutines(project: Project) -> None:
    project.write("chain.py", AGENT)
    project.rows("a")
    chains: list[list[str]] = []

    def answer(ask: Ask) -> Iterator[bytes]:
        tasks = sys.modules["chain"].tasks
        chains.append(waiting_chain(tasks))
        yield HEAD + BODY[:10]
        chains.append(waiting_chain(tasks))
        yield BODY[10:]

    project.endpoint.answers = answer
    session = project.run(agent="chain:agent", eval_fn=None)
    assert session.outcomes == {"passed": 1}
    assert len(chains) == 2
    for chain in chains:
        assert chain[0] == "_run" and "agent" in chain
        assert len(chain) <= MOST, chain
