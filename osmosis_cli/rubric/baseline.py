"""An earlier result file to compare with: its statistics, and what has changed since."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.escaping import printable

from ..errors import wrong_use

COMPARED = ("average", "variance", "stdev", "min", "max")
_COUNTS = ("success_count", "failure_count", "total_runs")


@dataclass(frozen=True, slots=True)
class Baseline:
    """The statistics of an earlier session."""

    path: Path
    statistics: Mapping[str, float]

    def document(self, now: Mapping[str, Any]) -> dict[str, Any]:
        """Return the comparison as the result file has it."""
        return {
            "source_path": str(self.path),
            "baseline_statistics": dict(self.statistics),
            "delta_statistics": self.deltas(now),
        }

    def deltas(self, now: Mapping[str, Any]) -> dict[str, float]:
        """Return now less then, of the figures that both have."""
        return {
            name: now[name] - before
            for name, before in self.statistics.items()
            if now.get(name) is not None
        }

    def lines(self, now: Mapping[str, Any]) -> Iterator[str]:
        """Yield the comparison for the terminal."""
        yield f"compared with {printable(str(self.path))}"
        deltas = self.deltas(now)
        for name in COMPARED:
            if name in deltas:
                then, change = self.statistics[name], deltas[name]
                shown = name if name != "stdev" else "standard deviation"
                yield f"  {shown:<19} {then:.4g} -> {now[name]:.4g} ({change:+.4g})"


def load_baseline(path: Path) -> Baseline:
    """Return the statistics in a result file; what holds none is a usage error."""
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise wrong_use(f"--baseline {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise wrong_use(f"--baseline {path}: is not JSON") from None
    statistics = _statistics(document)
    if not statistics:
        raise wrong_use(
            f"--baseline {path}: has no 'overall_statistics'; "
            "expected a result file of osmosis eval rubric"
        )
    return Baseline(path, statistics)


def _statistics(document: object) -> dict[str, float]:
    if not isinstance(document, dict):
        return {}
    found = document.get("overall_statistics", document)
    if not isinstance(found, dict):
        return {}
    numbers = {
        name: value
        for name in (*COMPARED, *_COUNTS)
        if isinstance(value := found.get(name), (int, float)) and not isinstance(value, bool)
    }
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
