"""The channel between the controller and each worker, beside xdist's: what is sent on it, and how.

It is an execnet channel that is handed over in `workerinput`. A message is a tuple of builtins: its
kind and its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import compat

# From the controller to a worker, each with one value.
WINDOW = "window"
"""So many rollouts may be in flight."""
COMING = "coming"
"""Indices of the next items, in order."""
CACHED = "cached"
"""`(index, result as JSON)` of items whose runs need not be run."""
PLACES = "places"
"""Where runs are kept, by suite."""
HALT = "halt"
"""Start nothing more, for this reason."""
HOLD = "hold"
"""Send nothing for so many seconds."""
CANCEL = "cancel"
"""Cancel what is in flight."""

# From a worker to the controller.
LOADED = "loaded"
"""Digests of the loaded files, by suite and name."""
SUITES = "suites"
"""The suites as JSON."""
SELECTED = "selected"
"""Selected runs by suite."""
IDENTITIES = "identities"
"""Fingerprints of marked functions as JSON."""
NAMED = "named"
"""Suite, row and run by the node ids from which they cannot be read."""
ALIVE = "alive"
"""The process id, every second."""
BEGUN = "begun"
"""The first run starts."""
FINISHED = "finished"
"""A run ahead of its report: index, result as JSON, offset and size of its lines in the worker's
file, whether the result is final."""
PACE = "pace"
"""The endpoint limits the rate, or has answered again: kind, seconds to wait."""
PROBLEM = "problem"
"""Why the session must stop."""
GAVE_UP = "gave up"
"""Why this worker ends."""

_CHANNEL = "osmosis_channel"
_INPUT = "osmosis"
"""Keys in xdist's `workerinput`."""


def send(channel: Any, kind: str, *values: Any) -> None:
    """Send a message; ignored where there is no channel or its other end has exited."""
    if channel is None:
        return
    try:
        channel.send((kind, *values))
    except OSError:
        return  # xdist itself notices a worker that is gone


class ControllerLink:
    """The controller's ends of the channels, one a worker."""

    def __init__(self, receive: Callable[[Any, tuple[Any, ...]], None]) -> None:
        self.channels: dict[str, Any] = {}
        """By the id of the worker's gateway."""
        self._receive = receive

    def open(self, node: Any, text: str) -> None:
        """Give a new worker its end of a channel, and `text`."""
        node.workerinput[_INPUT] = text
        channel = compat.open_channel(node)
        if channel is None:
            return
        node.workerinput[_CHANNEL] = channel
        self.channels[node.gateway.id] = channel
        channel.setcallback(lambda message: self._receive(node, message))

    def broadcast(self, kind: str, value: Any, *, but: Any = None) -> None:
        """Send to all workers, or to all but one."""
        spared = None if but is None else but.gateway.id
        for worker, channel in self.channels.items():
            if worker != spared:
                send(channel, kind, value)


class WorkerLink:
    """A worker's end of its channel."""

    def __init__(self, config: pytest.Config) -> None:
        given = compat.worker_input(config)
        self.text: str = given[_INPUT]
        """What the controller gave with the channel."""
        self.worker_id: str = given["workerid"]
        self._channel = given.get(_CHANNEL)

    def send(self, kind: str, *values: Any) -> None:
        """Send to the controller; ignored if it has exited."""
        send(self._channel, kind, *values)

    def listen(self, handle: dict[str, Callable[[Any], None]]) -> None:
        """Call `handle[kind](value)` for every message, in xdist's receiver thread.

        When the controller has exited, that is `CANCEL`.
        """

        def receive(message: tuple[str, Any]) -> None:
            kind, value = message
            handle[kind](value)

        if self._channel is not None:
            self._channel.setcallback(receive, endmarker=(CANCEL, None))
