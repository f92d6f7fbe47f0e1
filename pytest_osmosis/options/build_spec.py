"""Build the `SessionSpec` from options and ini file, or raise a `pytest.UsageError`.

Gates are parsed here, so that a mistake in one is found before anything is loaded. Opens no file
of the user's, imports none of their code and talks to no endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.agents.event_log import session_folder
from osmosis_ai.secret import Secret

from ..dataset.formats import ACCEPTED
from ..escaping import escape_control_chars
from ..reports.formats import REPORTS
from ..spec import Budget, Cluster, Deciding, EvalSpec, Keeping, ModelSpec, Rescore, SessionSpec
from ..storage.atomic_write import is_special
from .reader import OptionReader
from .table import BY_NAME
from .values import OF_REPORT

LAST = "last"
"""As a baseline: the suite's previous complete evaluation."""
PROVIDER = "provider"
"""As a base URL: none, because the model's name says where it is."""
_NOT_IN_NAMES = re.compile(r"[^\w./@-]+")
"""What a model's name leaves out as part of a node id."""


def build(config: pytest.Config) -> SessionSpec:
    """Return the session that options and ini file describe; raise `pytest.UsageError`."""
    given = OptionReader(config)
    invocation_dir, root = config.invocation_params.dir, config.rootpath
    reports = _reports(given)
    debug_dir = given("debug-dir")
    defaults = _evaluation(given)
    rescore = _rescore(given)
    if rescore is None and given.raw("data") is not None:
        _require(given, "agent", "data", "module:attribute, e.g. server:agent_loop")
        _require(
            given, "model", "data", "a name at --osmosis-base-url, provider/model, or 'embedded'"
        )
    elif (
        rescore is None
        and given.on_command_line("agent")
        and config.args_source is not config.ArgsSource.ARGS
    ):
        _require(given, "data", "agent", ACCEPTED)
    return SessionSpec(
        evals=()
        if rescore is not None  # the kept evaluation says which there are
        else tuple(_with_baseline_model(given, _with_data(given, defaults))),
        defaults=defaults,
        batch_size=batch_size(config),
        cluster=_cluster(given, batch_size(config)),
        worker_timeout_s=given("worker-timeout"),
        budget=Budget(
            cost_usd=given("max-cost"),
            tokens=given("max-total-tokens"),
            time_s=given("max-time"),
        ),
        deciding=_deciding(given),
        keeping=_keeping(given),
        rescore=rescore,
        by=_by(given),
        reports=reports,
        trajectories=_trajectories(given, reports.get("output")),
        answers=not given("no-answers"),
        debug_dir=session_folder(given.resolved("debug-dir", debug_dir)) if debug_dir else None,
        inputs=tuple(str(given.path("inputs", pattern)) for pattern in given("inputs")),
        pass_env=given("pass-env"),
        roots=(invocation_dir, root) if root != invocation_dir else (invocation_dir,),
    )


def _by(given: OptionReader) -> tuple[str, ...]:
    names: tuple[str, ...] = given("by")
    for number, name in enumerate(names):
        earlier = [each.casefold() for each in names[:number]]
        _refuse_twice(given, "by", name, name.casefold() in earlier)
    return names


def _reports(given: OptionReader) -> dict[str, Path]:
    texts = {report.option: given(report.option) for report in REPORTS}
    return {name: given.resolved(name, text) for name, text in texts.items() if text}


def _trajectories(given: OptionReader, report: Path | None) -> Path | None:
    """Return the file of whole conversations: where it was asked for, or beside the JSON report."""
    if folder := given("trajectories"):
        return given.resolved("trajectories", folder) / "trajectories.jsonl"
    if report is None or given("no-answers") or is_special(report) or given.output_is_temporary:
        return None
    return report.with_name(f"{report.stem}.trajectories.jsonl")


def _keeping(given: OptionReader) -> Keeping:
    """Return how runs are kept; refuse options that contradict each other."""
    for one, other in _CONTRADICTORY:
        if given(one) and given(other):
            raise pytest.UsageError(
                f"{given.spelled(one)} and {given.spelled(other)} contradict each other: "
                "give one of them"
            )
    run_dir = given("run-dir")
    return Keeping(
        journal=not given("no-journal"),
        run_dir=given.resolved("run-dir", run_dir) if run_dir else None,
        resume=given("resume"),
        extend=given("extend"),
        fresh=given("fresh"),
        retry=given("retry-failed"),
    )


def _rescore(given: OptionReader) -> Rescore | None:
    run = given("rescore")
    if run is None:
        return None
    data = given("data") if given.on_command_line("data") else ()
    if len(data) > 1:
        raise pytest.UsageError(f"{given.spelled('rescore')} goes with one --osmosis-data alone")
    return Rescore(
        run=run,
        data=given.resolved("data", data[0]) if data else None,
        eval_fns=given("eval-fn"),
        grader=given("grader"),
        pass_threshold=None if given.raw("pass-threshold") is None else given("pass-threshold"),
    )


_CONTRADICTORY = (
    ("rescore", "fresh"),
    ("rescore", "resume"),
    ("rescore", "extend"),
    ("rescore", "retry-failed"),
    ("fresh", "resume"),
    ("fresh", "extend"),
    ("fresh", "retry-failed"),
    ("no-journal", "resume"),
    ("no-journal", "extend"),
    ("no-journal", "retry-failed"),
)


def _require(given: OptionReader, name: str, because: str, expected: str) -> None:
    if given.raw(name) is None:
        option = BY_NAME[name].flag_name
        raise pytest.UsageError(f"{given.spelled(because)} needs {option} too: {expected}")


def _refuse_twice(given: OptionReader, name: str, text: str, is_repeated: bool) -> None:
    if is_repeated:
        raise pytest.UsageError(f"{given.spelled(name)} {text!r} is given twice; give it once")


def _evaluation(given: OptionReader) -> EvalSpec:
    """Return what every evaluation of the session has in common, without name and data."""
    eval_fns = given("eval-fn")
    for number, name in enumerate(eval_fns):
        _refuse_twice(given, "eval-fn", name, name in eval_fns[:number])
    return EvalSpec(
        name="",
        agent=given("agent") or "",
        data=Path(),
        model=_model(given),
        eval_fns=eval_fns,
        grader=given("grader"),
        n=given("n"),
        pass_threshold=given("pass-threshold"),
        max_turns=given("max-turns"),
        map=_map(given),
        **_selection(given),
        sample_seed=given("sample-seed"),
        shard=given("shard"),
        agent_timeout_s=given("agent-timeout"),
        grader_timeout_s=given("grader-timeout"),
    )


def _map(given: OptionReader) -> tuple[str, ...]:
    texts: tuple[str, ...] = given("map")
    if texts:
        from ..dataset.columns import mapping_of

        try:
            mapping_of(texts)
        except ValueError as error:
            raise pytest.UsageError(f"{given.spelled('map')}: {error}") from None
    return texts


def _selection(given: OptionReader) -> dict[str, Any]:
    """Return which rows are taken; named on the command line, they replace what the ini takes."""
    others = ("limit", "offset", "sample")
    if given("rows"):
        for name in others:
            if given.raw(name) is None:
                continue
            if given.on_command_line(name) or not given.on_command_line("rows"):
                raise pytest.UsageError(
                    f"{given.spelled('rows')} and {given.spelled(name)} both say which rows: "
                    "give one of them"
                )
        return {"rows": _rows(given)}
    return {name: given(name) for name in others}


def _rows(given: OptionReader) -> str:
    """The indices of rows, those of a report looked up."""
    text: str = given("rows")
    if not text.startswith(OF_REPORT):
        return text
    from ..dataset.sampling import as_text
    from ..reports.json_reader import UnreadableReport, read_row_indices

    try:
        return as_text(read_row_indices(given.path("rows", text.removeprefix(OF_REPORT))))
    except UnreadableReport as error:
        raise pytest.UsageError(f"{given.spelled('rows')}: {error}") from None


def _model(given: OptionReader) -> ModelSpec:
    base_url, api_key = given("base-url"), given("api-key")
    if base_url is not None:
        base_url = _checked_base_url(given, base_url)
    sampling = {
        name: given(name.replace("_", "-")) for name in ("temperature", "max_tokens", "top_p")
    }
    model = ModelSpec(
        model=given("model") or "",
        base_url=base_url,
        api_key_env=given("api-key-env") or ("OPENAI_API_KEY" if base_url else None),
        api_key_env_named=given.raw("api-key-env") is not None,
        api_key=Secret(api_key, name=given.spelled("api-key")) if api_key else None,
        sampling={name: value for name, value in sampling.items() if value is not None},
        seed=given("seed"),
    )
    return _with_price(given, model, "price-per-mtok")


def _with_price(given: OptionReader, model: ModelSpec, option: str) -> ModelSpec:
    """Return the model with the price that is given; what a budget counts of ours is free."""
    price = given(option)
    if price is None and model.persona is not None and given("max-cost"):
        price = (0.0, 0.0)
    return replace(model, price_per_mtok=price)


def _checked_base_url(given: OptionReader, text: str, option: str = "base-url") -> str:
    """Return the URL in its usual form; raise `pytest.UsageError` when it is not one."""
    from osmosis_ai.models.transport.base_url import normalise_base_url

    try:
        return str(normalise_base_url(text))
    except ValueError as error:
        raise pytest.UsageError(f"{given.spelled(option)}: {error}") from None


def _with_data(given: OptionReader, defaults: EvalSpec) -> Iterator[EvalSpec]:
    seen: set[Path] = set()
    for text in given("data"):
        resolved = given.resolved("data", text)
        _refuse_twice(given, "data", text, resolved in seen)
        seen.add(resolved)
        yield replace(defaults, name=text, data=resolved)


def batch_size(config: pytest.Config) -> int:
    """Return B of `--batch-size`, else W of xdist's `-n W`, else 1."""
    workers = getattr(config.option, "numprocesses", None)
    known = workers if isinstance(workers, int) and workers > 0 else 1
    return int(OptionReader(config)("batch-size") or known)


def _cluster(given: OptionReader, batch: int) -> Cluster | None:
    """Return the cluster that runs the rollouts; refuse what does not go with one."""
    address, shards = given("ray"), given("shards")
    if address is None:
        for name in _OF_CLUSTER:
            if given.raw(name) is not None:
                raise pytest.UsageError(f"{given.spelled(name)} needs --osmosis-ray too")
        return None
    if given.raw("rescore") is not None:
        raise pytest.UsageError(
            f"{given.spelled('rescore')} does not go with {given.spelled('ray')}: leave one out"
        )
    if shards is not None and shards > batch:
        raise pytest.UsageError(
            f"{given.spelled('shards')} {shards}: each shard has a part of the batch size, which "
            f"is {batch}; give --osmosis-batch-size {shards} or more, or fewer shards"
        )
    runtime_env = given("ray-runtime-env")
    return Cluster(
        address=address,
        shards=shards,
        cpus=given("ray-cpus"),
        variables=given("ray-env"),
        runtime_env=given.resolved("ray-runtime-env", runtime_env) if runtime_env else None,
    )


_OF_CLUSTER = ("shards", "ray-cpus", "ray-env", "ray-runtime-env")


def _deciding(given: OptionReader) -> Deciding:
    """Return gates, confidence and baseline."""
    gates = tuple(_gates(given))
    if given("stop-when-decided") and not gates:
        raise pytest.UsageError(
            f"{given.spelled('stop-when-decided')} needs a gate that can be decided: "
            "give --osmosis-gate too"
        )
    baseline, model = given("baseline"), given("baseline-model")
    if baseline and model:
        raise pytest.UsageError(
            f"{given.spelled('baseline')} and {given.spelled('baseline-model')} are two "
            "baselines: give one of them"
        )
    for name in ("baseline-base-url", "baseline-api-key-env", "baseline-price-per-mtok"):
        if given(name) and not model:
            raise pytest.UsageError(f"{given.spelled(name)} needs --osmosis-baseline-model too")
    return Deciding(
        gates=gates,
        confidence=given("confidence"),
        stop_when_decided=given("stop-when-decided"),
        baseline=given.path("baseline", baseline) if baseline and baseline != LAST else None,
        last=baseline == LAST,
        baseline_model=model,
    )


def _gates(given: OptionReader) -> Iterator[str]:
    texts = given("gate")
    if not texts:
        return
    from ..gates.parser import GateError, parse_gate

    seen: set[str] = set()
    for text in texts:
        try:
            gate = parse_gate(text)
        except GateError as error:
            raise pytest.UsageError(gate_mistake(error, given.spelled("gate"))) from None
        _refuse_twice(given, "gate", gate.text, gate.text in seen)
        seen.add(gate.text)
        yield gate.text


def gate_mistake(error: ValueError, option: str = "--osmosis-gate") -> str:
    """Return what is wrong with a gate, under the name of the option."""
    return f"{option} {escape_control_chars(str(error)).removeprefix('gate ')}"


def _with_baseline_model(given: OptionReader, evals: Iterable[EvalSpec]) -> Iterator[EvalSpec]:
    """Return each evaluation, and the same with the baseline model; labels then name the models."""
    name = given("baseline-model")
    for spec in evals:
        if name is None:
            yield spec
            continue
        other = _other_model(given, spec.model, name)
        other = _with_price(given, other, "baseline-price-per-mtok")
        labels = [_label(spec.model), _label(other)]
        if labels[0] == labels[1]:
            labels[1] += "@baseline"
        yield replace(spec, label=labels[0])
        yield replace(
            spec,
            name=f"{spec.name} ({name})",
            model=other,
            label=labels[1],
            baseline_of=spec.name,
        )


def _other_model(given: OptionReader, model: ModelSpec, name: str) -> ModelSpec:
    """Return the baseline model: at the model's own endpoint unless another is given."""
    url, variable = given("baseline-base-url"), given("baseline-api-key-env")
    if url is None:
        other = replace(model, model=name)
        if not variable:
            return other
        return replace(other, api_key_env=variable, api_key_env_named=True, api_key=None)
    elsewhere = None if url == PROVIDER else _checked_base_url(given, url, "baseline-base-url")
    return replace(
        model,
        model=name,
        base_url=elsewhere,
        api_key_env=variable or ("OPENAI_API_KEY" if elsewhere else None),
        api_key_env_named=bool(variable),
        api_key=None,
    )


def _label(model: ModelSpec) -> str:
    return _NOT_IN_NAMES.sub("-", model.model)
