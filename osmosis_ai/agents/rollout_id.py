"""What names a rollout: on the wire, in logs, and as a file of its own."""

from __future__ import annotations

import re

_ROLLOUT_ID = re.compile(r"[A-Za-z0-9._:@-]{1,256}")


def check_rollout_id(value: str) -> str:
    """Return `value` if it can name a rollout (and its log file), else raise ValueError."""
    if _ROLLOUT_ID.fullmatch(value) is None or value in (".", ".."):
        raise ValueError(
            "a rollout_id has 1 to 256 letters, digits, '.', '_', ':', '@' or '-', "
            "and is not '.' or '..'"
        )
    return value
