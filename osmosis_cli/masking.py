"""Settings and records as they may be printed or judged: without the keys that travel in them.

Knows where a contract puts a key, and nothing of who reads what is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
_HOLDS_KEY = re.compile(r"(?:api[_-]?key|authorization)$", re.IGNORECASE)
_NAMES_VARIABLE = "api_key_env"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")
_QUERY = re.compile(r"(?<=\?).*", re.DOTALL)


def keyless(value: Any, name: str = "") -> Any:
    """`value`, and all that is in it, with `***` for every key; `name` is what it is called."""
    if isinstance(value, Mapping):
        return {key: keyless(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [keyless(item, name) for item in value]
    if value is None or value == "":
        return value
    if _HOLDS_KEY.search(name) or _is_misplaced(name, value):
        return MASK
    if name in ("api_base", "base_url") and isinstance(value, str):
        return _QUERY.sub(MASK, _USERINFO.sub(f"{MASK}@", value))
    return value


def _is_misplaced(name: str, value: Any) -> bool:
    """Whether a key itself seems to stand where the name of its variable belongs."""
    if name != _NAMES_VARIABLE:
        return False
    return not (isinstance(value, str) and _VARIABLE.fullmatch(value))
