"""The process of one shard: `python -m osmosis_executors.shards.process`.

It finds its invitation in a variable, gets its order and its secrets from the driver, and becomes a
pytest session that runs what the driver says.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import IO

import pytest

from osmosis_ai.secret_variables import masking
from pytest_osmosis.distributed import messages
from pytest_osmosis.distributed.shards.shard_plugin import ShardPlugin

from .frames import VARIABLE, Invitation
from .link import DriverLink, NotInvited

NOT_INVITED = 3
_SHOWN = 2000


def main() -> int:
    """Run a shard; return the exit status."""
    invitation = Invitation.from_json(os.environ.pop(VARIABLE))
    with tempfile.TemporaryFile() as output:  # without a name: nothing of it stays
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
        return _run(invitation, output)


def _run(invitation: Invitation, output: IO[bytes]) -> int:
    """Run what the driver orders; `output` has what the process prints."""
    try:
        link = DriverLink(invitation)
    except NotInvited as error:
        print(f"the driver cannot be reached: {error}")
        return NOT_INVITED
    order = link.order
    os.environ.update(order["environment"])
    root = Path.cwd()
    os.chdir(order["folder"])
    plugin = ShardPlugin(link, driver_root=Path(order["root"]), root=root, data=order["data"])
    words = [*order["words"], f"--rootdir={root}"]
    status = int(pytest.main(words, plugins=[plugin]))
    if not plugin.has_run:
        link.send(messages.PROBLEM, _read_problem(output))
    link.close()
    return 0 if plugin.has_run else status


def _read_problem(output: IO[bytes]) -> str:
    """Return what pytest said of why nothing can be run."""
    sys.stdout.flush()
    sys.stderr.flush()
    output.seek(0)
    text = masking()(output.read().decode("utf-8", "replace"))  # before it is cut
    _, found, rest = text.partition("ERROR: ")
    problem = (rest if found else text[-_SHOWN:]).strip()[:_SHOWN]
    return problem or "its pytest session ended before it began"


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # whatever threads of user code are left
