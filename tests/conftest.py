"""What every test shares: pytester, a clean environment, and an end to a test that hangs.

Sessions under test run in this process where they can. Since pytester forgets the modules that such
a session has imported, and some cannot be imported twice, all that the plugin may need is imported
here first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from types import FrameType

import numpy  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pydantic
import pytest
from hypothesis import settings

import osmosis_ai
import pytest_osmosis

with suppress(ModuleNotFoundError):
    # Takes the discovery of installed plugins over, for good; a LiteLLM that finds it imports it.
    import_module("importlib_metadata")
for package in (osmosis_ai, pytest_osmosis):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        with suppress(ModuleNotFoundError):  # of an extra that is not installed
            import_module(module.name)

for name in pydantic.__all__:  # loaded when first used; LiteLLM uses more of them than we do
    getattr(pydantic, name)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester"]

FOREIGN = ("OSMOSIS_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "LITELLM_", "PYTEST_XDIST_", "GITHUB_")
"""Prefixes of variables that would change what a session under test does."""

TERMINAL = {"CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "PY_COLORS"}
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}

HANGING_S = 180
"""No test takes nearly as long; one that does would keep the whole suite waiting."""

settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("thorough", max_examples=200, deadline=None)
settings.load_profile("quick")


@pytest.fixture(autouse=True, scope="session")
def clean_environment() -> Iterator[None]:
    """Keep keys, proxies and terminal settings of the machine out of the tests."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name in list(os.environ):
            if name.startswith(FOREIGN) or name in TERMINAL or name.upper() in PROXIES:
                monkeypatch.delenv(name)
        yield


@pytest.fixture(autouse=True)
def end_of_patience() -> Iterator[None]:
    """Fail a test that hangs, again and again until it lets go."""

    def fail(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"still running after {HANGING_S} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, HANGING_S, 5)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
