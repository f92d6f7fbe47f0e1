"""What a server says about itself: one line an event, `name key=value ...`.

Fields are escaped and cut; no caller hands in a key, a prompt or an answer. Knows neither HTTP nor
where lines end up.
"""

from __future__ import annotations

import json
import logging

logger = logging.getLogger("osmosis.server")

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/-+[]%")
_MAX_VALUE = 500


def event(name: str, level: int = logging.INFO, **fields: object) -> None:
    """Log one line; a field that is None is left out."""
    if logger.isEnabledFor(level):
        shown = (f"{key}={_value(value)}" for key, value in fields.items() if value is not None)
        logger.log(level, "%s", " ".join([name, *shown]))


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)[:_MAX_VALUE]
    return text if text and _PLAIN.issuperset(text) else json.dumps(text)
