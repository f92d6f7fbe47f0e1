"""Requests of other APIs than chat completions, and an OpenAI-compatible endpoint that takes them.

They go out as their client wrote them, repeated as chat completions are. Knows the wire format of
none: each request brings what reads its reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..secret import Redactor
from .base import ChatCompletion
from .errors import UNSUPPORTED, CallFault, clip
from .failed_replies import fault_of_status
from .faults import Wording, failure_in
from .parsing import load_object
from .retry import CallFailed, Retrier, RetryPolicy
from .transport.base_url import BaseURL
from .transport.exchange import Reply

Send = Callable[[str, bytes, Mapping[str, str], float], Awaitable[Reply]]
"""Posts a body to a path below the base URL, with further headers, within seconds."""


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """A request of another API than chat completions, as its client wrote it."""

    path: str
    """Below the base URL, such as `/responses`."""
    api: str
    """What the API is called in sentences."""
    body: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], ChatCompletion]
    """Reads the answer in a reply's JSON; raises ValueError, LookupError, TypeError or
    AttributeError where there is none."""
    instead: str = "have it use chat completions"
    """What to do where there is no such API."""
    may_translate: bool = False
    """A model that does not have the API may be asked for a chat completion instead."""
    lost: Sequence[str] = ()
    """What a chat completion cannot hold of it."""
    own_model: str | None = None
    """The model that the client names, where the evaluated one cannot stand in its place."""

    def is_translated(self) -> bool:
        """Return whether a chat completion is asked for in its place; ValueError: it cannot be."""
        if self.may_translate and self.lost:
            raise ValueError(
                f"the evaluated model is asked by chat completions, which have no "
                f"{', '.join(self.lost)}: leave that out, or evaluate a model of a provider that "
                f"has the {self.api}"
            )
        return self.may_translate

    def with_defaults(self, params: Mapping[str, Any]) -> OtherRequest:
        """Return it with the parameters of every call, by the names that its API has for them."""
        names = _NAMES.get(self.path)
        if names is None:
            return self
        defaults = {names.get(k, k): value for k, value in params.items() if value is not None}
        return replace(self, body={**defaults, **self.body})


_NAMES: Mapping[str, Mapping[str, str]] = {
    "/responses": {"max_tokens": "max_output_tokens"},
    "/messages": {},
}
"""What other APIs call the parameters of chat completions; embeddings take none."""


_UNEXPECTED = re.compile(r"unexpected endpoint|unknown (?:endpoint|path|url|route)", re.IGNORECASE)
"""What servers say of it that answer with a 200, or quote the path."""


class OtherAPIs:
    """What an endpoint has besides chat completions."""

    def __init__(
        self,
        *,
        send: Send,
        address: BaseURL,
        retrier: Retrier,
        policy: RetryPolicy,
        wording: Wording,
        redact: Redactor,
    ) -> None:
        self._send = send
        self._address = address
        self._retrier = retrier
        self._policy = policy
        self._wording = wording
        self._redact = redact
        self._paths: set[str] = set()
        """Those that have answered."""

    async def complete(self, other: OtherRequest, headers: Mapping[str, str]) -> ChatCompletion:
        """Return the answer after as many tries as the policy allows; raise ProviderError."""
        wording = replace(self._wording, model=other.own_model or self._wording.model)
        document = {**other.body, "model": wording.model}
        body = json.dumps(document, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        try:
            answer, retries, ms = await self._retrier.run(
                partial(self._send, other.path, body, headers),
                partial(self._read, other, wording),
                lambda fault: wording.of_fault(fault, self._redact),
            )
        except CallFailed as failed:
            raise wording.error(failed, self._redact, succeeded=bool(self._paths)) from None
        answer.retries, answer.latency_ms = retries, ms
        return answer

    def _read(self, other: OtherRequest, wording: Wording, reply: Reply) -> ChatCompletion:
        """Return the answer; raise a CallFault that concerns every row where there is no such API.

        Some servers say that in a 200.
        """
        self._retrier.replied = True
        model, policy = wording.model, self._policy
        try:
            if not 200 <= reply.status < 300:
                keyless = wording.key_name is None
                raise fault_of_status(
                    reply.status,
                    reply.headers,
                    reply.body,
                    model=model,
                    policy=policy,
                    keyless=keyless,
                )
            document = load_object(reply)
            if (failure := failure_in(document, model=model, policy=policy)) is not None:
                raise failure
        except CallFault as fault:
            if other.path in self._paths or not _is_of_no_route(fault):
                raise
            said = f': "{clip(fault.detail, 100)}"' if fault.detail else ""
            detail = (
                f"{self._address.printable(other.path)} ({reply.status}{said}): the endpoint has "
                f"no {other.api}, which the agent's client asks for: {other.instead}"
            )
            raise CallFault(
                "bad_request", detail, status=reply.status, reason=UNSUPPORTED
            ) from None
        try:
            answer = other.read(document)
        except (ValueError, LookupError, TypeError, AttributeError):
            summary = f"a {reply.status} that is no answer of the {other.api}"
            shown = reply.body[:1600].decode("utf-8", "replace")
            raise CallFault("protocol", shown, summary=summary, retried=True) from None
        self._paths.add(other.path)
        answer.document = document
        return answer


def _is_of_no_route(fault: CallFault) -> bool:
    """Return whether a refusal means that there is nothing at a path, in a 200 by its words."""
    if fault.status == 200:
        return _UNEXPECTED.search(fault.detail) is not None
    return fault.status in (404, 405, 501) and fault.named != "model"
