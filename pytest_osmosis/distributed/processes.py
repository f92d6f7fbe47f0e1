"""Which part a process has under xdist, and how many workers there are."""

from __future__ import annotations

import os
from typing import Any

import pytest

from ..session.selection import ONE_PROCESS, collects_runs_alone

SHARD = pytest.StashKey[Any]()
"""The plugin of a shard, in its process."""
REFUSED_DIST = ("loadgroup", "loadscope", "loadfile", "each")


def is_worker(config: pytest.Config) -> bool:
    """Return whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def is_controller(config: pytest.Config) -> bool:
    """Return whether xdist makes this process a controller, whose workers run the items."""
    option = config.option
    if is_worker(config):
        return False
    return getattr(option, "dist", "no") != "no" and bool(getattr(option, "tx", None))


def worker_input(config: pytest.Config) -> dict[str, Any]:
    """Return what the controller gave to this worker when it started."""
    given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    return given


def use_no_workers(config: pytest.Config) -> None:
    """Have xdist start no worker: none would run an item."""
    if _has_xdist(config):
        option = config.option
        option.numprocesses, option.dist, option.tx = 0, "no", []


def _has_xdist(config: pytest.Config) -> bool:
    return config.pluginmanager.hasplugin("xdist") and hasattr(config.option, "numprocesses")


def choose_processes(config: pytest.Config, batch_size: int) -> None:
    """Set xdist's number of workers: min(B, cores) for B > 1, unless the user said `-n`.

    Other tests are never run by workers because of an option about rollouts.
    """
    option = config.option
    if not _has_xdist(config):
        return
    if getattr(option, "trace", False) and option.numprocesses:
        raise pytest.UsageError("--trace is incompatible with -n: leave one of them out")
    if option.numprocesses is None:
        if batch_size > 1 and not option.tx:
            workers = min(batch_size, cores())
            if reason := _needs_one_process(config):
                config.stash[ONE_PROCESS] = reason.format(workers)
            else:
                option.numprocesses = workers
    elif isinstance(option.numprocesses, int):
        option.numprocesses = min(option.numprocesses, batch_size)
    if option.dist in REFUSED_DIST:
        _replace_dist(config)


def _needs_one_process(config: pytest.Config) -> str | None:
    """Return why no worker is started unasked, with a place for their number."""
    option = config.option
    if getattr(option, "usepdb", False) or getattr(option, "trace", False):
        return "that is debugged"
    if getattr(option, "capture", None) == "no":
        return "whose output -s shows as it comes; -n {} starts workers"
    if config.pluginmanager.hasplugin("_cov") and not getattr(option, "no_cov", False):
        return "whose coverage is measured; -n {} starts workers"  # pytest-cov has begun already
    if not collects_runs_alone(config):
        return "as other tests may run too, and stay as they are; -n {} starts workers"
    return None


def _replace_dist(config: pytest.Config) -> None:
    """Set a `--dist` of `addopts` to what an evaluation takes; refuse one that was given for it."""
    option = config.option
    words = [str(word).partition("=")[0] for word in config.invocation_params.args]
    if "--dist" in words or option.dist == "each":
        raise pytest.UsageError(
            f"--dist {option.dist} does not go with an evaluation: use --dist load, the default"
        )
    if not (option.numprocesses or option.tx):
        option.dist = "no"  # it has no effect without workers
        return
    if not collects_runs_alone(config):
        raise pytest.UsageError(
            f"--dist {option.dist} of addopts does not go with an evaluation beside other tests: "
            'give --dist load, or run them by themselves with -m "not osmosis", and the evaluation '
            "with -m osmosis"
        )
    from ..session.preflight import warn

    warn(config, f"--dist {option.dist} of addopts is taken as --dist load for an evaluation")
    option.dist = "load"


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
