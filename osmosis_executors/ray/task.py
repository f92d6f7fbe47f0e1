"""The task that Ray runs for a shard: the parent of its process, on whatever machine it is.

Prints nothing and returns an exit status: what is printed or returned, Ray keeps.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from osmosis_executors.job import Job, JobLimits
from osmosis_executors.local import LocalExecutor
from osmosis_executors.shards.frames import VARIABLE

_OF_RAY = ("RAY_", "PYTEST_")
_LOOK_S = 1.0
_GRACE_S = 3.0


def run_shard(invitation: str, prefix: str, mark: int) -> int:
    """Run the process of one shard in a copy of the project; return its exit status.

    `prefix` and `mark` are of the driver's environment: see `mark_of`.
    """
    job = Job(
        [_interpreter(Path(prefix), mark), "-m", "osmosis_executors.shards.process"],
        Path.cwd(),
        {**_environment(), VARIABLE: invitation},
        Path(os.devnull),  # it keeps its own: a folder here would stay when Ray kills this process
        limits=JobLimits(file_bytes=None, open_files=None),
        grace_s=_GRACE_S,
    )
    with LocalExecutor().start(job) as run:
        while (status := run.wait(_LOOK_S)) is None:
            pass
    return status


def mark_of(prefix: Path) -> int:
    """Return by what a virtual environment is known on machines that share its folder; else 0."""
    try:
        return (prefix / "pyvenv.cfg").stat().st_mtime_ns
    except OSError:
        return 0


def _interpreter(prefix: Path, mark: int) -> str:
    """Return the driver's interpreter where this machine has its environment, else Ray's."""
    if mark and mark_of(prefix) == mark:
        return str(prefix / "bin" / "python")
    return sys.executable


def _environment() -> dict[str, str]:
    """Return the variables of this machine, without Ray's own and without those of a pytest."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OF_RAY)}
    own.pop("PYTHONBREAKPOINT", None)
    return own
