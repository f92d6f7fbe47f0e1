"""What every pytest session finds again in this process is looked up once for a thousand sessions.

That is a fifth of a small session's time. Only what pytest, xdist and the plugin bring with them
counts as known; what a test's project brings is looked at in each of its sessions.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError
from inspect import isfunction
from types import ModuleType
from typing import Any

import pytest
from _pytest.fixtures import FixtureManager
from pluggy import _manager

KNOWN = ("_pytest.", "xdist.", "pytest_osmosis.")
"""How names of modules begin whose hooks and fixtures are the same in every session."""
FIXTURE = type(pytest.fixture(lambda: None))
"""In pytest 8.2 any function; no module is without one there, and each is searched."""

Found = tuple[object, Callable[..., object]] | None


class Installed:
    """A distribution whose files are read once."""

    def __init__(self, distribution: importlib.metadata.Distribution) -> None:
        self._distribution = distribution

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._distribution, name)
        setattr(self, name, value)
        return value


@pytest.fixture(autouse=True, scope="session")
def installed_distributions() -> Iterator[None]:
    """Look for installed plugins, and for the versions that reports name, once."""
    found = [Installed(distribution) for distribution in importlib.metadata.distributions()]
    look_up = importlib.metadata.Distribution.from_name

    @cache
    def named(name: str) -> Installed | None:
        try:
            return Installed(look_up(name))
        except PackageNotFoundError:
            return None

    def from_name(name: str) -> Installed:
        if (distribution := named(name)) is None:
            raise PackageNotFoundError(name)
        return distribution

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(importlib.metadata, "distributions", lambda: found)
        monkeypatch.setattr(importlib.metadata.Distribution, "from_name", from_name)
        yield


@pytest.fixture(autouse=True, scope="session")
def fixtures_of_plugins() -> Iterator[None]:
    """Show a session only the fixtures of a plugin, among all that its module holds."""
    search = FixtureManager.pytest_plugin_registered

    def pytest_plugin_registered(manager: FixtureManager, plugin: object, plugin_name: str) -> None:
        holder = plugin if isinstance(plugin, ModuleType) else type(plugin)
        if not _is_known(holder):
            search(manager, plugin, plugin_name)
        elif fixtures := _fixtures(holder):
            search(manager, fixtures if holder is plugin else plugin, plugin_name)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(FixtureManager, "pytest_plugin_registered", pytest_plugin_registered)
        yield


@pytest.fixture(autouse=True, scope="session")
def hooks_of_modules() -> Iterator[None]:
    """Find the hooks of a module by their names; other plugins may have descriptors."""
    find: Callable[[object, str], Found] | None = getattr(_manager, "_static_hook_attr", None)
    if find is None:  # before pluggy 1.7
        yield
        return

    def found(plugin: object, name: str) -> Found:
        if isinstance(plugin, ModuleType) and isfunction(hook := vars(plugin).get(name)):
            return hook, hook
        return find(plugin, name)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(_manager, "_static_hook_attr", found)
        yield


def _is_known(holder: type | ModuleType) -> bool:
    name = holder.__name__ if isinstance(holder, ModuleType) else holder.__module__
    return name.startswith(KNOWN)


@cache
def _fixtures(holder: type | ModuleType) -> ModuleType | None:
    owners = holder.__mro__ if isinstance(holder, type) else (holder,)
    found = {
        name: value
        for owner in owners
        for name, value in vars(owner).items()
        if type(value) is FIXTURE
    }
    only = ModuleType(holder.__name__)
    vars(only).update(found)
    return only if found else None
