"""Headers of model calls that users and agents add: which they may be, and how they are merged.

Knows names and values alone. The key of a call stays what it is, whatever an agent adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..secret import Secret

NO_SECRETS: Mapping[str, Secret] = {}
_LIKE_A_KEY = re.compile(r"key|token|auth|secret|password|credential|cookie|signature")
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


def merged_headers(known: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Return both, `further` in the place of those of the same name in any case."""
    names = {name.lower() for name in further}
    return {**{k: v for k, v in known.items() if k.lower() not in names}, **further}
