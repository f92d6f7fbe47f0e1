"""What a program printed, read as the end of its rollout.

A list of messages, an object with `messages` (and perhaps `reward`), or else plain text: the last
assistant message.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ..rollouts.errors import AgentFailed
from .agent import AgentResult, count_tool_results
from .messages import last_assistant_text

REWARD_QUOTED = 40
"""Characters of a reward that an error quotes."""

Messages = list[dict[str, Any]]


def read_printed(text: str, *, prompt: Messages, recorded: Messages) -> AgentResult:
    """The outcome that `text` tells; AgentFailed when it is an object that is none.

    `recorded` is the conversation as the bridge saw it: what plain text stands at the end of.
    """
    text = text.strip()
    found = _json(text)
    if isinstance(found, dict) and "messages" in found:
        return _from_object(found)
    if _are_messages(found):
        return _outcome(found)
    if not text:
        if not recorded:
            raise AgentFailed("the program printed nothing and asked the model nothing")
        return _outcome(recorded)
    if last_assistant_text(recorded).strip() == text:
        return _outcome(recorded)
    return _outcome([*(recorded or prompt), {"role": "assistant", "content": text}])


def _from_object(found: dict[str, Any]) -> AgentResult:
    if not _are_messages(found["messages"]) and found["messages"] != []:
        raise AgentFailed("the program printed 'messages' that are not a list of messages")
    outcome = _outcome(found["messages"])
    reward = found.get("reward")
    if reward is not None:
        outcome.reward = _finite(reward)
    error = found.get("error")
    if error:
        outcome.error = str(error)
    return outcome


def _finite(reward: Any) -> float:
    try:
        number = float(reward) if isinstance(reward, (int, float)) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise AgentFailed(
            f"the program printed the reward {repr(reward)[:REWARD_QUOTED]}; expected a number"
        )
    return number


def _outcome(messages: Messages) -> AgentResult:
    return AgentResult(messages, tool_calls=count_tool_results(messages))


def _json(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _are_messages(found: object) -> bool:
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in found)
    )
