"""What a server says about itself: one line an event, `name key=value ...`, and counters.

Fields are escaped and cut; no caller hands in a key, a prompt or an answer. Knows neither HTTP nor
where lines end up.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

logger = logging.getLogger("osmosis.server")

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/-+[]%")
_MAX_VALUE = 500
_HELP = {
    "osmosis_rollouts_active": "Rollouts that run or wait.",
    "osmosis_rollouts_running": "Rollouts that run.",
    "osmosis_rollouts_queued": "Rollouts that wait for a place.",
    "osmosis_records": "Rollouts that the server remembers.",
    "osmosis_results_undelivered": "Results that the trainer has not taken yet.",
    "osmosis_results_bytes": "Bytes of results that are held.",
    "osmosis_rollouts_total": "Rollouts that have ended.",
    "osmosis_rollout_seconds_total": "Seconds that the ended rollouts ran.",
    "osmosis_requests_total": "Requests that were answered.",
    "osmosis_callbacks_total": "Results by what became of them.",
}


def event(name: str, level: int = logging.INFO, **fields: object) -> None:
    """Log one line; a field that is None is left out."""
    if logger.isEnabledFor(level):
        told = (f"{key}={_value(value)}" for key, value in fields.items() if value is not None)
        logger.log(level, "%s", " ".join([name, *told]))


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = str(value)[:_MAX_VALUE]
    return text if text and _PLAIN.issuperset(text) else json.dumps(text)


class Counters:
    """Numbers that only grow, by name and labels."""

    def __init__(self) -> None:
        self._totals: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._totals[name, tuple(sorted(labels.items()))] += amount  # type: ignore[assignment]

    def total(self, name: str) -> float:
        """Return the counter over all labels."""
        return sum(amount for (found, _), amount in self._totals.items() if found == name)

    def text(self, gauges: Mapping[str, Any]) -> str:
        """Everything in the text format of Prometheus, the gauges first."""
        return "\n".join([*_gauge_lines(gauges), *self._counter_lines(), ""])

    def _counter_lines(self) -> Iterator[str]:
        last = ""
        for (name, labels), amount in sorted(self._totals.items()):
            if name != last:
                yield from _head(name, "counter")
                last = name
            told = ",".join(f'{key}="{value}"' for key, value in labels)
            yield f"{name}{{{told}}} {amount:g}" if told else f"{name} {amount:g}"


def _gauge_lines(gauges: Mapping[str, Any]) -> Iterator[str]:
    for name, amount in gauges.items():
        yield from _head(name, "gauge")
        yield f"{name} {amount:g}"


def _head(name: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {_HELP[name]}"
    yield f"# TYPE {name} {kind}"
