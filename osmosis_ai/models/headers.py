"""What users and agents add to model calls: which headers they may, how these are merged, secrets.

Knows names and values alone. The key of a call stays what it is, whatever an agent adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..secret import MASK, Secret

NO_SECRETS: Mapping[str, Secret] = {}
_LIKE_A_KEY = re.compile(r"key|token|auth|secret|password|credential|cookie|signature")
_FIELD_OF_KEY = re.compile(
    r"(?:^|[_.-])(?:(?:api|access|secret|private|subscription)[_-]?key|secret|password|passwd"
    r"|credentials?|authorization|(?:access|api|auth|bearer|refresh|session)[_-]?token)$"
    r"|^(?:key|token|auth)$|^connection_?string$",
    re.IGNORECASE,
)
"""Fields of a request: `key` and `secret_key`, but no `prompt_cache_key` and no `stop_token`."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_KEYS = frozenset({"authorization", "proxy-authorization"})
_KEYS_OF_PROVIDERS = frozenset({"x-api-key", "api-key", "x-goog-api-key", "cookie"})
_OURS = frozenset(
    {
        *("host", "content-length", "content-type", "transfer-encoding", "connection", "accept"),
        *("accept-encoding", "expect", "te", "trailer", "upgrade"),
    }
)


def header_mistake(name: str, value: object, *, of_agent: bool) -> str | None:
    """Return why a header cannot be added, as a sentence; None where it can.

    `of_agent`: an agent's code adds it to a call, instead of the user to all of them.
    """
    lower = name.lower()
    if not _NAME.fullmatch(name):
        return f"{name!r} is no name of a header"
    if lower in _OURS:
        return f"the header {name} is set by the request itself"
    if lower in _KEYS or (of_agent and lower in _KEYS_OF_PROVIDERS):
        return f"the header {name} holds the key, which --osmosis-api-key-env gives"
    if not isinstance(value, str) or not value.isprintable() or not value.isascii():
        return f"the value of the header {name} must be printable ASCII text"
    return None


def is_secret(name: str, value: Secret) -> bool:
    """Return whether no output may show a value: a variable's, or that of a name like a key's."""
    return bool(value.name) or _LIKE_A_KEY.search(name.lower()) is not None


def secrets_in(fields: object, name: str = "") -> Iterator[Secret]:
    """Yield the texts in a request's further fields that a field named like a key holds."""
    if isinstance(fields, Mapping):
        for inner, value in fields.items():
            yield from secrets_in(value, str(inner))
    elif isinstance(fields, list):
        for value in fields:
            yield from secrets_in(value, name)
    elif isinstance(fields, str) and _FIELD_OF_KEY.search(name):
        yield Secret(fields.rpartition(" ")[2])  # without `Bearer`


def shown_fields(fields: Any, name: str = "") -> Any:
    """Return a request's further fields with a mask in the place of each secret."""
    if isinstance(fields, Mapping):
        return {inner: shown_fields(value, str(inner)) for inner, value in fields.items()}
    if isinstance(fields, list):
        return [shown_fields(value, name) for value in fields]
    return MASK if any(secrets_in(fields, name)) else fields


def merged_headers(known: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Return both, `further` in the place of those of the same name in any case."""
    names = {name.lower() for name in further}
    return {**{k: v for k, v in known.items() if k.lower() not in names}, **further}
