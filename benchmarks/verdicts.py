"""How often verdicts are wrong: simulated pairs of sessions, judged by the gate's own code.

    python -m benchmarks.verdicts [PAIRS [PROCESSES]]

Each row's chance of a pass is drawn from a beta law. A/A: both sessions are of one agent; how often
does `pass@1 - baseline >= 0` fail (nominal 2.5 %), is any row called regressed (at most 10 %), and
does the 95 % interval of the difference hold the truth, 0? A/B: the later agent is worse by the
fall that the line of the A/A pair promises to show, each row by the same part of itself; how often
is that shown (nominal 80 %)? `promises` is the share of pairs whose line names a fall.

Then rows in clusters, with one chance a cluster (so that icc is the correlation of its rows), drawn
anew in each session: `figure` is the share of sessions whose interval of pass@1 holds the truth,
`rows` the same where rows are taken as independent, and `red` how often those fail.

Then designs as `osmosis eval plan` has them, by rate and spread alone: pairs of sessions whose
later agent is worse by the fall that the plan names; how often is that shown (nominal 80 %)?

Then judges against people, of 600 rows with one run: a judge calls a right answer right with one
chance and a wrong one with another, some rows are marked. `covers`: the share of intervals
that hold the truth; `alone`: of those of the marks alone; `width`, `widest`: how wide the corrected
one is beside it, on average and at most.

Last, the limits of percentiles: see `benchmarks/percentiles.py`.

With 10,000 pairs the standard error of a share near 2.5 % is 0.16 points, near 80 % 0.4.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import percentiles
from pytest_osmosis.analysis.gates.evaluate import evaluate
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.planned_rows import PlannedRows
from pytest_osmosis.analysis.score_table import ScoreTable
from pytest_osmosis.analysis.statistics.designs import Rates
from pytest_osmosis.analysis.statistics.intervals import unit_interval
from pytest_osmosis.analysis.statistics.prediction_powered import corrected_mean
from pytest_osmosis.features.comparison.changed_rows import changed_rows
from pytest_osmosis.features.comparison.matched import Matched
from pytest_osmosis.features.comparison.row_matching import match_rows

if TYPE_CHECKING:
    from pytest_osmosis.analysis.statistics.estimators import Floats
    from pytest_osmosis.verdicts import GateResult

LAWS = ((8, 2), (2, 2), (20, 1), (0.5, 0.5), (0.3, 3))
ROWS = (10, 20, 50, 200)
RUNS = (1, 3, 5)
GATE = parse_gate("pass@1 - baseline >= 0")


@dataclass(frozen=True, slots=True)
class Cell:
    """What was counted of one law and size."""

    law: tuple[float, float]
    rows: int
    n: int
    pairs: int
    failed: int = 0
    regressed: int = 0
    covered: int = 0
    promises: int = 0
    shown: int = 0

    def __str__(self) -> str:
        """One line of the table."""
        power = f"{self.shown / self.promises:6.1%}" if self.promises else "     -"
        shares = (self.failed, self.regressed, self.covered, self.promises)
        found = " ".join(f"{share / self.pairs:9.2%}" for share in shares)
        return f"beta{self.law!s:>10} {self.rows:>4} {self.n:>2} {found}  {power}"


def simulate(law: tuple[float, float], rows: int, n: int, *, pairs: int, seed: int = 0) -> Cell:
    """Simulate pairs of sessions of so many rows and runs."""
    draw = np.random.default_rng([seed, rows, n, LAWS.index(law)])
    planned = planned_rows(rows)
    failed = regressed = covered = promises = shown = 0
    for _ in range(pairs):
        chances = draw.beta(*law, size=rows)
        baseline, later = (session_of(draw, planned, chances, n) for _ in range(2))
        verdict = evaluate(GATE, later, baseline=baseline)
        failed += verdict.outcome == "failed"
        covered += _covers(verdict)
        both = Matched.of(later, baseline, match_rows(planned, planned))
        changes, _, _ = changed_rows(both, "right")
        regressed += any(change.verdict == "regressed" for change in changes)
        fall, most = verdict.sensitivity, law[0] / sum(law)
        if fall is not None and fall <= most:
            promises += 1
            worse = session_of(draw, planned, chances * (1.0 - fall / most), n)
            again = session_of(draw, planned, chances, n)
            shown += evaluate(GATE, worse, baseline=again).outcome == "failed"
    return Cell(law, rows, n, pairs, failed, regressed, covered, promises, shown)


SIZES = ((6, 20), (20, 20), (40, 5))
"""Clusters, and rows of each."""
ICCS = (0.0, 0.2, 0.4)
RATES = (0.7, 0.9)


@dataclass(frozen=True, slots=True)
class ClusterCell:
    """What was counted of clusters of one size, with one correlation and rate."""

    size: tuple[int, int]
    icc: float
    rate: float
    pairs: int
    held: int = 0
    held_by_rows: int = 0
    failed: int = 0
    failed_by_rows: int = 0
    covered: int = 0
    promises: int = 0
    shown: int = 0

    def __str__(self) -> str:
        """One line of the table."""
        power = f"{self.shown / self.promises:6.1%}" if self.promises else "     -"
        counts = (
            self.held, self.held_by_rows, self.failed, self.failed_by_rows, self.covered,
            self.promises,
        )  # fmt: skip
        found = " ".join(f"{count / self.pairs:9.2%}" for count in counts)
        return f"{self.size[0]:>3} x {self.size[1]:>2} {self.icc:4} {self.rate:4} {found}  {power}"


def simulate_clusters(
    size: tuple[int, int], icc: float, rate: float, *, pairs: int, seed: int = 0
) -> ClusterCell:
    """Simulate pairs of sessions of rows in so many clusters, with one run a row."""
    number, rows = size
    draw = np.random.default_rng([seed, number, rows, round(100 * icc), round(100 * rate)])
    planned = planned_rows(number * rows)
    clusters = np.repeat(np.arange(number), rows)

    def session(fall: float = 0.0) -> ScoreTable:
        chances = np.full(number, rate)
        if icc:
            chances = draw.beta(
                *(share * (1.0 - icc) / icc for share in (rate, 1.0 - rate)), number
            )
        chances *= 1.0 - fall / rate
        return replace(session_of(draw, planned, chances[clusters], 1), clusters=clusters)

    counts = dict.fromkeys(_COUNTS_OF_CLUSTERS, 0)
    for _ in range(pairs):
        baseline, later = session(), session()
        plain = replace(later, clusters=None)
        counts["held"] += _holds(later, rate)
        counts["held_by_rows"] += _holds(plain, rate)
        verdict = evaluate(GATE, later, baseline=baseline)
        counts["failed"] += verdict.outcome == "failed"
        counts["failed_by_rows"] += evaluate(GATE, plain, baseline=baseline).outcome == "failed"
        counts["covered"] += _covers(verdict)
        fall = verdict.sensitivity
        if fall is not None and fall <= rate:
            counts["promises"] += 1
            worse = evaluate(GATE, session(fall), baseline=session())
            counts["shown"] += worse.outcome == "failed"
    return ClusterCell(size, icc, rate, pairs, **counts)


_COUNTS_OF_CLUSTERS = (
    "held", "held_by_rows", "failed", "failed_by_rows", "covered", "promises", "shown",
)  # fmt: skip


def _holds(table: ScoreTable, truth: float) -> bool:
    verdict = evaluate(_PLAIN, table, confidence=0.95)
    assert verdict.interval is not None
    return verdict.interval.low <= truth <= verdict.interval.high


_PLAIN = parse_gate("pass@1 >= 0")


PLANS = (
    (Rates(rate=0.8, spread=0.0), 100, 1),
    (Rates(rate=0.8, spread=0.2), 50, 3),
    (Rates(rate=0.8, spread=0.2), 200, 1),
    (Rates(rate=0.93, spread=0.07), 200, 2),
    (Rates(rate=0.6, spread=0.3), 100, 5),
    (Rates(rate=0.5, spread=0.4), 400, 1),
    (Rates(rate=0.7, spread=0.3, size=5.0, between=0.2), 100, 3),
    (Rates(rate=0.7, spread=0.2, size=5.0, between=0.2), 200, 1),
    (Rates(rate=0.9, spread=0.15, size=20.0, between=0.1), 400, 2),
)
"""Rates, and rows and runs of a row of a design."""


@dataclass(frozen=True, slots=True)
class PlanCell:
    """How often the fall that a plan names was shown by sessions of its design."""

    rates: Rates
    rows: int
    n: int
    fall: float
    pairs: int
    shown: int

    def __str__(self) -> str:
        """One line of the table."""
        rates = self.rates
        parts = f"{rates.rate:4} {rates.spread:6} {rates.size:6g} {rates.between:7}"
        return f"{parts} {self.rows:5} {self.n:2}  {self.fall:.3f}  {self.shown / self.pairs:6.1%}"


def simulate_plan(rates: Rates, rows: int, n: int, *, pairs: int, seed: int = 0) -> PlanCell:
    """Simulate pairs of sessions of a design, the later one with the fall that its plan names."""
    draw = np.random.default_rng([seed, rows, n, round(100 * rates.rate)])
    fall = rates.design(rows, n).fall(0.0, 0.95)
    assert fall is not None
    planned, size = planned_rows(rows), round(rates.size)
    clusters = np.arange(rows) // size if size > 1 else None
    shown = 0
    for _ in range(pairs):
        chances = _chances(draw, rates, rows, clusters)
        before, after = (
            replace(session_of(draw, planned, each, n), clusters=clusters)
            for each in (chances, chances * (1.0 - fall / rates.rate))
        )
        shown += evaluate(GATE, after, baseline=before).outcome == "failed"
    return PlanCell(rates, rows, n, fall, pairs, shown)


def _chances(draw: np.random.Generator, rates: Rates, rows: int, clusters: Floats | None) -> Floats:
    """Return the chances of rows; those of a cluster vary around one of its own, by beta laws."""
    if clusters is None:
        return _beta(draw, np.full(rows, rates.rate), rates.spread)
    of_clusters = _beta(draw, np.full(clusters.max() + 1, rates.rate), rates.between)
    # What is left for the rows, as a part of what the chances of their clusters leave room for.
    room = rates.rate * (1.0 - rates.rate) - rates.between**2
    share = math.sqrt((rates.spread**2 - rates.between**2) / room)
    own = of_clusters[clusters]
    return _beta(draw, own, share * np.sqrt(own * (1.0 - own)))


def _beta(draw: np.random.Generator, means: Floats, spread: Floats | float) -> Floats:
    """Return draws with these means and deviations; the means themselves without deviation."""
    if not np.any(spread):
        return means
    scale = means * (1.0 - means) / np.square(spread) - 1.0
    return draw.beta(means * scale, (1.0 - means) * scale)


def plan_cells(pairs: int, processes: int) -> Iterator[PlanCell]:
    """Yield every design of a plan."""
    with ProcessPoolExecutor(processes) as pool:
        parts = [pool.submit(simulate_plan, *plan, pairs=pairs) for plan in PLANS]
        yield from (part.result() for part in parts)


MARKS = (20, 50, 200)
JUDGES = {"honest": (0.97, 0.05), "lenient": (0.97, 0.5), "harsh": (0.6, 0.1), "blind": (0.5, 0.5)}
"""With what chance a judge calls a right answer right, and a wrong one."""


@dataclass(frozen=True, slots=True)
class PeopleCell:
    """What was counted of one judge, rate and number of marks."""

    judge: str
    rate: float
    marks: int
    pairs: int
    covered: int = 0
    covered_alone: int = 0
    width: float = 0.0
    widest: float = 0.0

    def __str__(self) -> str:
        """One line of the table."""
        shares = f"{self.covered / self.pairs:7.2%} {self.covered_alone / self.pairs:7.2%}"
        widths = f"{self.width / self.pairs:6.2f} {self.widest:7.2f}"
        return f"{self.judge:>8} {self.rate:5} {self.marks:5} {shares} {widths}"


def simulate_people(
    judge: str, rate: float, marks: int, *, pairs: int, rows: int = 600, seed: int = 0
) -> PeopleCell:
    """Simulate sessions of which so many rows are marked, drawn at random."""
    draw = np.random.default_rng([seed, marks, round(100 * rate), [*JUDGES].index(judge)])
    covered, alone, widths = 0, 0, []
    for _ in range(pairs):
        is_right = draw.random(rows) < rate
        scores = (draw.random(rows) < np.where(is_right, *JUDGES[judge])).astype(float)
        is_marked = draw.permutation(rows) < marks
        judged, said = (np.where(is_marked, each, np.nan) for each in (scores, is_right))
        found = corrected_mean(scores, judged, said)
        plain = unit_interval(is_right[is_marked].astype(float))
        assert found is not None and found.interval is not None and plain is not None
        covered += found.interval.low <= rate <= found.interval.high
        alone += plain.low <= rate <= plain.high
        widths.append((found.interval.high - found.interval.low) / (plain.high - plain.low))
    return PeopleCell(judge, rate, marks, pairs, covered, alone, sum(widths), max(widths))


def people_cells(pairs: int, processes: int) -> Iterator[PeopleCell]:
    """Yield every judge, rate and number of marks."""
    with ProcessPoolExecutor(processes) as pool:
        parts = [
            pool.submit(simulate_people, judge, rate, marks, pairs=pairs)
            for judge in JUDGES
            for rate in RATES
            for marks in MARKS
        ]
        yield from (part.result() for part in parts)


def planned_rows(rows: int) -> PlannedRows:
    """Return so many rows."""
    names = [f"row-{row}" for row in range(rows)]
    return PlannedRows(range(rows), names, names, [""] * rows)


def session_of(
    draw: np.random.Generator, planned: PlannedRows, chances: Floats, n: int
) -> ScoreTable:
    """Return a session of n runs of rows with these chances."""
    scores = (draw.random((chances.size, n)) < chances[:, None]).astype(float)
    return ScoreTable(
        rows=planned,
        n=n,
        pass_threshold=1.0,
        scores={"right": scores},
        runs=np.full(scores.shape, None),
        finished=np.ones(scores.shape, bool),
        given={"right": np.ones(scores.shape, bool)},
    )


def _covers(verdict: GateResult) -> bool:
    found = verdict.interval
    return found is not None and found.low <= 0.0 <= found.high


def cluster_cells(pairs: int, processes: int) -> Iterator[ClusterCell]:
    """Yield every size, correlation and rate of clusters."""
    with ProcessPoolExecutor(processes) as pool:
        parts = [
            pool.submit(simulate_clusters, size, icc, rate, pairs=pairs)
            for size in SIZES
            for icc in ICCS
            for rate in RATES
        ]
        yield from (part.result() for part in parts)


def cells(pairs: int, processes: int) -> Iterator[Cell]:
    """Yield every law and size, a part of the pairs in each process."""
    share = math.ceil(pairs / processes)
    with ProcessPoolExecutor(processes) as pool:
        for law in LAWS:
            for rows in ROWS:
                for n in RUNS:
                    parts = [
                        pool.submit(simulate, law, rows, n, pairs=share, seed=seed)
                        for seed in range(processes)
                    ]
                    yield _joined([part.result() for part in parts])


def _joined(parts: list[Cell]) -> Cell:
    counts = ("pairs", "failed", "regressed", "covered", "promises", "shown")
    sums = {name: sum(getattr(part, name) for part in parts) for name in counts}
    return Cell(parts[0].law, parts[0].rows, parts[0].n, **sums)


def main(pairs: int, processes: int) -> None:
    """Print one line a law and size."""
    print(f"{'law':>14} rows  n    failed regressed    covers  promises   shown")
    for cell in cells(pairs, processes):
        print(cell, flush=True)
    print(
        "\nclusters  icc rate    figure      rows    failed       red    covers  promises   shown"
    )
    for found in cluster_cells(pairs, processes):
        print(found, flush=True)
    print("\nrate spread   size between  rows  n   fall   shown")
    for plan in plan_cells(pairs, processes):
        print(plan, flush=True)
    print("\n   judge  rate marks  covers   alone  width  widest")
    for people in people_cells(pairs, processes):
        print(people, flush=True)
    print()
    percentiles.main(pairs)


if __name__ == "__main__":
    main(*(int(given) for given in (sys.argv[1:] + ["10000", "2"][len(sys.argv) - 1 :])[:2]))
