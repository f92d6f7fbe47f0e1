"""Classification of the errors of an agent: its own, the endpoint's, or an internal one.

Knows exceptions only, not how a report shows them.
"""

from __future__ import annotations

import re
from json import JSONDecodeError
from typing import TYPE_CHECKING

from osmosis_ai.models.errors import ProviderError
from osmosis_ai.running.guards import CodeEnded

from ..run_result import NOT_STREAMED, WRONG_RETURN, WRONG_TOOLS
from ..user_code.agent import AgentFailed, WrongReturn, WrongTools
from .failure import Failure

if TYPE_CHECKING:
    from osmosis_ai.models.progress import CallProgress

    from ..user_code.agent import AgentResult, AgentRun


def classify_exception(error: Exception, run: AgentRun) -> Failure:
    """Classify what an agent raised."""
    from .failure_text import user_traceback
    from .root_cause import is_of_sharing, summed_up

    if isinstance(error, CodeEnded):
        return Failure("agent", f"the agent {error}", user_traceback(error.__cause__ or error))
    refused = _refusal_behind(error, run)
    if refused is not None and (refused.status is not None or not is_of_sharing(error)):
        return classify_provider_error(refused, run)
    message = str(error) if isinstance(error, AgentFailed) else summed_up(error)
    frames = None if isinstance(error, AgentFailed) else user_traceback(error)
    if isinstance(error, WrongReturn):
        return Failure("agent", message, fatal=True, kind=WRONG_RETURN)
    kind = WRONG_TOOLS if isinstance(error, WrongTools) else None
    return Failure("agent", message, frames, kind=kind)


def _refusal_behind(error: BaseException, run: AgentRun) -> ProviderError | None:
    """Return the endpoint's failure that an exception comes of, None where it is the agent's own.

    What was being handled when it was raised counts unless a later call was answered. What `record`
    or the bridge saw tells more of a call than its client does.
    """
    from osmosis_ai.models.client_exceptions import chain, is_of_network, provider_error_of

    llm = run.llm
    last = None if llm is None else llm.last_error
    if last is not None and last.is_silent:
        return last
    has_recovered = llm is not None and llm.num_llm_calls > 0 and last is None
    found = provider_error_of(error, with_context=not has_recovered)
    if last is None:
        return found
    if found is not None:
        bridge = "" if run.account is None else run.account.url
        seen = found.endpoint == last.endpoint and found.status == last.status
        return last if seen or f"//{found.endpoint}/" in bridge else found
    causes = [*chain(error)]
    if any(text in str(each) for each in causes for text in _words_of(last)):
        return last
    if run.account is None:
        return None
    # Behind the bridge any client may have been: one that raises, one whose reply was not read.
    unread = isinstance(error, AgentFailed | _NOT_READ) or any(map(is_of_network, causes))
    return last if unread else None


_NOT_READ = AttributeError | JSONDecodeError | LookupError | TypeError
"""What comes of a reply that was taken for an answer."""
_QUOTED = 12
"""Characters of an endpoint's words that are not in a text by chance."""


def _words_of(error: ProviderError) -> list[str]:
    """Return what an exception that quotes an endpoint's failure may hold of it."""
    return [text for text in (str(error), error.detail) if len(text) >= _QUOTED]


def classify_provider_error(error: ProviderError, run: AgentRun) -> Failure:
    """Return the failure for an error of a model call.

    A request that the endpoint refuses as such is the agent's. Whether a refusal concerns every
    row is decided for the whole session; one that names an option of ours is marked `fatal`.
    """
    if error.kind != "bad_request":
        return Failure("provider", str(error), kind=error.kind)
    names = {error.param, _SAME.get(error.param or "")}
    is_option = not names.isdisjoint({*run.params, *run.sent})
    return Failure("agent", str(error), fatal=error.fatal or is_option, kind=error.kind)


_SAME = {"max_completion_tokens": "max_tokens"}
"""Names that an endpoint may give a field of ours."""


def timed_out(limit_s: float, run: AgentRun) -> Failure:
    """Return the failure for an agent whose time is up; to be called before it is cancelled.

    It is the endpoint's where one call, with its retries, took more than half of the time without a
    part of its reply. One that is not streamed may have had a long answer: such runs are counted.
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
    is_told_apart = call.is_streamed or call.last_error is not None
    return Failure("provider", message, kind=call.kind if is_told_apart else NOT_STREAMED)


def _without(error: str, call: CallProgress) -> str:
    """The error of a try, without what the sentence that quotes it says itself."""
    said = error.replace(f" from {call.endpoint}", "", 1)
    found = re.fullmatch(r"no answer \((.*)\)", said, re.DOTALL)
    return found[1] if found else said


def _quotes(outcome: AgentResult, error: ProviderError) -> bool:
    """Return whether what the agent said last is the failure that it caught."""
    from osmosis_ai.messages import text_of

    last = outcome.messages[-1] if outcome.messages else {}
    return last.get("role") == "assistant" and str(error) in text_of(last.get("content"))


def reported(outcome: AgentResult, last: ProviderError | None, run: AgentRun) -> Failure | None:
    """Return the failure that an agent reports, or that the last reply was; None without one.

    The agent's client took such a reply for an answer, or its own answer quotes the sentence.
    """
    if outcome.error is None:
        if last is None or not (last.is_silent or _quotes(outcome, last)):
            return None
        return classify_provider_error(last, run)
    refused = last if outcome.cause is None else _refusal_behind(outcome.cause, run)
    if refused is not None:
        return classify_provider_error(refused, run)
    return Failure("agent", outcome.error or "the agent returned an error without a message")
