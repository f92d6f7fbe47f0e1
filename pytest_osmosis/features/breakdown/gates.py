"""A gate for each value of a column: `each topic: pass@1 >= 0.8`. Pure.

It holds where it does for the rows of every value, and fails where it does for those of one. All
are judged together: with m values, an interval has the confidence 1 - (1 - C) / m (Bonferroni), so
that C is the chance that all of them hold what they are of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np

from ...analysis.gates.evaluate import CAN_SHOW_NONE, evaluate, unmeasured
from ...analysis.score_table import empty_score_table
from ...escaping import counted
from ...verdicts import EvalVerdict, GateResult

if TYPE_CHECKING:
    from ...analysis.gates.names import Gate
    from ...analysis.planned_rows import PlannedRows
    from ...analysis.score_table import ScoreTable
    from ...run_result import SuiteInfo

VALUES_NAMED = 5
"""Values that a gate names besides the worst."""


def table_of(
    info: SuiteInfo, rows: PlannedRows, rows_of: Mapping[str, Collection[int]]
) -> ScoreTable:
    """Return a table of no scores whose clusters are the values; `rows_of` has row indices."""
    table = empty_score_table(info, rows, ())
    number_of = {index: at for at, found in enumerate(rows_of.values()) for index in found}
    numbers = [number_of.get(index, -1) for index in table.rows.indices]
    return replace(table, clusters=np.array(numbers, dtype=np.intp), cluster_names=tuple(rows_of))


def verdict(
    gate: Gate,
    table: ScoreTable,
    references: Mapping[str, ScoreTable],
    confidence: float | None,
) -> GateResult:
    """Return the verdict on the worst value, with words about the others."""
    column = gate.prefix.partition(" ")[2]
    known = references.get(gate.prefix)
    numbers = None if known is None else known.clusters
    if known is None or numbers is None or not len(numbers) or (numbers < 0).any():
        return unmeasured(gate, f"which {column} each row has is not known")
    values = np.unique(numbers).tolist()
    one = replace(gate, prefix="", together=len(values))
    found = []
    for value in values:
        part = table.take(np.flatnonzero(numbers == value))
        result = evaluate(one, part, confidence=confidence, **references)
        rows = result.rows or len(part.rows)
        found.append(replace(result, group=known.cluster_names[value], rows=rows))
    found.sort(key=lambda result: _badness(gate, result))
    worst = found[0]
    number = counted(len(found), "value")
    if len({(each.outcome, each.figure) for each in found}) == 1:
        words = [f"the same for {number} of {column}"]
    else:
        words = [
            f"{column}={worst.group_name} is the worst of {number}",
            *_others(found[1:], worst),
        ]
    words += _too_small(found, confidence)
    return replace(
        worst,
        gate=gate.text,
        metric=gate.label,
        detail="; ".join(filter(None, [*words, worst.detail])),
        reason=worst.reason and f"{column}={worst.group_name}: {worst.reason}",
    )


def _badness(gate: Gate, result: GateResult) -> tuple[int, bool, float]:
    """Sort the worst first: failed, then inconclusive; by the figure; what has none is last."""
    order = get_args(EvalVerdict).index(result.outcome)
    if result.figure is None:
        return order, True, 0.0
    if gate.operator == "==":
        return order, False, -abs(result.figure - gate.threshold)
    return order, False, result.figure * (1.0 if gate.operator in (">=", ">") else -1.0)


def _others(others: Sequence[GateResult], worst: GateResult) -> list[str]:
    """Name the other values that did not pass."""
    words = []
    for outcome, verb in (("failed", "failed too"), ("inconclusive", "inconclusive")):
        these = [each for each in others if each.outcome == outcome]
        too = " too" if outcome == worst.outcome == "inconclusive" else ""
        if these:
            words.append(f"{verb}{too}: {_listed(these, _with_figure)}")
    return words


def _too_small(found: Sequence[GateResult], confidence: float | None) -> list[str]:
    """Name the values whose rows are too few, or too much alike, for the gate to say anything."""
    few = [each for each in found if CAN_SHOW_NONE in each.detail]
    none = [each for each in found if confidence and _lacks_interval(each)]
    words = ("too few rows to show anything", few), ("no interval", none)
    return [f"{what}: {_listed(these, _with_rows)}" for what, these in words if these]


def _lacks_interval(result: GateResult) -> bool:
    is_open = result.outcome == "inconclusive" and not result.unknown
    return is_open and result.figure is not None and result.interval is None


def _listed(these: Sequence[GateResult], text: Callable[[GateResult], str]) -> str:
    shown = ", ".join(map(text, these[:VALUES_NAMED]))
    more = len(these) - VALUES_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _with_rows(result: GateResult) -> str:
    return f"{result.group_name} ({counted(result.rows, 'row')})"


def _with_figure(result: GateResult) -> str:
    if result.figure is None or not math.isfinite(result.figure):
        return f"{result.group_name} (no figure)"
    return f"{result.group_name} at {result.text_of(result.figure)}"
