"""How often the limits of a percentile hold the truth: simulated sessions of durations.

    python -m benchmarks.percentiles [SESSIONS]

Each row has a factor of its own, which its runs share. `tied` durations are in steps of 4 s. An
open limit, where rows are too few for one, holds everything: `open` counts these.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pytest_osmosis.analysis.statistics.order import nearest_rank, percentile_limits

if TYPE_CHECKING:
    from pytest_osmosis.analysis.statistics.estimators import Floats

LAWS = ("exponential", "log-normal", "tied")
ROWS = (20, 50, 100, 300)
RUNS = (1, 5)
PERCENTILES = (0.5, 0.9, 0.95, 0.99)
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PercentileCell:
    """What was counted of one law, size and percentile."""

    law: str
    rows: int
    n: int
    p: float
    sessions: int
    covered: int
    open: int

    def __str__(self) -> str:
        """One line of the table."""
        counts = (self.covered, self.open)
        found = " ".join(f"{count / self.sessions:7.1%}" for count in counts)
        return f"{self.law:>12} {self.rows:>4} {self.n:>2} {100 * self.p:3.0f} {found}"


def simulate(
    law: str, rows: int, n: int, p: float, *, sessions: int, seed: int = 0
) -> PercentileCell:
    """Simulate sessions of so many rows and runs."""
    draw = np.random.default_rng([seed, rows, n, LAWS.index(law), round(100 * p)])
    truth, covered, is_open = _truth(law, p), 0, 0
    for _ in range(sessions):
        found = percentile_limits(durations(draw, law, rows, n), p, confidence=CONFIDENCE)
        assert found is not None
        covered += found.low <= truth <= found.high
        is_open += bool(np.isinf(found.high - found.low))
    return PercentileCell(law, rows, n, p, sessions, covered, is_open)


def durations(draw: np.random.Generator, law: str, rows: int, n: int) -> Floats:
    """Return the durations of n runs of so many rows, in seconds."""
    own = draw.standard_normal((rows, 1))
    each = draw.standard_normal((rows, n))
    if law == "log-normal":
        found = 8.0 * np.exp(np.sqrt(0.5) * own + np.sqrt(0.5) * each)
    else:
        found = 8.0 * np.exp(0.5 * own) * draw.exponential(size=(rows, n))
    return np.ceil(found / 4.0) * 4.0 if law == "tied" else found


@lru_cache
def _truth(law: str, p: float) -> float:
    """Return the percentile of all runs there could be, from four million."""
    many = durations(np.random.default_rng(1), law, 4_000_000, 1).ravel()
    return nearest_rank(np.sort(many), p)


def main(sessions: int) -> None:
    """Print one line a law, size and percentile."""
    print(f"{'law':>12} rows  n   p  covers    open")
    for law in LAWS:
        for rows in ROWS:
            for n in RUNS:
                for p in PERCENTILES:
                    print(simulate(law, rows, n, p, sessions=sessions), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2_000)
