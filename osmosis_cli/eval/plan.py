"""`osmosis eval plan`: what a design of rows and runs can show, before it is paid for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_osmosis.escaping import counted, dollars
from pytest_osmosis.reports.text_table import columns, wrapped
from pytest_osmosis.run_result import without_module

from ..errors import CommandError
from ..shared_options import NumberRange, json_option, print_json
from .compare import confidence_option
from .lines import say, say_table
from .report import read

if TYPE_CHECKING:
    from pytest_osmosis.analysis.score_table import ScoreTable
    from pytest_osmosis.analysis.statistics.designs import Choice, Rates
    from pytest_osmosis.suite_results import SuiteResult

EPILOG = """\b
Examples:
  osmosis eval plan results.json --rows 100 --n 3
  osmosis eval plan --rate 0.8 --spread 0.3 --rows 100 --n 3 --fall 0.05
"""
_SIZES = ((1, 1), (2, 1), (4, 1), (1, 2), (1, 4))
"""What is shown beside the design that was asked for: times its rows, times its runs."""
_RUNS = (1, 3, 5, 10)
_CHANCE = NumberRange(0.0, 1.0, min_open=True, max_open=True)


@dataclass(frozen=True, slots=True)
class Known:
    """What a plan is made of."""

    rates: Rates
    cost_usd: float | None
    """Of a run."""
    notes: tuple[str, ...]


@click.command("plan", epilog=EPILOG)
@click.argument("report", required=False, metavar="[REPORT.json]", type=click.Path(path_type=Path))
@click.option("--rows", type=click.IntRange(min=2), required=True, metavar="R", help="Rows.")
@click.option("--n", type=click.IntRange(min=1, max=1000), default=1, metavar="N",
              help="Runs a row (default: 1).")  # fmt: skip
@click.option("--fall", type=_CHANCE, default=0.05, metavar="F",
              help="Name the cheapest design that shows a fall of pass@1 by this "
              "(default: 0.05).")  # fmt: skip
@click.option("--eval-fn", metavar="NAME", help="The eval function of the report.")
@click.option("--rate", type=_CHANCE, metavar="P", help="Without a report: pass@1.")
@click.option("--spread", type=NumberRange(0.0, 0.5), metavar="S",
              help="Standard deviation of the rows' chances (default: the report's, which takes "
              "two runs a row; else 0: all rows alike).")  # fmt: skip
@click.option("--cluster", metavar="COLUMN",
              help="Rows come in clusters as in the report, by the column that it was "
              "evaluated with (default: that column, if there is one).")  # fmt: skip
@click.option("--cost", type=NumberRange(min=0.0), metavar="C",
              help="Dollars a run (default: the report's).")  # fmt: skip
@confidence_option
@json_option
def plan_command(
    report: Path | None, rows: int, n: int, fall: float, confidence: float, **given: Any
) -> None:
    """Say what rows and runs can show, by an earlier report or a rate.

    For some designs: the smallest fall of pass@1 that a gate on the difference to a baseline of the
    same design shows 4 times of 5, half of the interval of pass@1, runs and cost of one session.
    """
    rate, spread, cluster = given["rate"], given["spread"], given["cluster"]
    if (report is None) == (rate is None):
        raise click.UsageError("name a report, or give --rate: one of the two")
    if report is None:
        known = _by_rate(rate, spread, cluster)
    else:
        known = _by_report(report, given["eval_fn"], spread, cluster)
    price = known.cost_usd if given["cost"] is None else given["cost"]
    designs = [
        _figures(known.rates, rows * more, n * again, price, confidence) for more, again in _SIZES
    ]
    found = _cheapest(known.rates, rows, n, fall, confidence)
    if given["as_json"]:
        cheapest = found and _figures(known.rates, found.rows, found.n, price, confidence)
        print_json({
            **asdict(known.rates), "fall": fall, "confidence": confidence, "designs": designs,
            "cheapest": cheapest, "notes": known.notes,
        })  # fmt: skip
        return
    for line in _lines(known, designs, found, fall):
        for part in wrapped(line, columns()):
            say(part)
        if line.startswith("pass@1 "):
            say("")
            say_table(_table(designs, known.rates), numbers=True)
            say("")


def _by_rate(rate: float, spread: float | None, cluster: str | None) -> Known:
    from pytest_osmosis.analysis.statistics.designs import Rates

    if cluster is not None:
        raise click.UsageError(
            "--cluster: how clusters differ is known of a report alone: name one"
        )
    most = math.sqrt(rate * (1.0 - rate))
    if spread is not None and spread > most:
        raise click.UsageError(f"--spread {spread:g}: at --rate {rate:g} at most {most:.2f}")
    return Known(Rates(rate=rate, spread=spread or 0.0), None, _notes_of(spread, 0.0))


def _notes_of(given: float | None, found: float | None) -> tuple[str, ...]:
    if given is not None or found:
        return ()
    return (
        "as if all rows had one chance, so that falls are too large rather than too small: "
        "--spread, or a report with several runs a row, says how rows differ",
    )


def _by_report(path: Path, eval_fn: str | None, spread: float | None, cluster: str | None) -> Known:
    from pytest_osmosis.analysis.score_table import score_table_of
    from pytest_osmosis.analysis.statistics.designs import Rates

    result = read(path)
    suites = [suite for suite in result.suites if suite.functions]
    if len(suites) != 1:
        raise CommandError(
            f"{path}: has {counted(len(suites), 'evaluation')}, and a plan is made of one",
            code="invalid", status=2,
        )  # fmt: skip
    [suite] = suites
    name = _function(suite, eval_fn, path)
    column = suite.info.cluster_column
    if cluster is not None and column != cluster:
        there = f"by {column!r}" if column else "by no column: give it to the evaluation"
        raise CommandError(
            f"{path}: its rows do not belong together by {cluster!r}, but {there}",
            code="invalid", status=2,
        )  # fmt: skip
    table = score_table_of(suite)
    rate, rows_apart = _moments(table, name)
    if not 0.0 < rate < 1.0:
        raise CommandError(
            f"{path}: {'every' if rate else 'no'} run passes {name}: nothing says how rows differ; "
            "give --rate in place of the report",
            code="invalid", status=2,
        )  # fmt: skip
    found = None if rows_apart is None else math.sqrt(max(0.0, rows_apart))
    size, between = _clusters(table, name, rate)
    most = math.sqrt(rate * (1.0 - rate))
    between = min(between, most)
    own = max(between, min(found or 0.0 if spread is None else spread, most))
    cost = None
    if suite.used.cost_usd is not None and suite.used.runs:
        cost = suite.used.cost_usd / suite.used.runs
    rates = Rates(rate=rate, spread=own, size=size, between=between)
    return Known(rates, cost, _notes_of(spread, found or between))


def _function(suite: SuiteResult, asked: str | None, path: Path) -> str:
    names = [each.name for each in suite.functions if "pass@1" in each.figures or suite.info.n == 1]
    fitting = [name for name in names if asked in (None, name, without_module(name))]
    if len(fitting) != 1:
        raise CommandError(
            f"{path}: --eval-fn is one of {', '.join(names) or 'none'}", code="invalid", status=2
        )
    return fitting[0]


def _moments(table: ScoreTable, name: str) -> tuple[float, float | None]:
    """Return pass@1 and the variance of the rows' chances, without the noise of their runs."""
    scores = table.row_scores(name)
    scores = scores.where(scores.runs > 0)
    rate = float((scores.passes / scores.runs).mean()) if len(scores.runs) else 0.0
    several = scores.where(scores.runs > 1)
    if not len(several.runs):
        return rate, None
    pairs = several.passes * (several.passes - 1) / (several.runs * (several.runs - 1))
    own = float((several.passes / several.runs).mean())
    return rate, float(pairs.mean()) - own**2


def _clusters(table: ScoreTable, name: str, rate: float) -> tuple[float, float]:
    """Return the mean size of a cluster, and the deviation of the chances of clusters."""
    import numpy as np

    scores = table.row_scores(name)
    scores = scores.where(scores.runs > 0)
    if scores.clusters is None:
        return 1.0, 0.0
    _, places, sizes = np.unique(scores.clusters, return_inverse=True, return_counts=True)
    off = scores.passes / scores.runs - rate
    sums, squares = np.bincount(places, off), np.bincount(places, off * off)
    pairs = float((sizes * (sizes - 1)).sum())
    found = float((sums**2 - squares).sum()) / pairs if pairs else 0.0
    # The mean of all was taken off, which lies as near to them as their own noise has it.
    lost = float((sums**2).sum()) / len(off) ** 2
    return len(off) / len(sizes), math.sqrt(max(0.0, found + lost))


def _figures(
    rates: Rates, rows: int, n: int, cost: float | None, confidence: float
) -> dict[str, Any]:
    return {
        "rows": rows,
        "n": n,
        "clusters": max(1, round(rows / rates.size)) if rates.size > 1.0 else None,
        "fall": rates.design(rows, n).fall(0.0, confidence),
        "half_width": rates.half_width(rows, n, confidence),
        "runs": rows * n,
        "cost_usd": None if cost is None else cost * rows * n,
    }


def _cheapest(rates: Rates, rows: int, n: int, fall: float, confidence: float) -> Choice | None:
    from pytest_osmosis.analysis.statistics.designs import cheapest

    choices = [
        cheapest(rates.design(rows, each), each, fall=fall, margin=0.0, confidence=confidence,
                 ns=[each])
        for each in dict.fromkeys([*_RUNS, n])
    ]  # fmt: skip
    found = min(filter(None, choices), key=lambda each: (each.runs, each.n), default=None)
    return found and found.rounded


def _table(designs: list[dict[str, Any]], rates: Rates) -> list[list[str]]:
    header = ["rows", "clusters", "runs a row", "runs", "cost", "fall shown", "interval"]
    lines = [
        [
            f"{each['rows']:,}",
            "" if each["clusters"] is None else str(each["clusters"]),
            str(each["n"]),
            f"{each['runs']:,}",
            "" if each["cost_usd"] is None else dollars(each["cost_usd"]),
            "-" if each["fall"] is None else f"{each['fall']:.3f}",
            "-" if each["half_width"] is None else f"± {each['half_width']:.3f}",
        ]
        for each in designs
    ]
    kept = [at for at in range(len(header)) if any(line[at] for line in lines)]
    return [[line[at] for at in kept] for line in [header, *lines]]


def _unnamed(designs: Sequence[Mapping[str, Any]], rates: Rates) -> Iterator[str]:
    """Yield why designs name no fall."""
    from pytest_osmosis.analysis.statistics.designs import LEAST_AWAY

    for each in designs:
        if each["fall"] is None:
            design = rates.design(each["rows"], each["n"])
            if design.units < LEAST_AWAY <= design.rows:
                yield f"fewer than {LEAST_AWAY} clusters"
            elif design.away < LEAST_AWAY:
                yield f"fewer than {LEAST_AWAY} rows would differ"
            else:
                yield "even a fall to 0 would not be shown"


def _lines(
    known: Known, designs: Sequence[Mapping[str, Any]], found: Choice | None, fall: float
) -> Iterator[str]:
    rates = known.rates
    of = f", rows of a cluster {rates.size:.3g}" if rates.size > 1.0 else ""
    yield f"pass@1 {rates.rate:.3f}, deviation of the rows' chances {rates.spread:.2f}{of}"
    rows, runs = designs[1]["fall"], designs[3]["fall"]
    if rows and runs:
        more, less = ("rows", "runs") if rows <= runs else ("runs", "rows")
        yield (
            f"twice the {more} show smaller falls than twice the {less}"
            if abs(rows - runs) > 0.0005
            else "twice the rows show the same falls as twice the runs"
        )
    if reasons := dict.fromkeys(_unnamed(designs, rates)):
        yield f"-: no fall is named: {', or '.join(reasons)}"
    if found is None:
        yield f"no design shows a fall of {fall:g}"
    else:
        yield (
            f"cheapest design that shows a fall of {fall:g}: {counted(found.rows, 'row')} x "
            f"{found.n}, {counted(found.runs, 'run')}"
        )
    yield from known.notes
