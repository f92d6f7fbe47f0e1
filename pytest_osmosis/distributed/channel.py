"""The channel between the controller and each worker, beside xdist's own.

It is an execnet channel that is handed over in `workerinput`. A message is a tuple: its kind, which
`messages` lists, and its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .messages import CANCEL
from .processes import worker_input

_CHANNEL = "osmosis_channel"
_INPUT = "osmosis"
"""Keys in xdist's `workerinput`."""


def send(channel: Any, kind: str, *values: Any) -> None:
    """Send a message; ignored where its other end has exited."""
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
        channel = node.workerinput[_CHANNEL] = node.gateway.newchannel()
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
        given = worker_input(config)
        self.text: str = given[_INPUT]
        """What the controller gave with the channel."""
        self.worker_id: str = given["workerid"]
        self._channel = given[_CHANNEL]

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

        self._channel.setcallback(receive, endmarker=(CANCEL, None))
