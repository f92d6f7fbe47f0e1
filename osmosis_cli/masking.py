"""Settings and records with their keys masked, before they are printed or judged.

Knows where a contract puts keys, and nothing of who reads the result.
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


def mask_secrets(value: Any, name: str = "") -> Any:
    """Return `value`, called `name`, with `***` for each key anywhere in it."""
    if isinstance(value, Mapping):
        return {key: mask_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_secrets(item, name) for item in value]
    if value is None or value == "":
        return value
    if _HOLDS_KEY.search(name) or _is_misplaced(name, value):
        return MASK
    if name in ("api_base", "base_url") and isinstance(value, str):
        return _QUERY.sub(MASK, _USERINFO.sub(f"{MASK}@", value))
    return value


def _is_misplaced(name: str, value: Any) -> bool:
    """Return whether a key seems to stand where the name of its variable belongs."""
    if name != _NAMES_VARIABLE:
        return False
    return not (isinstance(value, str) and _VARIABLE.fullmatch(value))
