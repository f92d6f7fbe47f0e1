from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.osmosis_ai.workflow_server.controller import Controller


@pytest.fixture
def controller() -> Iterator[Controller]:
    with Controller() as running:
        yield running
