"""A project whose sessions talk to an endpoint of the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.endpoints import Endpoint
from tests.project import Project


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint that repeats the question, unless the test says otherwise."""
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def project(
    pytester: pytest.Pytester, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project whose model is the endpoint; its sessions load none of the neighbours."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:anyio")
    return Project(pytester, endpoint)
