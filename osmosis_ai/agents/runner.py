"""The execution of an agent loop, in an evaluation and in the RolloutServer.

Builds the context, awaits the agent and checks its result. Knows neither the origin of the request
nor the use of the result, and sets no deadline.
"""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any

from ..error_text import error_text
from .base import AgentFunction, as_agent, owner_of_run
from .context import RolloutContext
from .errors import OsmosisValidationError, UnusableReturn
from .results import RolloutResult, finite_number

if TYPE_CHECKING:
    from .base import RolloutAgentLoop
    from .client import LLMClient
    from .request import RolloutRequest


async def run_rollout(
    agent: RolloutAgentLoop | AgentFunction,
    request: RolloutRequest,
    llm: LLMClient,
    *,
    tools: Sequence[Any] | None = None,
    debug_dir: str | os.PathLike[str] | None = None,
) -> RolloutResult:
    """Run `agent` once; its exceptions propagate unchanged.

    `tools` is what its `get_tools` returned, if that was called already. Raises
    OsmosisValidationError when the agent's `run` breaks its contract.
    """
    loop = as_agent(agent)
    if tools is None:
        tools = loop.get_tools(request)
    ctx = RolloutContext(request, tools, llm, debug_dir=debug_dir)
    with ctx:
        result = await begin(loop, ctx)
    return measured(loop, result, ctx)


def begin(loop: RolloutAgentLoop, ctx: RolloutContext) -> Awaitable[Any]:
    """Call the loop's `run`, in its context, and return what is to be awaited there."""
    running: Any = loop.run(ctx)
    if not inspect.isawaitable(running):
        raise _broken(loop, f"is not async: it returned {_type_name(running)}")
    return running


def measured(agent: RolloutAgentLoop, result: Any, ctx: RolloutContext) -> RolloutResult:
    """Return it, checked, with the metrics of its context where it has none of its own."""
    known = checked(agent, result)
    if known.metrics is None:
        known.metrics = ctx.metrics()
    return known


def checked(agent: RolloutAgentLoop, result: Any) -> RolloutResult:
    """Return what a loop's `run` has returned, as the rest of the project relies on it."""
    if not isinstance(result, RolloutResult):
        expected = "expected RolloutResult, as `return ctx.complete(messages)` gives it"
        kind = OsmosisValidationError if result is None else UnusableReturn
        raise kind(f"{owner_of_run(agent)} returned {_type_name(result)}; {expected}")
    if result.status not in ("COMPLETED", "ERROR"):
        raise _broken(agent, f"returned status {result.status!r}; expected COMPLETED or ERROR")
    messages: Any = result.final_messages
    if not isinstance(messages, list) or [one for one in messages if not isinstance(one, dict)]:
        raise _broken(agent, "returned final_messages that are not a list of dicts")
    if result.reward is not None:
        result.reward = _finite(agent, result.reward)
    if isinstance(result.error_message, BaseException):
        result.error_message = error_text(result.error_message)
    if (metrics := result.metrics) is not None:
        tool_calls = getattr(metrics, "num_tool_calls", None)
        if type(tool_calls) is not int:
            metrics.num_tool_calls = _whole(agent, tool_calls)
    return result


def _whole(agent: RolloutAgentLoop, number: Any) -> int:
    try:
        return operator.index(number)
    except TypeError:
        what = f"returned metrics.num_tool_calls {number!r}; expected a whole number"
        raise _broken(agent, what) from None


def _finite(agent: RolloutAgentLoop, reward: Any) -> float:
    try:
        return finite_number(reward, "reward")
    except ValueError:
        raise _broken(agent, f"returned reward {reward!r}; expected a finite number") from None


def _broken(agent: RolloutAgentLoop, what: str) -> OsmosisValidationError:
    return OsmosisValidationError(f"{owner_of_run(agent)} {what}")


def _type_name(value: Any) -> str:
    return "None" if value is None else type(value).__name__
