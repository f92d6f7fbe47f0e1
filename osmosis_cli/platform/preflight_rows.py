"""Rows of a local dataset, run as `osmosis eval` does, before a run is submitted.

Neither the project's ini file nor kept runs have a part in it, and nothing is left behind.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmosis_ai.escaping import printable
from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN
from pytest_osmosis.escaping import counted
from pytest_osmosis.options.config_run import dataset_files

from ..env_file import NO_OPTION
from .findings import Finding, checked, warning
from .preflight_child import json_object

if TYPE_CHECKING:
    from .preflight import Rollout
    from .preflight_child import Ended

EMBEDDED = "embedded"
EMBEDDED_TIMEOUT_S = 30.0
START_S = 60.0
"""Beyond the timeouts of the rows: for the process itself."""
_AGENT_S = 450.0
_GRADER_S = 150.0
_SHOWN = 3
_EVAL_FN = re.compile(r"^`[^`]*` raised ")
_FRAME = re.compile(r'^  File "(.+)", line (\d+)', re.MULTILINE)


def run_rows(rollout: Rollout, model: str, rows: int) -> Iterator[Finding]:
    """Yield what running the first rows with a model finds."""
    name = rollout.config.experiment.dataset
    files = dataset_files(rollout.processes.root, name)
    if len(files) != 1:
        what = "more than one file" if files else "no file"
        yield warning(
            "rows_not_run",
            f"no row was run: there is {what} of the dataset {printable(name)!r} in datasets/ or "
            "data/",
            f"add one with a few of its rows ({SUFFIXES_SHOWN})",
        )
        return
    with tempfile.TemporaryDirectory(prefix="osmosis-preflight-") as folder:
        ended = _run(rollout, files[0], model, rows, Path(folder))
    report = ended.document
    if report is None or "rows" not in report:
        yield rollout.failed(
            "rows_not_run", f"no row could be run: {rollout.processes.shown(_reason(ended))}"
        )
        return
    yield from _of_report(rollout, report, model, place=_place(ended, rollout.processes.root))


def _run(rollout: Rollout, data: Path, model: str, rows: int, folder: Path) -> Ended:
    agent_s, grader_s = _timeouts(rollout, model)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
    root = rollout.processes.root
    words = [
        *("-m", "osmosis_cli", "eval", NO_OPTION),
        f"--agent={rollout.entrypoint}",
        f"--data={data.relative_to(root)}",
        f"--model={model}",
        f"--limit={rows}",
        "--n=1",
        f"--agent-timeout={agent_s}",
        f"--grader-timeout={grader_s}",
        "--no-journal",
        "--no-answers",
        f"--run-dir={folder / 'runs'}",
        "--json",
        *("--", "-c", str(folder / "pytest.ini"), f"--rootdir={root}", "-p", "no:cacheprovider"),
    ]
    return rollout.processes.run(words, limit_s=START_S + rows * (agent_s + grader_s))


def _timeouts(rollout: Rollout, model: str) -> tuple[float, float]:
    if model == EMBEDDED:
        return EMBEDDED_TIMEOUT_S, EMBEDDED_TIMEOUT_S
    given = rollout.config.given()
    chosen: Mapping[str, Any] = given.get("evaluation") or given.get("training") or {}
    agent_s = chosen.get("agent_workflow_timeout_s") or _AGENT_S
    return agent_s, chosen.get("grader_timeout_s") or _GRADER_S


def _of_report(
    rollout: Rollout, report: Mapping[str, Any], model: str, *, place: str
) -> Iterator[Finding]:
    runs = [(row["row_index"], run) for row in report["rows"] for run in row["runs"]]
    where = "against the embedded endpoint" if model == EMBEDDED else f"with {printable(model)}"
    failed = [(index, run) for index, run in runs if run["error"]]
    told = [_failure(index, run, place if len(failed) == 1 else "") for index, run in failed]
    for failure in told[:_SHOWN]:
        yield rollout.failed(
            "row_failed", f"{rollout.processes.shown(failure)}, {where}", _cure(rollout, model)
        )
    if not runs:
        halted = report["summary"].get("halted") or "the evaluation gave none"
        yield rollout.failed("rows_not_run", f"no row ran: {rollout.processes.shown(halted)}")
    elif not told:
        yield checked(
            "rows_ran",
            f"{counted(len(runs), 'row')} ran {where}"
            + ("" if model == EMBEDDED else f", {sum(run['passed'] for _, run in runs)} passed"),
        )


def _failure(index: int, run: Mapping[str, Any], place: str) -> str:
    if run["error_type"] == "provider":
        return f"the model did not answer row {index} ({run['error']})"
    whose = "the grader" if run["success"] else "the workflow"
    what = _EVAL_FN.sub("", run["error"])
    return f"{whose} fails on row {index} ({what}{f', {place}' if place else ''})"


def _place(ended: Ended, root: Path) -> str:
    """The last line of the workspace in a traceback that the session printed."""
    frames = _FRAME.findall(ended.last_words)
    inside = [(Path(file), line) for file, line in frames if Path(file).is_relative_to(root)]
    return f"{inside[-1][0].relative_to(root)}:{inside[-1][1]}" if inside else ""


def _cure(rollout: Rollout, model: str) -> str:
    shown = printable(str(rollout.path))
    if rollout.config.kind != "evaluation":
        shown = f"-m {printable(rollout.entrypoint)} -d datasets/..."
    return f"`osmosis eval {shown} --model {printable(model)} --limit 1` shows where"


def _reason(ended: Ended) -> str:
    """Why there is no report."""
    if not ended.in_time:
        return "it took too long"
    lines = ended.last_words.strip().splitlines() or [f"status {ended.status}"]
    error = (json_object(lines[-1]) or {}).get("error")
    return str(error["message"]) if isinstance(error, dict) else lines[-1]
