"""What the sessions under test share.

They run in this process where they can. Since pytester forgets the modules that such a session has
imported, and some cannot be imported twice, all that the plugin may need is imported here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages

import hypothesis  # noqa: F401
import numpy  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest

import osmosis_ai
import pytest_osmosis
from tests.endpoints import Endpoint
from tests.project import Project

with suppress(ModuleNotFoundError):
    # Takes the discovery of installed plugins over, for good; a LiteLLM that finds it imports it.
    import_module("importlib_metadata")
for package in (osmosis_ai, pytest_osmosis):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        with suppress(ModuleNotFoundError):  # of an extra that is not installed
            import_module(module.name)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint that repeats the question, unless the test says otherwise."""
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def project(pytester: pytest.Pytester, endpoint: Endpoint) -> Project:
    """A project whose model is the endpoint."""
    return Project(pytester, endpoint)
