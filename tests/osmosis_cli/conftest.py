"""The command in the process of a test."""

from __future__ import annotations

import pytest

from tests.support.command import Osmosis


@pytest.fixture
def osmosis(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Osmosis:
    return Osmosis(monkeypatch, capfd)
