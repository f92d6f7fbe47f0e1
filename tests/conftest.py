"""What every test shares: pytester, and an environment without the developer's own settings."""

from __future__ import annotations

import os

import pytest

pytest_plugins = ["pytester"]

FOREIGN = ("OSMOSIS_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "LITELLM_", "PYTEST_XDIST_", "GITHUB_")
"""Prefixes of variables that would change what a session under test does."""

TERMINAL = {"CI", "BUILD_NUMBER", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "PY_COLORS"}
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep keys, proxies and terminal settings of the machine out of the tests."""
    for name in list(os.environ):
        if name.startswith(FOREIGN) or name in TERMINAL or name.upper() in PROXIES:
            monkeypatch.delenv(name)
