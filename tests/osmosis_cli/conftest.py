"""The command in the process of a test, and a platform on loopback that answers as a test says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.command import Osmosis
from tests.support.fake_platform import FakePlatform, fake_platform


@pytest.fixture
def osmosis(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Osmosis:
    return Osmosis(monkeypatch, capfd)


@pytest.fixture(scope="module")
def served() -> Iterator[FakePlatform]:
    with fake_platform() as platform:
        yield platform


@pytest.fixture
def platform(served: FakePlatform) -> FakePlatform:
    served.clear()
    return served
