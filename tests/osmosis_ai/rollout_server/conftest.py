"""A trainer, and retries that do not make tests wait."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from osmosis_ai.rollout import create_app
from osmosis_ai.rollout_server import rollouts
from osmosis_ai.rollout_server.settings import ServerSettings
from osmosis_ai.rollout_server.trainer import client, delivery
from tests.osmosis_ai.rollout_server.agents import Behaving
from tests.osmosis_ai.rollout_server.trainer import KEY, Serve, Served, Trainer, served


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = client.retries
    monkeypatch.setattr(client, "retries", lambda *known: replace(slow(*known), base_s=0.01))
    monkeypatch.setattr(delivery, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(delivery, "LONGEST_PAUSE_S", 0.1)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stop the time of the server's records."""
    clock = Clock()
    monkeypatch.setattr(rollouts, "time", clock)
    return clock


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    with Trainer() as running:
        yield running


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve an agent for the test; keywords are settings, or arguments of create_app."""
    with ExitStack() as stack:

        def start(agent: Any = None, *, key: str | None = KEY, **options: Any) -> Served:
            known = set(ServerSettings.__dataclass_fields__)
            chosen = {name: value for name, value in options.items() if name in known}
            rest = {name: value for name, value in options.items() if name not in known}
            settings = ServerSettings(**{"local": True, "drain_s": 0.2, **chosen})
            app = create_app(agent or Behaving(), settings=settings, api_key=key, **rest)
            return stack.enter_context(served(app, key))

        yield start
