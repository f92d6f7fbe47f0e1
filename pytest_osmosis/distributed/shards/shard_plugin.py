"""Makes a pytest session the session of one shard: it collects nothing, and has no workers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from ..processes import SHARD


class Link(Protocol):
    """A shard's connection to its driver."""

    def send(self, kind: str, *values: Any) -> None:
        """Send a message, once there is room for it; ignored where the driver is gone."""

    def listen(self, heard: Callable[[str, Sequence[Any]], None]) -> None:
        """Call `heard` for every message, in one thread; CANCEL once the driver is gone."""

    def flush(self) -> None:
        """Return once everything is sent, or will never be."""


class ShardPlugin:
    """Makes a pytest session the session of a shard; given to `pytest.main`."""

    def __init__(self, link: Link, *, driver_root: Path, root: Path, data: Sequence[str]) -> None:
        """`root`: the copy of the project; `data`: its data files, one for each evaluation."""
        self.link = link
        self.root = root
        self.data = [root / name for name in data]
        self.driver_root = driver_root
        """The project's folder on the driver's machine."""
        self.serve: Callable[[], None] | None = None
        """Runs what the driver orders; set by the session's evaluation."""
        self.has_run = False
        """Whether it came as far as running what it was ordered."""

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> Generator[None, Any, Any]:
        """Have no workers, whatever the ini file says: the shards are the processes."""
        no_workers(config)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Say whose session this is."""
        config.stash[SHARD] = self

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        """Collect nothing: the driver has the items."""
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        """Run what the driver orders."""
        assert self.serve is not None
        self.has_run = True
        self.serve()
        return True


def no_workers(config: pytest.Config) -> None:
    """Have xdist start no worker in this session."""
    for name, value in {"numprocesses": 0, "dist": "no", "tx": []}.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
