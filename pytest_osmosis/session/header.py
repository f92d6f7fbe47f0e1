"""What a session prints ahead of its tests: what is evaluated, and how much of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from osmosis_ai.secret import Redactor, Secret

from ..api_keys import is_withheld
from ..escaping import counted, escape_control_chars
from ..options.reader import OptionReader
from ..reports.line_markup import USUAL_WIDTH, sentence
from ..rollouts.prepare import endpoint_of
from ..rollouts.suite import Suite
from ..run_result import OWN_MODEL, SuiteInfo
from ..spec import USUAL_KEY, ModelSpec, SessionSpec
from .selection import ONE_PROCESS

if TYPE_CHECKING:
    from .seams import Feature

_SELECTING = "keyword", "deselect", "lf", "stepwise"
"""Options of pytest that leave items out."""


def header(
    config: pytest.Config,
    spec: SessionSpec,
    suites: Collection[Suite],
    secrets: Iterable[Secret],
    features: Iterable[Feature] = (),
) -> Iterator[str]:
    """Yield the lines of the session's header."""
    verbose = config.get_verbosity() > 0
    for suite in suites:
        if not suite.spec.scored_by_test:
            yield _subject(suite.info, with_digest=verbose, selects=_selects(config))
            for notice in suite.dataset.notices:
                shown = escape_control_chars(f"{suite.spec.data.name}: {notice}")
                yield f"osmosis: {shown}"
            yield from dict.fromkeys(
                f"osmosis: {one.notice}" for one in suite.eval_fns if one.notice
            )
            if suite.info.eval_fns and (column := suite.dataset.likely_truth):
                pair = escape_control_chars(shlex.quote(f"{column}=ground_truth"))
                yield f"osmosis: no row has a ground_truth: is it this? --osmosis-map {pair}"
            for each in suite.eval_fns:
                if (shape := each.plan.shape) is not None:
                    yield escape_control_chars(f"osmosis: {each.name}: {shape.roles()}")
    yield from _models(config, spec)
    if (reason := config.stash.get(ONE_PROCESS, None)) is not None:
        yield f"osmosis: all in this one process, {reason}"
    for feature in features:
        yield from feature.header(suites)
    for name in Redactor(secrets).unmaskable:
        yield (
            f"osmosis: warning: the key in {name} is too short or too common a word to be masked "
            "where an answer quotes it"
        )


def _models(config: pytest.Config, spec: SessionSpec) -> Iterator[str]:
    """Yield the lines that say which models are asked, where, and with which keys."""
    default = spec.defaults
    models = [each.model for each in spec.evals]
    if not models and default is not None and default.model.model:
        models = [default.model]  # of test functions
    if not models or not (models[0].model or models[0].needs_key):
        return
    models = [each for at, each in enumerate(models) if each not in models[:at]]
    yield _throughput(config, spec, models[0])
    yield from map(other_line, models[1:])
    yield from dict.fromkeys(line for model in models for line in key_line(model))
    unused = "" if default is None else default.model.model
    if unused and not any(each.model for each in models):
        option = escape_control_chars(OptionReader(config).spelled("model"))
        yield (
            f"osmosis: {option} {escape_control_chars(unused)} is not used: "
            f"{escape_control_chars(spec.evals[0].agent)} has no parameters for a model"
        )


def other_line(model: ModelSpec) -> str:
    """Return the line that says where a further model is asked."""
    return f"osmosis: {model.role} {_describe_model(model)}{model.remark}"


def key_line(model: ModelSpec) -> Iterator[str]:
    """Yield the line that says which key is sent to where, or that one is not."""
    if not (model.needs_key and model.is_asked):
        return
    if model.persona is None and model.api_key is not None:
        name = escape_control_chars(model.api_key.name) or "given"
        yield f"osmosis: key: {name} -> {endpoint_of(model)}"
    elif model.base_url is not None and model.api_key_env is None:
        yield (
            f"osmosis: no key is sent to {endpoint_of(model)}: {model.no_key}; "
            f"give {model.key_option} {USUAL_KEY} to send it there too"
        )
    elif is_withheld(model) and model.api_key_env and os.environ.get(model.api_key_env):
        yield (
            f"osmosis: no key is sent over plain http to {endpoint_of(model)}: give "
            f"{model.key_option} {escape_control_chars(model.api_key_env)} to send it"
        )


def left_out(config: pytest.Config, arguments: list[str]) -> Iterator[str]:
    """Yield the line that says that tests below these arguments do not run."""
    from .files_of_tests import test_files

    if next(test_files(config, arguments), None) is not None:
        here = str(config.invocation_params.dir)
        names = shlex.join("." if text == here else text for text in arguments)
        yield (
            "osmosis: the evaluation alone runs; to run the other tests too, name them: "
            f"pytest {escape_control_chars(names)} --osmosis-agent ..."
        )


def fitted(config: pytest.Config, lines: Iterable[str]) -> list[str]:
    """Return the lines, broken between words where the terminal is a narrow one."""
    width = int(getattr(config.get_terminal_writer(), "fullwidth", USUAL_WIDTH))
    return [part for line in lines for part in sentence(line, width)]


def plan(info: SuiteInfo, selected: int) -> str:
    """Return the line that says how much of a suite is going to run."""
    functions = len(info.eval_fns)
    design = (
        f"{counted(info.rows, 'row')} x {counted(info.n, 'run')} x "
        f"{counted(functions, 'eval function')}"
    )
    if selected < info.total_runs:
        return f"{info.name}: {selected} of {counted(info.total_runs, 'rollout')} ({design})"
    return f"{info.name}: {design} = {counted(info.total_runs, 'rollout')}"


def _subject(info: SuiteInfo, *, with_digest: bool, selects: bool) -> str:
    digest = f" (sha256 {info.digest[:8]})" if with_digest else ""
    return (
        f"osmosis: {info.agent} on {info.name}{digest}, {'a selection of ' if selects else ''}"
        f"{info.rows} x {info.n} = {counted(info.total_runs, 'rollout')}, {info.passing}"
    )


def _selects(config: pytest.Config) -> bool:
    """Return whether some items may be left out: by name, or by what failed before."""
    is_named = any("::" in text for text in config.args)
    return is_named or any(getattr(config.option, name, None) for name in _SELECTING)


def _throughput(config: pytest.Config, session: SessionSpec, model: ModelSpec) -> str:
    flight = f"{session.batch_size} in flight"
    workers = getattr(config.option, "numprocesses", None)
    if workers:
        flight += f" over {workers} worker{'s' if workers > 1 else ''}"
    seed = "" if model.seed is None else f", seed {model.seed}"
    return f"osmosis: {_describe_model(model)}, {flight}{seed}"


def _describe_model(model: ModelSpec) -> str:
    if not model.model:
        return OWN_MODEL
    at = f" at {endpoint_of(model)}" if model.is_asked and model.persona is None else ""
    return f"{model.model}{at}"
