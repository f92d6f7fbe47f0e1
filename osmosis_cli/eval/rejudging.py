"""Gates and baselines over merged shards: what a session over all rows would have decided.

Shards tell which of their rows a gate's slice looks at; the other model's runs are in their
reports, an earlier report has to be given again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CommandError

if TYPE_CHECKING:
    from pytest_osmosis.analysis.baseline import Baseline
    from pytest_osmosis.analysis.planned_rows import PlannedRows
    from pytest_osmosis.analysis.score_table import ScoreTable
    from pytest_osmosis.gates.result import GateResult
    from pytest_osmosis.reports.json_reader import AskedGate
    from pytest_osmosis.results import EvalResult, SuiteResult


def together(shards: Sequence[Sequence[AskedGate]]) -> list[AskedGate]:
    """The gates, the same in every shard, each with what the shards tell of it together."""
    return [
        replace(
            told[0],
            confidence=next((gate.confidence for gate in told if gate.confidence), None),
            row_indices=_united([gate.row_indices for gate in told]),
        )
        for told in zip(*shards, strict=True)
    ]


def _united(slices: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    """The rows of a slice; None when a shard does not tell of its own."""
    known = [rows for rows in slices if rows is not None]
    return tuple(sorted(set().union(*known))) if len(known) == len(slices) else None


def judged(merged: EvalResult, asked: Sequence[AskedGate], baseline: Path | None) -> EvalResult:
    """With intervals, with what changed, and with a verdict on each gate."""
    from pytest_osmosis.analysis.uncertainty import CONFIDENCE

    level = next((gate.confidence for gate in asked if gate.confidence), None) or CONFIDENCE
    alone = len(merged.suites) == 1
    baselines = _baselines(merged, baseline, alone=alone)
    return merged._replace(
        suites=tuple(
            _decided(
                suite,
                [gate for gate in asked if alone or gate.suite == suite.info.name],
                baselines.get(suite.info.name),
                level,
            )
            for suite in merged.suites
        ),
    )


def _baselines(merged: EvalResult, path: Path | None, *, alone: bool) -> Mapping[str, Baseline]:
    """By suite: the report that was given, else the session's other model."""
    from pytest_osmosis.analysis.baseline import baseline_of, read_baselines
    from pytest_osmosis.reports.json_reader import UnreadableReport

    found = {
        suite.info.name: baseline_of(suite.rival, suite.rival.info.model)
        for suite in merged.suites
        if suite.rival is not None
    }
    if path is None:
        return found
    infos = [suite.info for suite in merged.suites]
    try:
        told = read_baselines(path, infos, shown=str(path), alone=alone)
    except UnreadableReport as error:
        raise CommandError(f"--baseline {error}", code="invalid") from None
    for info in infos:
        if info.name not in told:
            raise CommandError(
                f"--baseline {path}: it tells nothing of {info.name}", code="nothing_in_common"
            )
    return told


def _decided(
    suite: SuiteResult, asked: Sequence[AskedGate], baseline: Baseline | None, level: float
) -> SuiteResult:
    from pytest_osmosis.analysis.baseline import compared
    from pytest_osmosis.analysis.planned_rows import ran, score_table_of
    from pytest_osmosis.analysis.uncertainty import with_intervals

    suite = with_intervals(suite, level)
    if suite.rival is not None:
        suite = suite._replace(rival=with_intervals(suite.rival, level))
    rows = ran(suite)
    tally = score_table_of(suite, rows, [gate.eval_fn for gate in asked if gate.eval_fn])
    verdicts = tuple(_verdict(gate, tally, rows, baseline) for gate in asked)
    if baseline is not None:
        report = compared(suite, tally, rows, baseline=baseline, confidence=level)
        suite = suite._replace(baseline=report)
    return suite._replace(verdicts=verdicts)


def _verdict(
    asked: AskedGate, tally: ScoreTable, ran: PlannedRows, baseline: Baseline | None
) -> GateResult:
    from pytest_osmosis.gates.evaluate import GateError, evaluate, parse_gate, unmeasured

    there = None if baseline is None else baseline.tally
    try:
        gate = replace(parse_gate(asked.text), eval_fn=asked.eval_fn)
        if gate.against_baseline and there is None:
            why = "merging needs the baseline: give its report with --baseline"
            return replace(unmeasured(gate, why), row_indices=asked.row_indices)
        if gate.where is not None and asked.row_indices is None:
            return unmeasured(gate, "the shards do not tell which rows it looks at")
        wanted = set(asked.row_indices or ())
        rows = [place for place, index in enumerate(ran.indices) if index in wanted]
        verdict = evaluate(
            gate,
            tally,
            confidence=asked.confidence,
            baseline=there,
            rows=rows if gate.where else None,
        )
        return replace(verdict, row_indices=asked.row_indices)
    except GateError as error:
        raise CommandError(str(error), code="invalid") from None
