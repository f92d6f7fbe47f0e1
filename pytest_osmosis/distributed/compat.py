"""Private names of xdist and execnet, each with a plain fallback.

Without a channel beside xdist's own, workers run one rollout at a time.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from ..options.reader import lists_only

WORKER_PACKAGES = ("xdist", "__channelexec__")
"""Packages of xdist's plugins; the second is what the plugin of a worker is called there."""


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def is_controller(config: pytest.Config) -> bool:
    """Return whether xdist makes this process a controller, whose workers run the items."""
    option = config.option
    if is_worker(config) or lists_only(config):
        return False
    return getattr(option, "dist", "no") != "no" and bool(getattr(option, "tx", None))


def worker_input(config: pytest.Config) -> dict[str, Any]:
    """Return what the controller gave to this worker when it started."""
    given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    return given


def open_channel(node: Any) -> Any:
    """Return a channel to a worker beside xdist's; None, with a warning, if there is none."""
    new = getattr(node.gateway, "newchannel", None)
    if new is None:
        warnings.warn(
            pytest.PytestWarning(
                "this version of execnet has no channels that pytest-osmosis knows: each worker "
                "runs one rollout at a time; use -n 0 to have --batch-size rollouts in flight"
            ),
            stacklevel=2,
        )
        return None
    return new()
