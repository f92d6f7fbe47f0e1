"""Contenders one after the other, again and again: whatever the machine does, it does to all.

Knows neither what is measured nor what is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .measure import Cost, Spread


@dataclass(frozen=True, slots=True)
class Observation:
    """One execution, and what the endpoint saw of it."""

    cost: Cost
    counts: Mapping[str, Any]
    inside: tuple[Mapping[str, Any], ...] = ()
    """What a plugin of the benchmark's found in each process."""

    @property
    def first_s(self) -> float:
        """From the start of the command to its first request."""
        return float(self.counts["first_at"] - self.cost.started_at)

    @property
    def tail_s(self) -> float:
        """From the last reply to the end of the command."""
        return float(self.cost.started_at + self.cost.wall_s - self.counts["last_at"])


@dataclass(frozen=True, slots=True)
class Series:
    """All executions of one contender, in the order of the rounds."""

    observations: tuple[Observation, ...]

    def spread(self, of: Callable[[Observation], float]) -> Spread:
        """One number of each."""
        return Spread.of(of(observation) for observation in self.observations)

    @property
    def wall_s(self) -> Spread:
        """Walls."""
        return self.spread(lambda one: one.cost.wall_s)

    @property
    def rss_mb(self) -> Spread:
        """Peak memory."""
        return self.spread(lambda one: one.cost.rss_mb)

    @property
    def max_in_flight(self) -> int:
        """The most requests that the endpoint ever had at once."""
        return max(int(one.counts["max_in_flight"]) for one in self.observations)

    def cpu_ms(self, n: int) -> Spread:
        """Processor time a rollout."""
        return self.spread(lambda one: one.cost.cpu_s / n * 1000.0)

    def faster_than(self, other: Series) -> Spread:
        """The other's wall over this one's, round by round."""
        pairs = zip(self.observations, other.observations, strict=True)
        return Spread.of(theirs.cost.wall_s / ours.cost.wall_s for ours, theirs in pairs)

    def cheaper_than(self, other: Series) -> Spread:
        """The other's processor time over this one's, round by round."""
        pairs = zip(self.observations, other.observations, strict=True)
        return Spread.of(theirs.cost.cpu_s / ours.cost.cpu_s for ours, theirs in pairs)


def interleaved(
    contenders: Mapping[str, Callable[[], Observation]], *, repeats: int, warm_up: bool = True
) -> dict[str, Series]:
    """A B C A B C …; a first round that is not counted fills caches."""
    found: dict[str, list[Observation]] = {name: [] for name in contenders}
    for number in range(-int(warm_up), repeats):
        for name, execute in contenders.items():
            observation = execute()
            if number >= 0:
                found[name].append(observation)
    return {name: Series(tuple(observations)) for name, observations in found.items()}
