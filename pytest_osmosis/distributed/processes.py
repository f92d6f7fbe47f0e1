"""How many worker processes there are."""

from __future__ import annotations

import os

import pytest

from ..options.reader import OptionReader, lists_only

REFUSED_DIST = ("loadgroup", "loadscope", "loadfile", "each")


def choose_processes(config: pytest.Config, batch_size: int) -> None:
    """Set xdist's number of workers: min(B, cores) for B > 1, unless the user said `-n`."""
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or not hasattr(option, "numprocesses"):
        return
    if OptionReader(config).raw("ray") is not None or lists_only(config):  # no worker runs items
        option.numprocesses, option.dist, option.tx = 0, "no", []
        return
    if option.dist in REFUSED_DIST:
        raise pytest.UsageError(
            f"--dist {option.dist} does not go with an evaluation: use --dist load, the default"
        )
    if getattr(option, "trace", False) and option.numprocesses:
        raise pytest.UsageError("--trace is incompatible with -n: leave one of them out")
    if option.numprocesses is None:
        debugs = getattr(option, "usepdb", False) or getattr(option, "trace", False)
        if batch_size > 1 and not (debugs or option.tx):
            option.numprocesses = min(batch_size, cores())
    elif isinstance(option.numprocesses, int):
        option.numprocesses = min(option.numprocesses, batch_size)


def limit_processes(config: pytest.Config, most: int) -> None:
    """Before any worker is started: no more than `most` of those that `-n` asked for."""
    option = config.option
    if isinstance(getattr(option, "numprocesses", None), int) and len(option.tx or ()) > most:
        option.numprocesses = most
        option.tx = option.tx[:most]


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
