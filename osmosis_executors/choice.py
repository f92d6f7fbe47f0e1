"""Which executor runs evaluations, by name.

What an executor needs is imported when it is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import Executor

EXECUTORS = ("local", "ray")
"""The names of `--executor`."""


class NoExecutor(Exception):
    """An executor that cannot be used here; one sentence with the next step."""


def choose_executor(
    name: str, *, ray_address: str | None = None, ray_shards: int | None = None
) -> Executor:
    """Return the executor of a name.

    Raises:
        NoExecutor: where what it needs is not there.
    """
    if name == "local":
        for option, given in {"--ray-address": ray_address, "--ray-shards": ray_shards}.items():
            if given is not None:
                raise NoExecutor(f"{option} is for --executor ray")
        from .local import LocalExecutor

        return LocalExecutor()
    if name == "ray":
        from .ray.cluster import EXTRA, missing

        if lacking := missing():
            raise NoExecutor(f"--executor ray needs {' and '.join(lacking)}: {EXTRA}")
        from .ray.executor import RayExecutor

        return RayExecutor(ray_address, ray_shards)
    raise NoExecutor(f"there is no executor {name}; there is {', '.join(EXECUTORS)}")
