"""Which shard has which runs, how many of them may be in flight in each, and what a loss means.

Pure: knows neither processes nor machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from ...run_result import RunId
from ..shares import shares

MAX_LOSSES = 3
"""A shard that is lost so often without a run ending in between is given up."""


@dataclass(slots=True)
class Shard:
    """One part of an evaluation."""

    number: int
    todo: dict[RunId, None] = field(default_factory=dict)
    """Runs that have no result yet, in order."""
    careful: int = 0
    """So many of the next runs are made one at a time: one of them may have ended the process."""
    has_begun: bool = False
    """Its process knows its runs."""
    has_ended: bool = False
    """Nothing more comes of it."""
    losses: int = 0
    """How often its process was lost since a run has ended."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What becomes of a shard whose process was lost."""

    again: bool
    """It is started again."""
    culprit: RunId | None = None
    """The run that ended the process."""


class ShardPlan:
    """The shards of a session. Not locked."""

    def __init__(self, count: int, window: int, shard_of: Callable[[RunId], int]) -> None:
        """`shard_of` returns the number of a run's shard."""
        self.shards = [Shard(number) for number in range(count)]
        self._window = window
        self._shard_of = shard_of

    def assign(self, run: RunId) -> None:
        """Add a run to its shard."""
        self.shards[self._shard_of(run)].todo[run] = None

    def expects(self, run: RunId) -> bool:
        """Return whether a result of the run may still come."""
        shard = self.shards[self._shard_of(run)]
        return run in shard.todo and not shard.has_ended

    def finish(self, shard: int, run: RunId) -> bool:
        """Note that a run has ended; False where it had no result to wait for."""
        there = self.shards[shard]
        if run not in there.todo:
            return False
        del there.todo[run]
        there.losses = 0
        there.careful = max(0, there.careful - 1)
        return True

    def live(self) -> Iterator[Shard]:
        """Yield the shards of which something may still come."""
        return (shard for shard in self.shards if not shard.has_ended)

    def resize(self, window: int) -> None:
        """Set how many rollouts may be in flight over all shards."""
        self._window = window

    def windows(self) -> dict[int, int]:
        """Return how many rollouts may be in flight in each shard: they sum to the window.

        A shard that waits for its process has its part too: nothing is taken back from others.
        """
        numbers = [shard.number for shard in self.live()]
        return dict(zip(numbers, shares(self._window, len(numbers)), strict=True))

    def lose(self, shard: int, *, suspect: bool) -> Loss:
        """Decide what becomes of a shard whose process was lost.

        Runs start in their order, so those that were in flight are among the first that are left.
        Where one of them may be at fault, the next process makes these one at a time.
        """
        there = self.shards[shard]
        if not there.todo:
            return Loss(again=False)
        culprit = None
        there.losses += 1
        if suspect and there.has_begun:
            if there.careful:
                [culprit] = islice(there.todo, 1)
                self.finish(shard, culprit)
            else:
                most = self.windows().get(shard, 1)
                there.careful = min(max(most, 1), len(there.todo))
        there.has_begun = False
        return Loss(bool(there.todo) and there.losses <= MAX_LOSSES, culprit)

    def end(self, shard: int) -> None:
        """Note that nothing more comes of a shard."""
        self.shards[shard].has_ended = True
