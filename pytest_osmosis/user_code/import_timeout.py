"""A deadline for code that cannot be cancelled: the import of a user's module.

A thread watches. When time is up it notes where the import hangs and interrupts the main thread
the way Ctrl-C does; code that does not react even then ends the process, with the stacks on stderr
and the status of a usage error. Knows threads and signals; does not know what is imported.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import threading
import traceback
from collections.abc import Iterator

DEADLINE_S = 60.0
GRACE_S = 10.0
_USAGE = 4


class ImportDeadline(Exception):
    """The watched code was not done in time; `stack` is where it was."""

    def __init__(self, stack: list[traceback.FrameSummary]) -> None:
        super().__init__("deadline exceeded")
        self.stack = stack


@contextlib.contextmanager
def watched(
    module: str, deadline_s: float = DEADLINE_S, grace_s: float = GRACE_S
) -> Iterator[None]:
    """Raise ImportDeadline in the calling thread when the block takes longer than the deadline."""
    watch = _Watch(module, deadline_s, grace_s)
    watch.start()
    try:
        yield
        watch.finish()  # an interrupt that comes at the last moment arrives here
    except KeyboardInterrupt:
        if not watch.expired:
            raise
        raise ImportDeadline(watch.stack) from None
    finally:
        watch.finish()


class _Watch(threading.Thread):
    def __init__(self, module: str, deadline_s: float, grace_s: float) -> None:
        # Not in the thread: what is watched may hold the locks of imports.
        from osmosis_ai.running.thread_frames import frame_of

        super().__init__(name=f"osmosis-import-{module}", daemon=True)
        self._frame_of = frame_of
        self.expired = False
        self.stack: list[traceback.FrameSummary] = []
        self._module, self._deadline_s, self._grace_s = module, deadline_s, grace_s
        self._watched = threading.get_ident()
        self._done = threading.Event()
        self._one_at_a_time = threading.Lock()

    def finish(self) -> None:
        with self._one_at_a_time:
            self._done.set()

    def run(self) -> None:
        if self._done.wait(self._deadline_s):
            return
        with self._one_at_a_time:
            if self._done.is_set():
                return
            frame = self._frame_of(self._watched)
            self.stack = list(traceback.extract_stack(frame))
            self.expired = True
            self._interrupt()
        if not self._done.wait(self._grace_s):
            self._end_process()

    def _interrupt(self) -> None:
        main = threading.main_thread().ident
        by_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._watched == main and by_default:
            signal.pthread_kill(self._watched, signal.SIGINT)

    def _end_process(self) -> None:
        text = f"the import of {self._module!r} hangs (for more than {self._deadline_s:g} s)\n"
        os.write(2, text.encode("utf-8", "backslashreplace"))
        faulthandler.dump_traceback(file=2, all_threads=True)
        os._exit(_USAGE)
