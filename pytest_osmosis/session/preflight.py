"""What is checked and started before any worker and any request: all usage errors come from here.

Each check raises `pytest.UsageError` with the sentence for the user. Knows nothing of items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .. import build_spec, options
from ..errors import ConfigurationError
from ..reports.writers import asked_reports, step_summary
from ..rollouts.prepare import key_of
from ..spec import SessionSpec
from ..storage import atomic_write

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint


def session_of(config: pytest.Config) -> SessionSpec:
    """What options and ini ask for, or the kept evaluation that they name."""
    spec = build_spec.build(config)
    if spec.rescore is None:
        return spec
    from ..rollouts import rescore

    with usage_errors():
        return rescore.applied(spec, root=config.rootpath)


def check(config: pytest.Config, spec: SessionSpec) -> None:
    """Everything but the evaluations themselves, in the process that reports."""
    check_outputs({report.flag: path for report, path in asked_reports(spec)})
    _check_conflict()
    _check_keys(spec)
    _warn_of_key(config)
    _make_debug_dir(spec)


def check_outputs(named: dict[str, Path | None]) -> None:
    """Every file that is going to be written can be: creates and removes a probe beside it."""
    for option, path in named.items():
        if path is None:
            continue
        try:
            atomic_write.check_writable(path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise pytest.UsageError(
                f"{option} {str(path)!r}: cannot be written: {reason}"
            ) from None


@contextmanager
def usage_errors() -> Iterator[None]:
    """What makes an evaluation not usable is a usage error to pytest."""
    try:
        yield
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None


def is_quiet(config: pytest.Config) -> bool:
    """Whether nothing but news is wanted ahead of the tests."""
    return config.get_verbosity() < 0 or bool(getattr(config.option, "no_header", False))


def begin_trajectories(path: Path | None, *, keep: bool) -> None:
    """Make the file of whole conversations; `keep` those of a session that is resumed."""
    if path is None:
        return
    from ..storage.trajectories import begin

    try:
        begin(path, keep=keep)
    except OSError as error:
        raise pytest.UsageError(
            f"--osmosis-trajectories {str(path)!r}: cannot be written: {error.strerror or error}"
        ) from None


def environment(
    config: pytest.Config, spec: SessionSpec, *, redact: Callable[[str], str]
) -> Mapping[str, Any]:
    """What reports tell of where the session runs; nothing where there are none."""
    reports = spec.reports
    if not any((spec.output, reports.markdown, reports.html, step_summary())):
        return {}
    from .environment import describe

    arguments = [str(argument) for argument in config.invocation_params.args]
    return describe(arguments, folder=config.rootpath, redact=redact)


def personas(spec: SessionSpec) -> list[str]:
    """Those of the embedded endpoint that the session's models are."""
    specs = [each for each in (spec.defaults, *spec.evals) if each is not None]
    return list(dict.fromkeys(each.model.persona for each in specs if each.model.persona))


def start_embedded(persona: str) -> EmbeddedEndpoint:
    """The embedded endpoint with one persona."""
    from osmosis_ai.embedded import start_embedded as start

    try:
        return start(persona)
    except ValueError as error:
        raise pytest.UsageError(f"--osmosis-model: {error}") from None


def _check_conflict() -> None:
    from osmosis_ai._conflict import conflicting_distribution

    sentence = conflicting_distribution()
    if sentence is not None:
        raise pytest.UsageError(sentence)


def _check_keys(spec: SessionSpec) -> None:
    for asked in spec.evals or [spec.defaults]:
        if asked is not None and asked.model.model:
            try:
                key_of(asked.model)
            except ConfigurationError as error:
                raise pytest.UsageError(str(error)) from None


def _warn_of_key(config: pytest.Config) -> None:
    """A key on the command line: said once, as a warning or, where those are errors, as one."""
    if not options.Given(config).on_command_line("api-key"):
        return
    text = (
        "--osmosis-api-key: every user of this machine can read a command line; "
        "put the key into a variable and name that with --osmosis-api-key-env"
    )
    try:
        config.issue_config_time_warning(pytest.PytestWarning(text), stacklevel=2)
    except pytest.PytestWarning as error:
        raise pytest.UsageError(str(error)) from None


def _make_debug_dir(spec: SessionSpec) -> None:
    if spec.debug_dir is None:
        return
    try:
        spec.debug_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(
            f"--osmosis-debug-dir {str(spec.debug_dir)!r}: "
            f"cannot be made: {error.strerror or error}"
        ) from None
