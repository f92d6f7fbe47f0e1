"""Check and start what must be there before any worker and any request.

Each check raises `pytest.UsageError` with the sentence for the user. Knows nothing of items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from osmosis_ai.secret_variables import masking

from ..api_keys import key_of
from ..errors import ConfigurationError, ShapeError
from ..options import build_spec
from ..options.reader import OptionReader
from ..reports.formats import ReportFormat, asked_reports
from ..spec import SessionSpec
from ..storage import atomic_write
from ..storage.source_digest import input_digests
from . import selection

if TYPE_CHECKING:
    from osmosis_ai.embedded import EmbeddedEndpoint


@contextmanager
def usage_errors(config: pytest.Config | None = None) -> Iterator[None]:
    """Turn what makes an evaluation unusable into a usage error of pytest, without secrets.

    With `config`, the option that the message begins with is named as it was given.
    """
    try:
        yield
    except (ConfigurationError, pytest.UsageError) as error:
        text = str(error)
        if config is not None and isinstance(error, ShapeError):
            from .proposal import propose  # only for a mistake

            text = propose(config, text, error.shape, only=error.only)
        masked = masking()(text)
        raise pytest.UsageError(
            masked if config is None else OptionReader(config).as_given(masked)
        ) from None


@usage_errors()
def session_of(config: pytest.Config) -> SessionSpec:
    """Return what options and ini file ask for."""
    of_tests = selection.selection_of(config) == "tests"
    spec = build_spec.build(config, of_tests=of_tests)
    if of_tests:
        spec = replace(spec, evals=())
    return replace(spec, keeping=selection.keeping_of(config, spec.keeping))


def check(config: pytest.Config, spec: SessionSpec) -> None:
    """Check everything but the evaluations themselves, in the process that reports."""
    for report, path in asked_reports(spec):
        _check_output(report, path)
    _check_overwriting(config, spec)
    _check_conflict()
    with usage_errors():
        input_digests(spec.inputs, spec.roots)
    _warn_of_key(config)
    _make_debug_dir(spec)


def _check_output(report: ReportFormat, path: Path) -> None:
    """Check the name's ending, and that the file can be written: make and remove a probe."""
    special = atomic_write.is_special(path)
    if report.suffixes and not path.name.lower().endswith(report.suffixes) and not special:
        endings = " or ".join(report.suffixes)
        raise pytest.UsageError(
            f"{report.flag} {path.name!r}: expected a file name that ends in {endings}"
        )
    if path.name == "-":
        raise pytest.UsageError(f"{report.flag} '-': name a file, or /dev/stdout")
    with _usable(report.flag, path):
        atomic_write.check_writable(path)


def _check_overwriting(config: pytest.Config, spec: SessionSpec) -> None:
    """Refuse a report that would take the place of what the session reads, or of another report."""
    taken = {each.data: "is the data file" for each in spec.evals}
    if config.inipath is not None:
        taken[config.inipath] = "is pytest's configuration"
    outputs = [(report.flag, path) for report, path in asked_reports(spec)]
    if spec.trajectories is not None:
        outputs.append(("--osmosis-trajectories", spec.trajectories))
    if junit := getattr(config.option, "xmlpath", None):
        outputs.append(("--junitxml", Path(junit)))
    with usage_errors():
        atomic_write.check_overwriting(outputs, taken)


@contextmanager
def _usable(option: str, path: Path, action: str = "written") -> Iterator[None]:
    """Turn an OSError into a usage error that names the option and the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise pytest.UsageError(f"{option} {str(path)!r}: cannot be {action}: {reason}") from None


def is_quiet(config: pytest.Config) -> bool:
    """Return whether the header is to be left out."""
    return config.get_verbosity() < 0 or bool(getattr(config.option, "no_header", False))


def check_trajectories(path: Path | None) -> None:
    """Raise `pytest.UsageError` when the file of whole conversations could not be written."""
    if path is None:
        return
    with _usable("--osmosis-trajectories", path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write.check_writable(path)


def environment(config: pytest.Config, spec: SessionSpec, *, is_shown: bool) -> Mapping[str, Any]:
    """Return what reports say of where the session runs; where none does, the commit alone."""
    from .environment import describe, git_state

    if not is_shown:
        return {"git": git_state(config.rootpath)} if spec.keeping.journal else {}
    arguments = [str(argument) for argument in config.invocation_params.args]
    return describe(arguments, folder=config.rootpath)


def start_embedded(persona: str) -> EmbeddedEndpoint:
    """Start the embedded endpoint with one persona."""
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


def check_models(spec: SessionSpec) -> None:
    """Check that the models which agents are known to ask have a key."""
    for asked in spec.evals or [spec.defaults]:
        if asked is not None and asked.model.model:
            with usage_errors():
                key_of(asked.model)


def _warn_of_key(config: pytest.Config) -> None:
    given = OptionReader(config)
    if given.on_command_line("api-key"):
        name, readers = "--osmosis-api-key", "every user of this machine can read a command line"
    elif given.raw("api-key"):
        name, readers = "osmosis_api_key", "everyone who gets the file gets the key"
    else:
        return
    warn(
        config,
        f"{name}: {readers}; put the key into a variable and name that with --osmosis-api-key-env",
    )


def warn(config: pytest.Config, text: str) -> None:
    """Warn; where warnings are errors, raise a usage error."""
    try:
        config.issue_config_time_warning(pytest.PytestWarning(text), stacklevel=3)
    except pytest.PytestWarning as error:
        raise pytest.UsageError(str(error)) from None


def _make_debug_dir(spec: SessionSpec) -> None:
    if spec.debug_dir is None:
        return
    with _usable("--osmosis-debug-dir", spec.debug_dir.parent, "made"):
        spec.debug_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
