"""The bridge: an OpenAI-compatible URL on loopback for agents that bring a client of their own.

    Bridge     serves one model of any kind from its own thread
    Account    one rollout's key at the bridge, what its calls took, and what was said

Knows neither agents nor who runs them.
"""

from __future__ import annotations

from .server import Bridge
from .session import Account

__all__ = ["Account", "Bridge"]
