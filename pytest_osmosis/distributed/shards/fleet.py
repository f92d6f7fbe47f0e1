"""The processes of an evaluation on other machines, as the driver sees them.

What starts them is an executor, found by an entry point: this package knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from . import Shards

GROUP = "osmosis.fleets"
"""The group of the entry point that makes fleets."""


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """What the process of any shard needs to know."""

    words: Sequence[str]
    """The arguments of its pytest session."""
    environment: Mapping[str, str] = field(repr=False)
    """Variables that it has besides those of its machine, secrets among them: given once."""
    secrets: Sequence[str]
    """The names of those variables whose values are secret."""
    root: Path
    """The project's folder on this machine, of which it gets a copy."""
    folder: str
    """Where the session was started, from there."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files that must be in the copy, by their places in it."""
    data: Sequence[str] = ()
    """The data files of the evaluations: places in the copy, or paths that all machines have."""
    silence_s: float = 30.0
    """How long a process may say nothing before it is ended."""


class Listener(Protocol):
    """Who hears of the shards' processes; called from one thread."""

    def receive(self, shard: int, kind: str, values: Sequence[Any]) -> None:
        """Take a message of a shard."""

    def gone(self, shard: int, reason: str, *, suspect: bool) -> None:
        """Note that a shard's process has ended; `suspect`: a run of its may have done that."""

    def lost(self, reason: str) -> None:
        """Note that no process can be started any more; those there are end too."""


class Fleet(Protocol):
    """The processes of an evaluation's shards, numbered from 0."""

    def connect(self, order: ShardOrder) -> str:
        """Take what every process gets, and return where they will run.

        Raises:
            ConfigurationError: where they cannot.
        """

    @property
    def capacity(self) -> int:
        """How many there is room for; known once connected."""

    def begin(self, listener: Listener) -> None:
        """Take who hears of them, before any is started."""

    def start(self, shard: int) -> None:
        """Start the process of a shard, or start it again."""

    def send(self, shard: int, kind: str, *values: Any) -> None:
        """Send a message; ignored where the process has ended. From any thread."""

    def end(self) -> None:
        """Begin to end all processes, of which nothing more is wanted; do not wait. Idempotent."""

    def close(self) -> None:
        """Wait a moment for processes to end, and end those that do not. Idempotent."""


def make_fleet(shards: Shards) -> Fleet:
    """Return the fleet of a session's shards; raise ConfigurationError where there is none here."""
    [found] = entry_points(group=GROUP)
    make: Callable[[Shards], Fleet] = found.load()
    return make(shards)
