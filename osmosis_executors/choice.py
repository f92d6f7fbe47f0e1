"""Which executor runs evaluations, by name.

What an executor needs is imported when it is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .job import Executor

EXECUTORS = ("local",)
"""The names of `--executor`."""


class NoExecutor(Exception):
    """An executor that cannot be used here; one sentence with the next step."""


def choose_executor(name: str, *, ray_address: str | None = None) -> Executor:
    """Return the executor of a name.

    Raises:
        NoExecutor: where what it needs is not there.
    """
    if name == "local":
        if ray_address is not None:
            raise NoExecutor("--ray-address is for --executor ray")
        from .local import LocalExecutor

        return LocalExecutor()
    raise NoExecutor(f"there is no executor {name}; there is {', '.join(EXECUTORS)}")
