"""A time limit for a whole request, however slowly its answer trickles in.

The limits of httpx are for each read: a server that sends a byte now and then keeps them for hours.
When the time is up the connection is shut down, and the request fails. Which connection that is
comes from the `trace` extension of httpx; one that is used again was noted before.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

_CONNECTED = ("connect_tcp.complete", "start_tls.complete")


class Deadline:
    """Whether the time of a request is up, and the connection to shut down then."""

    def __init__(self, connection: socket.socket | None) -> None:
        self.connection = connection
        self.is_over = False
        self._lock = threading.Lock()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take note of a new connection; httpx calls this with all that happens."""
        if not event.endswith(_CONNECTED):
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            self.connection = found if isinstance(found, socket.socket) else None
            if self.is_over:
                self._shut_down()

    def expire(self) -> None:
        """End the request."""
        with self._lock:
            self.is_over = True
            self._shut_down()

    def _shut_down(self) -> None:
        if self.connection is not None:
            with contextlib.suppress(OSError):  # it is closed already
                self.connection.shutdown(socket.SHUT_RDWR)


class Deadlines:
    """Time limits of requests that follow one another; keeps the connection of each origin."""

    def __init__(self) -> None:
        self._connections: dict[str, socket.socket | None] = {}

    @contextlib.contextmanager
    def within(self, seconds: float, origin: str) -> Iterator[Deadline]:
        """Shut the connection down when what is inside takes longer."""
        deadline = Deadline(self._connections.get(origin))
        timer = threading.Timer(seconds, deadline.expire)
        timer.daemon = True
        timer.start()
        try:
            yield deadline
        finally:
            timer.cancel()
            self._connections[origin] = deadline.connection
