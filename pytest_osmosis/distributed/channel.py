"""The channel between the controller and each worker, beside xdist's own.

It is an execnet channel that is handed over in `workerinput`. A message is a tuple: its kind, which
`messages` lists, and its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import compat
from .messages import CANCEL

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

    @property
    def is_open(self) -> bool:
        """Whether there is a channel."""
        return self._channel is not None

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
