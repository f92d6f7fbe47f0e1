"""An uploaded evaluation, checked as a program: what the platform keeps of it.

`python -m osmosis_platform.imports.taking FILE ORDER TARGET CONVERSATIONS`: the first line of FILE
is the JSON report, each further one a conversation; ORDER says what was announced. The figures and
the results of gates are computed from the scores of the runs, and not taken from the report. The
exit status of an upload that is refused is `REFUSED`; what is wrong is then printed.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from pytest_osmosis.analysis.gates.evaluate import evaluate_suite
from pytest_osmosis.analysis.gates.parser import GateError, parse_gate
from pytest_osmosis.analysis.planned_rows import ran
from pytest_osmosis.features.breakdown.saved import ByColumn
from pytest_osmosis.features.breakdown.saved import read as saved_columns
from pytest_osmosis.reports.json_models import Report
from pytest_osmosis.reports.json_reader import result_of
from pytest_osmosis.reports.json_writer import document_of
from pytest_osmosis.run_result import OWN_MODEL, RunId, passes
from pytest_osmosis.suite_results import EvalResult, Section, SuiteResult
from pytest_osmosis.verdicts import GateResult

from ..execution.report_taking import MOST_VALUES, REPORT_BYTES, known_fields, read_report
from ..execution.run_figures import metrics_of
from ..execution.tail import BLOCK, LINE, new_file

REFUSED = 3
_GATES = 100
_BY = "by"
"""The field of figures by a column."""
_COMMIT = re.compile("[0-9a-f]{7,64}")
_PLACE = ("suite", "row_index", "run_index")
_SAID = (
    "row_id", "outcome", "scores", "error", "error_type", "started_at", "duration_ms", "model",
    "frames", "reasons", "reward", "ground_truth", "messages", "messages_left_out", "calls",
)  # fmt: skip
"""Fields of a conversation that are kept."""


class NotTaken(Exception):
    """Why an upload is refused: a sentence without values of it."""


def main(source: str, order: str, target: str, conversations: str) -> int:
    """Check an upload, and write what is kept of it; return the exit status."""
    try:
        announced = json.loads(Path(order).read_bytes())
        with Path(source).open("rb") as file:
            _check_digest(file, announced["digest"])
            result, report = _take(file.readline(REPORT_BYTES + 1), announced)
            with new_file(Path(conversations)) as said:
                said.writelines(_conversations(file, result))
    except NotTaken as error:
        print(error)
        return REFUSED
    suite = result.suites[0]
    began = [run.started_at for run in suite.runs if run.started_at]
    git = result.environment.get("git") or {}
    commit = git.get("commit") or ""
    kept = {
        "report": json.loads(known_fields(report)),
        "metrics": metrics_of(report),
        "started_at": min(began, default=None),
        "duration_ms": result.duration_ms,
        "runs": suite.finished,
        "n": suite.info.n,
        "pass_threshold": suite.info.pass_threshold,
        "unchecked_gates": sum(_needs_another(gate) for gate in suite.verdicts),
        "commit": commit if _COMMIT.fullmatch(commit) else None,
        "dirty": git.get("dirty"),
    }
    Path(target).write_text(json.dumps(kept), "utf-8")
    return 0


def _check_digest(file: BinaryIO, announced: str) -> None:
    found = hashlib.sha256()
    while block := file.read(BLOCK):
        found.update(block)
    if found.hexdigest() != announced:
        raise NotTaken("what arrived is not what was announced: its digest is another one")
    file.seek(0)


def _take(line: bytes, announced: Mapping[str, Any]) -> tuple[EvalResult, Report]:
    """Return the result with everything that can be computed from its runs, and its report."""
    if len(line) > REPORT_BYTES or line.count(b",") > MOST_VALUES:
        raise NotTaken(f"the report is too large: at most {REPORT_BYTES:,} bytes are taken")
    try:
        sent = read_report(line)
        result = result_of(sent)
    except (ValueError, RecursionError):  # no JSON, another format, runs that are there twice
        raise NotTaken("the report is none that this version of the platform reads") from None
    if len(result.suites) != 1:
        raise NotTaken("the report has several evaluations: upload those of one config file")
    if result.halted or result.interrupted:
        raise NotTaken("the evaluation ended before its time: run it again to the end")
    for suite in result.with_companions:
        _check(suite)
    suite = result.suites[0]
    if suite.info.model not in (announced["model"], OWN_MODEL):
        raise NotTaken("experiment_config.model_path is not the model of the report")
    if suite.info.digest != announced["dataset_digest"]:
        raise NotTaken("dataset_digest is not that of the report")
    if suite.info.total_runs > announced["most_runs"]:
        raise NotTaken(f"one evaluation has {announced['most_runs']:,} runs at most")
    named = getattr(sent.suites[0] if sent.suites else sent, _BY)
    kept = result.with_suites(
        lambda one: replace(one, sections={_BY: _by(named, one)} if named else {})
    )
    result = kept.with_suites(_decided)
    return result, Report.model_validate(document_of(result))


def _by(columns: Sequence[ByColumn], suite: SuiteResult) -> Section:
    """Return the figures by a column; of which rows is taken from the report, as scores are."""
    return saved_columns(columns, suite).joined([], suite)  # a row counts once for a value


def _check(suite: SuiteResult) -> None:
    """Refuse runs that are missing, and one that passed without the scores, or the reverse."""
    if not suite.complete:
        raise NotTaken(
            f"{suite.finished:,} of {suite.info.total_runs:,} runs have ended: "
            "run the evaluation again to the end"
        )
    for run in suite.runs:
        least = dict.fromkeys(suite.info.eval_fns, suite.info.pass_threshold)
        own = {**least, **suite.info.thresholds, **run.thresholds}
        reached = all(passes(run.scores.get(name), at) for name, at in own.items())
        if run.passed != (run.success and reached):
            where = f"row {run.row_index}, run {run.run_index}"
            raise NotTaken(f"{where}: whether it passed contradicts its scores")


def _decided(suite: SuiteResult) -> SuiteResult:
    """Return the suite with its gates evaluated again."""
    if len(suite.verdicts) > _GATES:
        raise NotTaken(f"the report has more than {_GATES} gates")
    verdicts = [_verdict(suite, number, gate) for number, gate in enumerate(suite.verdicts)]
    return replace(suite, verdicts=tuple(verdicts), verdict=None)


def _verdict(suite: SuiteResult, number: int, sent: GateResult) -> GateResult:
    """Return the result of a gate; refuse one that was sent with another outcome."""
    if _needs_another(sent):
        return replace(sent, detail=f"not checked by the platform; {sent.detail}".rstrip("; "))
    try:
        gate = parse_gate(sent.gate).with_function(sent.eval_fn)
        own = {} if _BY not in suite.sections else suite.sections[_BY].references(suite)
        rows, level = ran(suite), sent.confidence
        found = evaluate_suite(
            suite, [gate], rows, references=own, lacking="", confidence=level
        ).verdicts[0]
    except GateError:
        raise NotTaken(f"gates[{number}] is none of this evaluation") from None
    if found.outcome != sent.outcome:
        raise NotTaken(
            f"gates[{number}] is {found.outcome} by the runs, and {sent.outcome} by the report"
        )
    return found


def _needs_another(gate: GateResult) -> bool:
    """Return whether a gate needs what is not here: another evaluation, or people's marks."""
    try:
        parsed = parse_gate(gate.gate)
        return parsed.minus is not None or parsed.metric.definition.is_of_judge
    except GateError:
        return False


def _conversations(file: BinaryIO, result: EvalResult) -> Iterator[bytes]:
    """Yield the lines of conversations, with the fields that are known."""
    runs = {run.run_id for suite in result.with_companions for run in suite.runs}
    number = 1
    while line := file.readline(LINE + 1):
        number += 1
        try:
            found = _conversation(line)
            runs.remove(RunId(*(found[name] for name in _PLACE)))
            yield json.dumps(found, allow_nan=False).encode("ascii") + b"\n"
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            raise NotTaken(
                f"line {number} is no conversation of a run, or one that is there twice"
            ) from None


def _conversation(line: bytes) -> dict[str, Any]:
    """Return what is known of a line; raise for one of another format."""
    if len(line) > LINE:
        raise ValueError
    sent = json.loads(line)
    if not all(isinstance(each, dict) for each in (*sent["messages"], *sent.get("calls", ()))):
        raise TypeError
    return {name: sent[name] for name in (*_PLACE, *_SAID) if name in sent}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
