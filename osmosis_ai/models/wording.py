"""The one sentence that users read when an endpoint gave no answer: what, where, what next.

Turns a `CallFault` into words; decides nothing and redacts nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .errors import CallFault
from .retry import RETRY_AFTER_LIMIT_S, in_words
from .transport.base_url import BaseURL


class Wording(NamedTuple):
    """Sentences about one model at one endpoint."""

    address: BaseURL
    model: str
    key_name: str | None
    """Where the key comes from; None: there is no key."""
    timeout_s: float

    def __call__(self, fault: CallFault, detail: str, after: str) -> str:
        """The sentence; `detail` is redacted, `after` says how often and how long it was tried."""
        quoted = f' ("{detail}")' if detail else ""
        if fault.summary:
            return f"{fault.summary} from {self.address.netloc}{after}{quoted}"
        special = _SPECIAL.get(fault.kind)
        if special is not None:
            return special(self, fault, detail, after)
        if fault.retry_after_s is not None and fault.retry_after_s > RETRY_AFTER_LIMIT_S:
            after += f": asked to wait {in_words(fault.retry_after_s)}"
        return f"{fault.status} from {self.address.netloc}{after}{quoted}"


def _unreachable(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    if fault.reason == "not_connected":
        return f"cannot reach {its.address.origin}{after} ({detail})"
    return f"no answer from {its.address.netloc}{after} ({detail})"


def _timeout(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    limit = f"{its.timeout_s:g} s"
    return f"no whole answer from {its.address.netloc} within {limit}{after} ({detail})"


def _tls(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    return f"TLS error with {its.address.netloc}: {detail}"


def _too_large(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    return f"too large an answer from {its.address.netloc} ({detail})"


def _redirect(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    return (
        f"{its.address} redirects to {detail} ({fault.status}): set the base URL to the new address"
    )


def _auth(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    quoted = f' ("{detail}")' if detail else ""
    where = f"{fault.status} from {its.address.netloc}"
    if its.key_name is None:
        return f"{where}: it wants an API key and none is set{quoted}"
    return f"{where}: the key in {its.key_name} was refused{quoted}"


def _quota(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    quoted = f' ("{detail}")' if detail else ""
    return f"{fault.status} from {its.address.netloc}: the account has no quota left{quoted}"


def _model_not_found(its: Wording, fault: CallFault, detail: str, after: str) -> str:
    quoted = f' ("{detail}")' if detail else ""
    if not fault.local:
        return f"model {its.model!r} is not known at {its.address} ({fault.status}){quoted}"
    hint = "" if its.address.path else f"; did you mean {its.address}/v1?"
    where = f"{its.address}/chat/completions"
    return f"{fault.status} from {its.address.netloc}: nothing is served at {where}{hint}{quoted}"


_SPECIAL: dict[str, Callable[[Wording, CallFault, str, str], str]] = {
    "unreachable": _unreachable,
    "timeout": _timeout,
    "tls": _tls,
    "too_large": _too_large,
    "redirect": _redirect,
    "auth": _auth,
    "quota": _quota,
    "model_not_found": _model_not_found,
}
