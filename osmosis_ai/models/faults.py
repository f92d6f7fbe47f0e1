"""What an unsuccessful HTTP reply means, and the one sentence that users read of it.

Reads statuses and bodies as OpenAI, vLLM, SGLang, Ollama, Azure, Gemini, OpenRouter and others
write them. Decides nothing about further tries and knows no connection.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ..secret import Redactor
from .errors import (
    DETAIL_LIMIT,
    DOUBTED_KEY,
    FATAL_KINDS,
    UNSUPPORTED,
    CallFault,
    ErrorKind,
    ProviderError,
    clip,
    efforts,
)
from .retry import RETRY_AFTER_LIMIT_S, CallFailed, RetryPolicy, in_words, parse_retry_after
from .transport.base_url import BaseURL

_PREFIXES = frozenset({"openai", "hosted_vllm", "litellm_proxy", "lm_studio", "ollama", "vllm"})
"""What LiteLLM has before the names of models at such endpoints, and they themselves have not."""

_BODY_CHARS = 64 * 1024
"""Beginning of an error's body that is read."""

_QUOTA = re.compile(
    r"insufficient_quota|billing_hard_limit_reached|billing_not_active|insufficient_balance"
    r"|credit_balance_too_low"
)
_WRONG_KEY = re.compile(
    r"invalid_api_key|api_key_invalid|authentication_error|api key not valid"
    r"|no_db_connection"  # LiteLLM's proxy without a database, of every key but its master key
)
_KEY_IN_A_500 = re.compile(
    r"authentication error|auth_error|unauthori[sz]ed|not authenticated"
    r"|(?:no|missing|invalid|incorrect|wrong|bad) (?:\w+ )?api[ _-]?key"
    r"|api[ _-]?key (?:\w+ ){0,3}(?:missing|required|invalid|incorrect|wrong)"
    r"|api[ _-]?key (?:\w+ ){0,3}not (?:set|valid|found)"
)
_UNEXPLAINED = "internal server error"
"""All that some servers say of a request without a key: LiteLLM's proxy without its database's
client, for one."""
_NO_MODEL_CODE = re.compile(r"model_not_found|deploymentnotfound|invalid_model|model_not_available")
_NO_MODEL_404 = re.compile(r"\b(?:models?|deployment)\b")
_NO_MODEL_400 = re.compile(
    r"model not exist|no models? loaded|unknown model|invalid model(?: name)?\b"
    r"|not a valid model|\bmodel\b[^.\n]{0,160}(?:not found|not exist|n't exist|not be found)"
)


def fault_of_status(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    model: str,
    policy: RetryPolicy,
    keyless: bool = False,
) -> CallFault:
    """Return the fault of a reply, to a request without a key or not, whose status is not 2xx."""
    text = body.decode("utf-8", "replace")
    if len(text) > _BODY_CHARS:  # what is quoted of it is redacted long before this end
        text = " ".join(text.split())[:_BODY_CHARS]
    message, codes = _error_fields(text)
    if 300 <= status < 400:
        return CallFault("redirect", _printable_location(headers), status=status)
    kind, local = _kind(status, message.lower(), codes.lower(), model.lower())
    passing = kind in ("rate_limited", "overloaded") or (kind == "bad_request" and not local)
    return CallFault(
        kind,
        message,
        status=status,
        retried=passing and policy.retries_status(status, headers),
        retry_after_s=parse_retry_after(headers) if passing else None,
        local=local,
        reason=DOUBTED_KEY
        if status == 500 and _leaves_key_in_doubt(message, codes, keyless)
        else "",
    )


def fault_of_error_object(error: object, *, model: str, policy: RetryPolicy) -> CallFault:
    """Return the fault of an `error` object inside a reply whose status says success."""
    code = error.get("code") if isinstance(error, dict) else None
    status = int(code) if isinstance(code, (int, str)) and _is_status(code) else 0
    message, codes = _error_fields(json.dumps({"error": error}))
    status = status or _status_named(codes.lower())
    kind, local = _kind(status, message.lower(), codes.lower(), model.lower())
    return CallFault(
        kind,
        message,
        summary="an error inside a 200",
        status=200,
        retried=kind in ("rate_limited", "overloaded") and policy.retries_status(status, {}),
        local=local,
    )


def _kind(status: int, message: str, codes: str, model: str) -> tuple[ErrorKind, bool]:
    """Kind of a status with the lower-case words of its body; and whether it may be local."""
    if status == 402 or _QUOTA.search(codes):
        return "quota", False
    if status == 401 or (status in (400, 403) and _WRONG_KEY.search(f"{codes} {message}")):
        return "auth", False
    if status == 403:
        return "auth", True
    if status == 404:
        said = bool(_NO_MODEL_CODE.search(codes) or _NO_MODEL_404.search(message))
        return "model_not_found", not said
    if status in (400, 422) and _names_no_model(message, codes, model):
        return "model_not_found", False
    if status == 429:
        return "rate_limited", False
    if status >= 500 or status in (408, 409, 425):
        return "overloaded", False
    return "bad_request", False


def _leaves_key_in_doubt(message: str, codes: str, keyless: bool) -> bool:
    """Return whether a 500 may be about the key."""
    said = f"{codes} {message}".lower().strip()
    if keyless and said == _UNEXPLAINED:
        return True
    return bool(_WRONG_KEY.search(said) or _KEY_IN_A_500.search(said))


def _status_named(codes: str) -> int:
    """The status that a provider would have sent with these lower-case codes."""
    if "rate_limit" in codes or "too_many_requests" in codes:
        return 429
    if _WRONG_KEY.search(codes):
        return 401
    if _NO_MODEL_CODE.search(codes):
        return 404
    return 400 if "invalid_request" in codes else 500


def _names_no_model(message: str, codes: str, model: str) -> bool:
    if _NO_MODEL_CODE.search(codes):
        return True
    found = _NO_MODEL_400.search(message)
    return found is not None and (model in message or found.start() == 0)


def _error_fields(text: str) -> tuple[str, str]:
    """(message, codes and types joined) of an error body in any of the usual shapes."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    if isinstance(data, list) and data:
        data = data[0]  # Gemini wraps its errors in a list
    if not isinstance(data, dict):
        return text, ""
    error: Any = data.get("error", data)
    if isinstance(error, str):
        error = {**data, "message": data.get("message", error)}
    elif not isinstance(error, dict):
        error = data
    message = next((error[key] for key in ("message", "detail", "msg") if error.get(key)), None)
    codes = [error.get(key) for key in ("code", "type", "status", "reason")]
    codes += [part.get("reason") for part in _dicts(error.get("details"))]
    named = " ".join(str(code) for code in codes if isinstance(code, (str, int)))
    if isinstance(message, str):
        return message, named
    return (json.dumps(message) if message is not None else text), named


def _dicts(value: object) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _is_status(code: int | str) -> bool:
    text = str(code)
    return len(text) == 3 and text.isascii() and text.isdigit() and text >= "400"


def _printable_location(headers: Mapping[str, str]) -> str:
    """Where a redirect points, without user names, passwords or query."""
    try:
        parts = urlsplit(headers.get("location", ""))
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that cannot be read"
    where = f"{parts.scheme}://{host}{parts.path}" if host else parts.path
    return clip(where, 200) or "nowhere"


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

    def __call__(self, fault: CallFault, detail: str, after: str) -> str:
        """Return the sentence; `detail` is redacted, `after` names tries and time."""
        quoted = f' ("{detail}")' if detail else ""
        if fault.summary:
            return f"{fault.summary} from {self.where}{after}{quoted}"
        if fault.reason in (UNSUPPORTED, "not_recorded"):
            return detail
        return self._of_kind(fault, detail, after, quoted)

    def _of_kind(self, fault: CallFault, detail: str, after: str, quoted: str) -> str:
        said = f"{fault.status or 'an error'} from {self.where}"
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
                asked = said if fault.status else self.where  # nothing was sent without a key
                return f"{asked}: {self._why_refused(fault)}{quoted}"
            case "quota":
                return f"{said}: the account has no quota left{quoted}"
            case "model_not_found" if fault.local and self.address is not None:
                hint = "" if self.address.path else f"; did you mean {self.address}/v1?"
                url = f"{self.address}/chat/completions"
                return f"{said}: nothing is served at {url}{hint}{quoted}"
            case "model_not_found":
                at = f"{self.address or self.where} ({fault.status})"
                return f"model {self.model!r} is not known at {at}{self._whole_name()}{quoted}"
        if fault.retry_after_s is not None and fault.retry_after_s > RETRY_AFTER_LIMIT_S:
            after += f": asked to wait {in_words(fault.retry_after_s)}"
        return f"{said}{after}{quoted}"

    def _why_refused(self, fault: CallFault) -> str:
        if self.key_name is not None:
            return f"the key{self.key_name and f' in {self.key_name}'} was refused"
        address = self.address
        may = "no request has succeeded: it may want" if fault.status == 500 else "it wants"
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
        )
