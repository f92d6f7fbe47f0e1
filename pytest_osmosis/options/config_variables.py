"""The variables of a config file's [env]: an evaluation with other values of them is another one.

Their names reach the session, and its workers, in a variable. Only digests of the values are kept.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

CONFIG_ENV = "OSMOSIS_CONFIG_ENV"
"""The variable that holds the names, between spaces."""


def digests(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return a digest of each variable, by its name."""
    names = environment.get(CONFIG_ENV, "").split()
    return {name: _digest(name, environment.get(name, "")) for name in sorted(names)}


def _digest(name: str, value: str) -> str:
    text = f"{name}={value}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:16]
