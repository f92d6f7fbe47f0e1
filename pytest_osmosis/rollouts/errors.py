"""Classification of the errors of an agent: its own, the endpoint's, or an internal one.

Knows exceptions only, not how a report shows them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osmosis_ai.error_text import named_error
from osmosis_ai.models.errors import ProviderError
from osmosis_ai.running.guards import CodeEnded

from ..run_result import WRONG_RETURN, WRONG_TOOLS
from ..user_code.agent import AgentFailed, WrongReturn, WrongTools
from .failure_text import user_traceback

if TYPE_CHECKING:
    from osmosis_ai.models.progress import CallProgress

    from ..run_result import ErrorType
    from ..user_code.agent import AgentRun


@dataclass(slots=True)
class Failure:
    """Why a run has no scores."""

    type: ErrorType
    message: str
    frames: str | None = None
    """The user's frames, where there are any."""
    fatal: bool = False
    """No other run can succeed either."""
    kind: str | None = None
    """The provider's kind of error; `WRONG_TOOLS`, `WRONG_RETURN`."""


def classify_exception(error: Exception, run: AgentRun) -> Failure:
    """Classify what an agent raised."""
    if isinstance(error, CodeEnded):
        return Failure("agent", f"the agent {error}", user_traceback(error))
    message = str(error) if isinstance(error, AgentFailed) else named_error(error)
    if isinstance(error, ProviderError):
        return classify_provider_error(error)
    refused = run.llm.last_error if run.llm is not None else None
    # Behind the bridge, a client's own exception stands for the endpoint's.
    if refused is not None and (run.account is not None or refused in _causes(error)):
        return classify_provider_error(refused)
    frames = None if isinstance(error, AgentFailed) else user_traceback(error)
    if isinstance(error, WrongReturn):
        return Failure("agent", message, fatal=True, kind=WRONG_RETURN)
    kind = WRONG_TOOLS if isinstance(error, WrongTools) else None
    return Failure("agent", message, frames, kind=kind)


def classify_provider_error(error: ProviderError) -> Failure:
    """Return the failure for an error of a model call.

    A request that the endpoint refuses as such is the agent's, unless every one is refused alike.
    """
    is_own = error.kind == "bad_request" and not error.fatal
    whose: ErrorType = "agent" if is_own else "provider"
    return Failure(whose, str(error), fatal=error.fatal, kind=error.kind)


def timed_out(limit_s: float, run: AgentRun) -> Failure:
    """Return the failure for an agent whose time is up; to be called before it is cancelled.

    It is the endpoint's where one call, with its retries, took more than half of the time.
    """
    call = run.llm.longest_wait() if run.llm is not None else None
    waited_s = 0.0 if call is None else call.waited_s
    if call is None or waited_s <= limit_s / 2:
        return Failure("timeout", f"the agent timed out after {limit_s:g} s")
    last = "" if call.last_error is None else f"; the last: {_without(call.last_error, call)}"
    tries = f" ({call.tries} tries{last})" if call.tries > 1 else ""
    message = (
        f"no answer from {call.endpoint} in {waited_s:.1f} s{tries}, "
        f"when the agent's {limit_s:g} s were up"
    )
    return Failure("provider", message, kind=call.kind)


def _without(error: str, call: CallProgress) -> str:
    """The error of a try, without what the sentence that quotes it says itself."""
    said = error.replace(f" from {call.endpoint}", "", 1)
    found = re.fullmatch(r"no answer \((.*)\)", said, re.DOTALL)
    return found[1] if found else said


def agent_reported(message: str, run: AgentRun) -> Failure:
    """Return the failure for an agent that reported an error instead of raising one."""
    refused = run.llm.last_error if run.llm is not None else None
    if refused is not None:
        return classify_provider_error(refused)
    return Failure("agent", message or "the agent returned an error without a message")


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and len(chain) < 20:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__
    return chain
