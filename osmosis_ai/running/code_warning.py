"""What user code does to the session, for pytest's summary of warnings. Knows no pytest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any


class BlockedLoop(UserWarning):
    """User code blocks the event loop."""


class CallLeftBehind(UserWarning):
    """An agent ended while one of its tasks waited for the model."""


CATEGORIES = {category.__name__: category for category in (BlockedLoop, CallLeftBehind)}


@dataclass(frozen=True, slots=True)
class CodeWarning:
    """One warning, and the place that it is about."""

    category: str
    """One of `CATEGORIES`."""
    text: str
    filename: str
    line: int


def call_left_behind(agent: str, task: asyncio.Task[Any] | None) -> CodeWarning:
    """Return the warning about a task in the middle of a model call whose rollout has ended."""
    code = getattr(None if task is None else task.get_coro(), "cr_code", None)
    name = "a task" if code is None else f"`{code.co_name}`"
    text = (
        f"{agent}: {name} still waited for the model when its rollout ended: the call may be paid, "
        "and is in no figure. Await every task before you return"
    )
    filename, line = (agent, 0) if code is None else (code.co_filename, code.co_firstlineno)
    return CodeWarning(CallLeftBehind.__name__, text, filename, line)
