"""A platform on loopback, one for each file of tests, that answers as a test says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.fake_platform import FakePlatform, fake_platform


@pytest.fixture(scope="module")
def served() -> Iterator[FakePlatform]:
    with fake_platform() as platform:
        yield platform


@pytest.fixture
def platform(served: FakePlatform) -> FakePlatform:
    served.clear()
    return served
