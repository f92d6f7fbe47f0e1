"""Build the `SessionSpec` from options and ini file, or raise a `pytest.UsageError`.

Gates are parsed here, so that a mistake in one is found before anything is loaded. Opens no file
of the user's but a report that names rows, imports none of their code and talks to no endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_ai.agents.event_log import session_folder

from ..dataset.formats import ACCEPTED
from ..reports.formats import REPORTS
from ..spec import Budget, EvalSpec, SessionSpec
from ..storage.atomic_write import is_special
from . import (
    config_variables,
    gate_options,
    keeping_options,
    model_options,
    process_options,
    row_options,
)
from .reader import OptionReader
from .table import BY_NAME


def build(config: pytest.Config) -> SessionSpec:
    """Return the session that options and ini file describe; raise `pytest.UsageError`."""
    given = OptionReader(config)
    invocation_dir, root = config.invocation_params.dir, config.rootpath
    reports = _reports(given)
    debug_dir = given("debug-dir")
    defaults = _evaluation(given)
    rescore = keeping_options.rescore(given)
    if rescore is None:
        _require_evaluation(config, given)
    return SessionSpec(
        evals=()
        if rescore is not None  # the kept evaluation says which there are
        else tuple(model_options.with_baseline_model(given, _with_data(given, defaults))),
        defaults=defaults,
        batch_size=process_options.batch_size(config),
        cluster=process_options.cluster(given, process_options.batch_size(config)),
        worker_timeout_s=given("worker-timeout"),
        budget=Budget(
            cost_usd=given("max-cost"),
            tokens=given("max-total-tokens"),
            time_s=given("max-time"),
        ),
        deciding=gate_options.deciding(given),
        keeping=keeping_options.keeping(given),
        rescore=rescore,
        by=tuple(given.distinct("by", str.casefold).values()),
        reports=reports,
        trajectories=_trajectories(given, reports.get("output")),
        answers=not given("no-answers"),
        debug_dir=session_folder(given.resolved("debug-dir", debug_dir)) if debug_dir else None,
        inputs=tuple(str(given.path("inputs", pattern)) for pattern in given("inputs")),
        config_env=config_variables.digests(),
        pass_env=given("pass-env"),
        roots=(invocation_dir, root) if root != invocation_dir else (invocation_dir,),
    )


def _reports(given: OptionReader) -> dict[str, Path]:
    texts = {report.option: given(report.option) for report in REPORTS}
    return {name: given.resolved(name, text) for name, text in texts.items() if text}


def _trajectories(given: OptionReader, report: Path | None) -> Path | None:
    """Return the file of whole conversations: where it was asked for, or beside the JSON report."""
    if folder := given("trajectories"):
        return given.resolved("trajectories", folder) / "trajectories.jsonl"
    if report is None or given("no-answers") or is_special(report) or given.output_is_temporary:
        return None
    return report.parent / f"{report.stem}.trajectories.jsonl"


def _require_evaluation(config: pytest.Config, given: OptionReader) -> None:
    """Raise `pytest.UsageError` where a part of an evaluation is given without the others."""
    if given.raw("data") is not None:
        _require(given, "agent", "data", "module:attribute, e.g. server:agent_loop")
        _require(
            given, "model", "data", "a name at --osmosis-base-url, provider/model, or 'embedded'"
        )
    elif given.on_command_line("agent") and config.args_source is not config.ArgsSource.ARGS:
        _require(given, "data", "agent", ACCEPTED)


def _require(given: OptionReader, name: str, because: str, expected: str) -> None:
    if given.raw(name) is None:
        option = BY_NAME[name].flag_name
        raise pytest.UsageError(f"{given.spelled(because)} needs {option} too: {expected}")


def _evaluation(given: OptionReader) -> EvalSpec:
    """Return what every evaluation of the session has in common, without name and data."""
    return EvalSpec(
        name="",
        agent=given("agent") or "",
        data=Path(),
        model=model_options.model(given),
        eval_fns=tuple(given.distinct("eval-fn")),
        grader=given("grader"),
        n=given("n"),
        pass_threshold=given("pass-threshold"),
        max_turns=given("max-turns"),
        map=row_options.column_map(given),
        **row_options.selection(given),
        sample_seed=given("sample-seed"),
        shard=given("shard"),
        agent_timeout_s=given("agent-timeout"),
        grader_timeout_s=given("grader-timeout"),
    )


def _with_data(given: OptionReader, defaults: EvalSpec) -> Iterator[EvalSpec]:
    for path, text in given.distinct("data", lambda text: given.resolved("data", text)).items():
        yield replace(defaults, name=text, data=path)
