"""The table of executors: what runs evaluations of a platform and of sessions, by name.

What an executor needs is imported when it is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_osmosis.distributed.shards import Shards
    from pytest_osmosis.distributed.shards.fleet import Fleet

    from .job import Executor


class NoExecutor(Exception):
    """An executor that cannot be used here; one sentence with the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOption:
    """An option of one executor, as a command line has it."""

    name: str
    """As `ray-address`."""
    help: str
    metavar: str
    is_count: bool = False
    """Whether it is a whole number, 1 or more; else a text."""

    @property
    def field(self) -> str:
        """Its name among values, as `ray_address`."""
        return self.name.replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorKind:
    """An executor that can be chosen."""

    title: str
    """What runs evaluations."""
    make: Callable[..., Executor]
    """Takes the values of `options` in their order; raises NoExecutor where it cannot be used."""
    options: tuple[ExecutorOption, ...] = ()
    """Those of a platform; the options of sessions are in the plugin (`SHARD_KINDS`)."""


def _local() -> Executor:
    from .local import LocalExecutor

    return LocalExecutor()


def _ray(address: str | None, shards: int | None) -> Executor:
    from .ray.cluster import EXTRA, missing

    if lacking := missing():
        raise NoExecutor(f"--executor ray needs {' and '.join(lacking)}: {EXTRA}")
    from .ray.executor import RayExecutor

    return RayExecutor(address, shards)


EXECUTORS: Mapping[str, ExecutorKind] = {
    "local": ExecutorKind(title="child processes of this machine", make=_local),
    "ray": ExecutorKind(
        title="a Ray cluster",
        make=_ray,
        options=(
            ExecutorOption(
                name="ray-address",
                metavar="ADDRESS",
                help="The cluster of --executor ray, as its driver knows it; by default that of "
                "RAY_ADDRESS, else each evaluation starts one on this machine.",
            ),
            ExecutorOption(
                name="ray-shards",
                metavar="K",
                is_count=True,
                help="Processes of one evaluation on the cluster, at most one for each of its "
                "batch size; by default as many as there is room for.",
            ),
        ),
    ),
}
"""By the names of `--executor`."""
EXECUTOR_OPTIONS = tuple(option for kind in EXECUTORS.values() for option in kind.options)


def choose_executor(name: str, values: Mapping[str, Any] | None = None) -> Executor:
    """Return the executor of a name, with the values of its options by their fields.

    Raises:
        NoExecutor: where what it needs is not there, or an option is another executor's.
    """
    given = values or {}
    for other, kind in EXECUTORS.items():
        for option in kind.options:
            if other != name and given.get(option.field) is not None:
                raise NoExecutor(f"--{option.name} is for --executor {other}")
    chosen = EXECUTORS[name]
    return chosen.make(*(given.get(option.field) for option in chosen.options))


def make_fleet(shards: Shards) -> Fleet:
    """Return the fleet of a session's shards: the one of the executor's folder, `fleet.py`.

    This is the entry point `osmosis.fleets`.
    """
    made: Fleet = import_module(f".{shards.kind}.fleet", __package__).make_fleet(shards)
    return made
