"""The end of a process that user code has forked, when it comes back into this project's code.

It has copies of the event loop, the connections and the journal: what it did next would happen
twice, and its connections would take what belongs to the parent.
"""

from __future__ import annotations

import os
from contextlib import suppress

_TOLD = (
    b"osmosis: a process that was forked by an agent, a grader or an eval function came back from "
    b"it and was ended: end such a process with os._exit\n"
)


def end_if_forked(parent: int) -> None:
    """End this process unless it is `parent`, the one that called the user's code."""
    if os.getpid() != parent:
        with suppress(OSError):  # standard error is closed
            os.write(2, _TOLD)
        os._exit(1)
