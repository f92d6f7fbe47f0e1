"""Where a thread is: its frame, looked up without holding up any thread.

`sys._current_frames` holds the interpreter's lock over threads while it makes objects. Before
Python 3.13 a garbage collection in there can run Python code and change threads, and a thread that
is just being started then never gets that lock
(https://github.com/python/cpython/issues/106883). So nothing is collected meanwhile.
"""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType

_one_at_a_time = threading.Lock()


def frame_of(thread: int) -> FrameType | None:
    """Return the frame of the thread with this ident; None where there is no such thread."""
    with _one_at_a_time:
        is_enabled = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread)
        finally:
            if is_enabled:
                gc.enable()
