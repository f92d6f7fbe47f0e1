"""The end of a process that user code has forked, when it comes back into this project's code.

It has copies of the event loop, the connections and the journal: what it did next would happen
twice, and its connections would take what belongs to the parent.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NoReturn

_TOLD = (
    b"osmosis: a process that was forked by an agent, a grader or an eval function came back from "
    b"it and was ended: end such a process with os._exit\n"
)


def end_forked() -> NoReturn:
    """End this process, which is not the one that called the user's code."""
    with suppress(OSError):  # standard error is closed
        os.write(2, _TOLD)
    os._exit(1)
