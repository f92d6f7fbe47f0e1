"""Build the `SessionSpec` from options and ini file, or raise a `pytest.UsageError`.

Most options fill a field of the spec, which the table names. Here is what combines several; the
models are in `model_options`. Gates are parsed here, so that a mistake in one is found before
anything is loaded. Opens no file of the user's but a report that names rows, imports none of their
code and talks to no endpoint.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ..dataset.formats import ACCEPTED
from ..escaping import escape_control_chars
from ..reports.formats import REPORTS
from ..spec import (
    CONFIG_ENV,
    Deciding,
    EvalSpec,
    Keeping,
    SessionSpec,
)
from ..storage.atomic_write import is_special
from ..user_code.agent import CHAT
from . import effects
from .model_options import model
from .reader import OptionReader
from .table import BY_NAME, FEATURES
from .values import OF_FILE, report_of, template_of


def build(config: pytest.Config, *, of_tests: bool = False) -> SessionSpec:
    """Return the session that options and ini file describe; raise `pytest.UsageError`.

    `of_tests`: it has functions with the marker alone, to which options are defaults.
    """
    given = OptionReader(config)
    invocation_dir, root = config.invocation_params.dir, config.rootpath
    reports = {each.option: path for each in REPORTS if (path := given(each.option))}
    if of_tests:
        _require_one(given)
    elif not given.naming():
        _require_evaluation(config, given)
    effects.check_combinations(given)
    defaults = _evaluation(given)
    return SessionSpec(
        evals=tuple(_with_data(given, defaults)),
        defaults=defaults,
        batch_size=batch_size(config),
        deciding=Deciding(
            gates=tuple(given.distinct("gate", canonical=lambda text: _canonical(given, text))),
            **given.fields("deciding"),
        ),
        keeping=Keeping(journal=not given("no-journal"), **given.fields("keeping")),
        reports=reports,
        trajectories=_trajectories(given, reports.get("output")),
        answers=not given("no-answers"),
        debug_dir=_folder_of_events(given("debug-dir")),
        inputs=tuple(str(given.path("inputs", pattern)) for pattern in given("inputs")),
        config_env=_config_env(),
        roots=(invocation_dir, root) if root != invocation_dir else (invocation_dir,),
        parts={each.name: part for each in FEATURES if (part := each.read(given)) is not None},
        **given.fields("session"),
    )


def _require_evaluation(config: pytest.Config, given: OptionReader) -> None:
    """Raise `pytest.UsageError` where a part of an evaluation is given without the others."""
    if given.raw("data") is not None:
        if given.raw("model") is None:
            expected = "module:attribute; or --osmosis-model, to ask that once a row"
            _require(given, "agent", "data", expected)
    elif given.on_command_line("agent") and config.args_source is not config.ArgsSource.ARGS:
        _require(given, "data", "agent", ACCEPTED)


def _require_one(given: OptionReader) -> None:
    """Raise `pytest.UsageError` where several data files are given, and nothing is run on each."""
    is_alone = given.raw("agent") is None and given.raw("model") is None
    if is_alone and len(texts := given("data")) > 1:
        option, second = given.spelled("data"), escape_control_chars(texts[1])
        raise pytest.UsageError(
            f"{option} {second}: functions with the marker take one file from the "
            "options: name the other in the marker, data=..."
        )


def _require(given: OptionReader, name: str, because: str, expected: str) -> None:
    if given.raw(name) is None:
        option = BY_NAME[name].flag_name
        raise pytest.UsageError(f"{given.spelled(because)} needs {option} too: {expected}")


def _evaluation(given: OptionReader) -> EvalSpec:
    """Return what every evaluation of the session has in common, without name and data."""
    fields = given.fields("evaluation")
    if file := given("system-prompt-file"):
        fields["system_prompt"] = _text_of(given, file)
    fields["prompt_template"] = _prompt_template(given)
    fields["strip_reasoning"] = given("strip-reasoning") or None
    fields["pass_threshold"], fields["thresholds"] = thresholds(given)
    return EvalSpec(
        name="",
        agent=next(iter(given("agent")), ""),
        data=Path(),
        model=model(given),
        eval_fns=tuple(given.distinct("eval-fn")),
        map=_column_map(given),
        rows=_rows(given),
        **fields,
    )


def _prompt_template(given: OptionReader) -> str | None:
    text = given("prompt-template")
    if text is None:
        return None
    try:
        return template_of(text, lambda file: given.path("prompt-template", file))
    except ValueError as error:
        shown = text if text.startswith(OF_FILE) else ""
        option = given.spelled("prompt-template")
        raise pytest.UsageError(f"{option}{shown and f' {shown!r}'}: {error}") from None


def _text_of(given: OptionReader, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise pytest.UsageError(
            f"{given.spelled('system-prompt-file')} {str(file)!r}: {reason}"
        ) from None


def thresholds(given: OptionReader) -> tuple[float, tuple[str, ...]]:
    """Return the threshold of all eval functions, and the texts of those that have their own."""
    texts: dict[str, str] = {}
    for text in given("pass-threshold"):
        before = texts.setdefault(text.rpartition("=")[0], text)
        if before is not text:
            told = f"{before} and {text} contradict each other: give one of them"
            raise pytest.UsageError(f"{given.spelled('pass-threshold')}: {told}")
    return float(texts.pop("", 1.0)), tuple(texts.values())


def _with_data(given: OptionReader, defaults: EvalSpec) -> Iterator[EvalSpec]:
    for path, text in given.distinct("data", lambda text: given.resolved("data", text)).items():
        yield replace(defaults, name=text, data=path, agent=defaults.agent or CHAT)


def _rows(given: OptionReader) -> str | None:
    """Return the indices of rows, those of a report looked up."""
    text: str | None = given("rows")
    if text is None or (report := report_of(text)) is None:
        return text
    from ..dataset.sampling import as_text
    from ..reports.json_reader import UnreadableReport, read_row_indices

    try:
        return as_text(read_row_indices(given.path("rows", report)))
    except UnreadableReport as error:
        raise pytest.UsageError(f"{given.spelled('rows')}: {error}") from None


def _column_map(given: OptionReader) -> tuple[str, ...]:
    """Return which columns serve as which, checked together."""
    texts: tuple[str, ...] = given("map")
    if texts:
        from ..dataset.columns import mapping_of

        try:
            mapping_of(texts)
        except ValueError as error:
            raise pytest.UsageError(f"{given.spelled('map')}: {error}") from None
    return texts


def _canonical(given: OptionReader, text: str) -> str:
    from ..analysis.gates.parser import GateError, parse_gate

    try:
        return parse_gate(text).text
    except GateError as error:
        raise pytest.UsageError(gate_mistake(error, given.spelled("gate"))) from None


def gate_mistake(error: ValueError, option: str = "--osmosis-gate") -> str:
    """Return what is wrong with a gate, under the name of the option."""
    return f"{option} {escape_control_chars(str(error)).removeprefix('gate ')}"


def batch_size(config: pytest.Config) -> int:
    """Return B of `--batch-size`, else W of xdist's `-n W`, else 1; no more than named items."""
    workers = getattr(config.option, "numprocesses", None)
    known = workers if isinstance(workers, int) and workers > 0 else 1
    batch = int(OptionReader(config)("batch-size") or known)
    return min(batch, len(config.args)) if _names_single_items(config.args) else batch


def _names_single_items(arguments: Sequence[str]) -> bool:
    """Return whether each argument is the node id of one run."""
    return bool(arguments) and all("::" in text and text.endswith("]") for text in arguments)


def _trajectories(given: OptionReader, report: Path | None) -> Path | None:
    """Return the file of whole conversations: where it was asked for, or beside the JSON report."""
    if folder := given("trajectories"):
        return Path(folder) / "trajectories.jsonl"
    if report is None or given("no-answers") or is_special(report) or given.output_is_temporary:
        return None
    return report.parent / f"{report.stem}.trajectories.jsonl"


def _folder_of_events(given: Path | None) -> Path | None:
    if given is None:
        return None
    from osmosis_ai.agents.event_log import session_folder

    return session_folder(given)


def _config_env() -> dict[str, str]:
    """Return a digest of each variable of a config file's [env], by its name."""
    names = os.environ.get(CONFIG_ENV, "").split()
    return {name: _digest(name, os.environ.get(name, "")) for name in sorted(names)}


def _digest(name: str, value: str) -> str:
    text = f"{name}={value}".encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:16]
