"""Failures inside of replies, and the one sentence that users read of a fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..secret import Redactor
from .errors import (
    DETAIL_LIMIT,
    FATAL_KINDS,
    UNSUPPORTED,
    CallFault,
    ProviderError,
    clip,
    efforts,
)
from .retry import RETRY_AFTER_LIMIT_S, CallFailed, RetryPolicy, in_words
from .transport.base_url import BaseURL

_PREFIXES = frozenset({"openai", "hosted_vllm", "litellm_proxy", "lm_studio", "ollama", "vllm"})
"""What LiteLLM has before the names of models at such endpoints, and they themselves have not."""

_NO_ROUTE = re.compile(
    r"^.{0,30}not found.{0,10}$|^$|<html|cannot post|no route|unknown (?:path|url)"
)
"""What servers say of a path that they do not have."""


def failure_in(
    data: Mapping[str, Any], *, model: str = "", policy: RetryPolicy | None = None
) -> CallFault | None:
    """Return the failure that a completion tells although its status says success.

    `data` is the whole JSON of a reply, or of one event of a streamed one: of chat completions,
    Anthropic's messages or OpenAI's responses. It fails by a top-level `error`, by the `error` of a
    choice or of its message, or by a finish reason that is none of an answer (`error`, `abort`,
    `cancelled`, ...). None: it is an answer, also with an unknown finish reason, or a part
    of one.
    """
    policy = policy or RetryPolicy()
    inner = data.get("response")  # of an event of the Responses API
    choices = data.get("choices")
    parts = [data, inner, *(choices if isinstance(choices, list) else ())]
    parts = [part for part in parts if isinstance(part, dict)]
    parts += [part["message"] for part in parts if isinstance(part.get("message"), dict)]
    for part in parts:
        error = part.get("error")
        if any(error.values()) if isinstance(error, dict) else error:
            if part.get("finish_reason") == "content_filter":
                fields = error if isinstance(error, dict) else {"message": str(error)}
                error = {"type": "content_filter", **fields}
            return _fault_of(error, model, policy)
    if data.get("object") == "error" or data.get("type") == "error":
        return _fault_of(dict(data), model, policy)
    for part in parts:
        for name in ("finish_reason", "stop_reason", "status"):
            reason = part.get(name)
            if isinstance(reason, dict):  # SGLang's
                reason = reason.get("type")
            if not isinstance(reason, str):
                continue
            reason = reason.lower()
            if reason in FAILED_REASONS or reason.endswith("_error"):
                summary = f"an answer that ended in {reason!r}"
                return CallFault("overloaded", summary=summary, status=200, retried=True)
    return None


def _fault_of(error: object, model: str, policy: RetryPolicy) -> CallFault:
    from .failed_replies import fault_of_error_object  # with tables that few sessions need

    return fault_of_error_object(error, model=model, policy=policy)


FAILED_REASONS = frozenset(
    {
        *("error", "abort", "aborted", "cancelled", "canceled", "failed"),
        "insufficient_system_resource",  # DeepSeek's
    }
)
"""Finish reasons of a completion that the endpoint did not finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Sentences about one model at one endpoint."""

    where: str
    """Printable `host:port` or provider."""
    origin: str
    """What cannot be reached when no connection is made."""
    model: str
    key_name: str | None
    """Where the key comes from, empty if unknown; None: there is no key."""
    timeout_s: float
    key_variable: str | None = "OPENAI_API_KEY"
    """Where a key is usually; None: what is wanted is no key alone."""
    address: BaseURL | None = None
    """The base URL, if there is one."""
    served: str | None = None
    """What to say of the models that it lists; None: it was not asked."""

    def __call__(self, fault: CallFault, detail: str, after: str) -> str:
        """Return the sentence; `detail` is redacted, `after` names tries and time."""
        quoted = f' ("{detail}")' if detail else ""
        if fault.summary:
            return f"{fault.summary} from {self.where}{after}{quoted}"
        if fault.reason in (UNSUPPORTED, "not_recorded"):
            return detail
        return self._of_kind(fault, detail, after, quoted)

    def _of_kind(self, fault: CallFault, detail: str, after: str, quoted: str) -> str:
        refusal = f"{fault.status or 'an error'} from {self.where}"
        match fault.kind:
            case "unreachable":
                return f"cannot reach {self.origin}{after} ({detail})"
            case "connection":
                return f"no answer from {self.where}{after} ({detail})"
            case "protocol":
                return f"no usable answer from {self.where}{after} ({detail})"
            case "timeout":
                limit = f"{self.timeout_s:g} s"
                return f"no whole answer from {self.where} within {limit}{after} ({detail})"
            case "tls":
                return f"TLS error with {self.where}: {detail}"
            case "too_large":
                return f"too large an answer from {self.where} ({detail})"
            case "redirect":
                moved = f"{self.address or self.where} redirects to {detail} ({fault.status})"
                return f"{moved}: set the base URL to the new address"
            case "auth":
                asked = refusal if fault.status else self.where  # nothing was sent without a key
                return f"{asked}: {self._why_refused(fault)}{quoted}"
            case "quota":
                return f"{refusal}: the account has no quota left{quoted}"
            case "model_not_found":
                return f"{self._what_is_missing(fault, detail, refusal)}{quoted}"
        if fault.retry_after_s is not None and fault.retry_after_s > RETRY_AFTER_LIMIT_S:
            after += f": asked to wait {in_words(fault.retry_after_s)}"
        return f"{refusal}{after}{quoted}"

    def _what_is_missing(self, fault: CallFault, detail: str, refusal: str) -> str:
        """Return which model or address is not there, as far as the words say it."""
        address = self.address
        if fault.named == "model" and fault.status != 403:
            at = f"{address or self.where} ({fault.status})"
            return (
                f"model {self.model!r} is not known at {at}"
                f"{self._whole_name() or self.served or ''}"
            )
        if not fault.local:
            return f"{refusal}: model {self.model!r} was refused"
        if address is None or not _NO_ROUTE.search(detail.lower()):
            return refusal
        hint = "" if address.path else f"; did you mean {address.printable('/v1')}?"
        return f"{refusal}: nothing is served at {address.printable('/chat/completions')}{hint}"

    def _why_refused(self, fault: CallFault) -> str:
        is_plain = fault.status != 403 or fault.named == "key"
        if self.key_name is not None:
            named = f"the key{self.key_name and f' in {self.key_name}'}"
            return f"{named} was refused" if is_plain else f"refused; {named} may lack access"
        address = self.address
        may = "it wants" if is_plain else "refused; it may want"
        if fault.status == 500:
            may = "no request has succeeded: it may want"
        if address is not None and address.scheme == "http" and not address.is_loopback:
            return (
                f"{may} an API key, and none was sent: over plain http it is sent only from a "
                "variable that --osmosis-api-key-env names"
            )
        if self.key_variable is None:
            return "its credentials are missing, or were refused"
        return (
            f"{may} an API key and none is set: export {self.key_variable}, or name another "
            "variable with --osmosis-api-key-env"
        )

    def _whole_name(self) -> str:
        """Return a hint where the name begins with LiteLLM's name of a kind of endpoint."""
        provider, _, model = self.model.partition("/")
        if self.address is None or provider not in _PREFIXES or not model:
            return ""
        return f"; at a base URL the name is sent whole: did you mean {model!r}?"

    def of_fault(self, fault: CallFault, redact: Redactor) -> str:
        """Return what users see of one try that failed."""
        detail = clip(redact(fault.detail), 200 if fault.summary else DETAIL_LIMIT)
        return redact(self(fault, detail, ""))

    def error(self, failed: CallFailed, redact: Redactor, *, succeeded: bool) -> ProviderError:
        """Return what users see of a call that failed; `succeeded`: an earlier call did not."""
        fault = failed.fault
        detail = clip(redact(fault.detail), 200 if fault.summary else DETAIL_LIMIT)
        sentence = self(fault, detail, efforts(failed.tries, failed.elapsed_s))
        fatal = fault.kind in FATAL_KINDS and not (fault.local and succeeded)
        return ProviderError(
            redact(sentence),
            kind=fault.kind,
            status=fault.status,
            endpoint=self.where,
            tries=failed.tries,
            elapsed_s=failed.elapsed_s,
            fatal=fatal or fault.reason == UNSUPPORTED,
            detail=detail,
            param=fault.param,
        )
