"""Give trainers that cannot be reached less time once the server stops.

Tries are made as often as ever, without the pauses between them. Knows no trainer.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from ...models.base import CallFault


class Haste:
    """Pauses between tries, which `hurry` cuts short; for the event loops of several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hurried = False
        self._pausing: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def hurry(self) -> None:
        """End every pause after a trainer could not be reached, now and from now on."""
        with self._lock:
            self._hurried = True
            pausing = tuple(self._pausing.items())
        for event, loop in pausing:
            with suppress(RuntimeError):  # its loop has ended, and the pause with it
                loop.call_soon_threadsafe(event.set)

    async def pause(self, seconds: float, fault: CallFault) -> None:
        """Wait so long before the next try."""
        if fault.reason != "unreachable":
            await asyncio.sleep(seconds)
            return
        event = asyncio.Event()
        with self._lock:
            if self._hurried:
                return
            self._pausing[event] = asyncio.get_running_loop()
        try:
            await asyncio.wait_for(event.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        finally:
            with self._lock:
                del self._pausing[event]
