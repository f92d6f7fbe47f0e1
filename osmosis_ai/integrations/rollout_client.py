"""The rollout of the current task, as a client of OpenAI's library.

The client is made for each call: a rollout's URL and key are its own, and a client belongs to one
event loop. Knows no agent library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..agents.context import RolloutContext, get_rollout_context

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MODEL_NAME = "osmosis-rollout"
"""What is asked for; the rollout's endpoint answers with the evaluated model."""


def current_rollout(who: str) -> RolloutContext:
    """Return the context of the running rollout; RuntimeError, naming `who`, outside of one."""
    found = get_rollout_context()
    if found is None:
        raise RuntimeError(
            f"{who} asks the model of a rollout, and none is running here: use it in the "
            f"`run` of an AgentWorkflow, or give the agent another model"
        )
    return found


@asynccontextmanager
async def rollout_client(who: str) -> AsyncIterator[AsyncOpenAI]:
    """Open a client of the running rollout's endpoint."""
    # The library's own kind of client: which HTTP library is below it depends on its version.
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    rollout = current_rollout(who)
    url = rollout.chat_completions_url
    # The bridge is plain HTTP on this machine: neither certificates nor a proxy lead there.
    plain: dict[str, Any] = {}
    if urlsplit(url).scheme == "http":
        plain = {"verify": False, "trust_env": False}
    async with (
        DefaultAsyncHttpxClient(timeout=None, **plain) as http,
        AsyncOpenAI(base_url=url, api_key=rollout.api_key, http_client=http) as client,
    ):
        yield client


def missing_library(error: ModuleNotFoundError, who: str, requirement: str) -> ModuleNotFoundError:
    """Return the error of an import with what to install in its message."""
    return ModuleNotFoundError(
        f"{who} needs {error.name!r}, which is not installed: pip install '{requirement}'",
        name=error.name,
    )
