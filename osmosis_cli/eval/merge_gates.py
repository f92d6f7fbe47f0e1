"""Gates and baselines over merged shards: evaluated as a session over all rows evaluates them.

Each shard's report says which of its rows a gate's slice looks at, and has the other model's runs;
an earlier report has to be given again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CommandError, command_errors
from .report import read

if TYPE_CHECKING:
    from pytest_osmosis.analysis.baseline import Baseline
    from pytest_osmosis.analysis.gates.session_gates import AskedGate
    from pytest_osmosis.reports.json_models import GateReport
    from pytest_osmosis.suite_results import EvalResult, SuiteResult


def unite_gates(shards: Sequence[Sequence[GateReport]]) -> list[GateReport]:
    """Return the gates, the same in every shard, each with its rows of all shards."""
    return [
        same[0].model_copy(
            update={
                "confidence": confidence_of(same),
                "row_indices": _united([gate.row_indices for gate in same]),
            }
        )
        for same in zip(*shards, strict=True)
    ]


def _united(slices: Sequence[Sequence[int] | None]) -> list[int] | None:
    """The rows of a slice; None when a shard does not say which are its own."""
    known = [rows for rows in slices if rows is not None]
    return sorted(set().union(*known)) if len(known) == len(slices) else None


def confidence_of(asked: Sequence[GateReport]) -> float | None:
    """Return the confidence that the shards were evaluated with; None: none was given."""
    return next((gate.confidence for gate in asked if gate.confidence is not None), None)


def evaluate(merged: EvalResult, asked: Sequence[GateReport], baseline: Path | None) -> EvalResult:
    """Return the whole with what changed, and with a result for each gate."""
    alone = len(merged.suites) == 1
    baselines = _baselines(merged, baseline, alone=alone)
    return replace(
        merged,
        suites=tuple(
            _evaluate(
                suite,
                [gate for gate in asked if alone or gate.suite == suite.info.name],
                *baselines.get(suite.info.name, (1, None)),
            )
            for suite in merged.suites
        ),
    )


def _evaluate(
    suite: SuiteResult, asked: Sequence[GateReport], pairs: int, baseline: Baseline | None
) -> SuiteResult:
    from pytest_osmosis.analysis.gates.parser import GateError
    from pytest_osmosis.analysis.gates.session_gates import evaluate_suite
    from pytest_osmosis.analysis.planned_rows import ran

    if not asked and baseline is None:
        return suite
    with command_errors(GateError, code="invalid"):
        gates = [_whole(gate, baseline) for gate in asked]
        level = confidence_of(asked)
        return evaluate_suite(
            suite, gates, ran(suite), baseline=baseline, confidence=level, pairs=pairs
        )


def _whole(asked: GateReport, baseline: Baseline | None) -> AskedGate:
    """Return the gate over all shards, with the rows that they name."""
    from pytest_osmosis.analysis.gates.parser import parse_gate
    from pytest_osmosis.analysis.gates.session_gates import AskedGate

    gate, problem = parse_gate(asked.gate).with_function(asked.eval_fn), None
    if gate.against_baseline and baseline is None:
        problem = "merging needs the baseline: give its report with --baseline"
    elif gate.where is not None and asked.row_indices is None:
        problem = "the shards do not say which rows it looks at"
    rows = None if gate.where is None or asked.row_indices is None else tuple(asked.row_indices)
    return AskedGate(gate, asked.confidence, rows, problem)


def _baselines(
    merged: EvalResult, path: Path | None, *, alone: bool
) -> Mapping[str, tuple[int, Baseline | None]]:
    """By suite: in how many pairs, and with what: the report that was given, or a candidate."""
    from pytest_osmosis.analysis.baseline import baselines_of
    from pytest_osmosis.analysis.gates.session_gates import pair_of

    if path is None:
        return {suite.info.name: pair_of(suite, merged.suites) for suite in merged.suites}
    infos = [suite.info for suite in merged.suites]
    report = read(path, "--baseline ")
    baselines = baselines_of(report, infos, source=str(path), alone=alone)
    for info in infos:
        if info.name not in baselines:
            raise CommandError(
                f"--baseline {path}: it has no evaluation of {info.name}", code="nothing_in_common"
            )
    return {name: (1, baseline) for name, baseline in baselines.items()}
