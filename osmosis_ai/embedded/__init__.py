"""The embedded endpoint: a small OpenAI-compatible HTTP server that does arithmetic.

`start_embedded("sloppy")` listens on a free loopback port and answers as a model that calls tools,
reads their results and is wrong at a seeded rate. It replaces a real endpoint in quick starts,
examples and tests of agents. Knows nothing of datasets, scores or pytest.

Importing this package is cheap: asyncio and the server load when `start_embedded` is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .personas import PERSONAS, Persona, find_persona, persona_name

if TYPE_CHECKING:
    from .endpoint import EmbeddedEndpoint, start_embedded

__all__ = [
    "PERSONAS",
    "EmbeddedEndpoint",
    "Persona",
    "find_persona",
    "persona_name",
    "start_embedded",
]


def __getattr__(name: str) -> Any:
    if name in ("EmbeddedEndpoint", "start_embedded"):
        from . import endpoint

        return getattr(endpoint, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
