"""From the options as given to the `SessionSpec`.

What cannot be is a `pytest.UsageError` of one sentence. Does not open files of the user's, import
their code or talk to an endpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from osmosis_ai.secret import Secret

from .dataset.formats import ACCEPTED
from .decision_options import deciding, with_baseline_model
from .options import BY_NAME, Given
from .spec import Budget, EvalSpec, Keeping, ModelSpec, ReportPaths, Rescore, SessionSpec


def build(config: pytest.Config) -> SessionSpec:
    """The session that options and ini describe; `pytest.UsageError` for what cannot be."""
    given = Given(config)
    invocation_dir, root = config.invocation_params.dir, config.rootpath
    output = given("output")
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
        if rescore is not None  # the kept evaluation tells what there is
        else tuple(with_baseline_model(given, _with_data(given, defaults))),
        defaults=defaults,
        batch_size=given("batch-size") or _processes(config) or 1,
        worker_timeout_s=given("worker-timeout"),
        budget=Budget(
            cost_usd=given("max-cost"),
            tokens=given("max-total-tokens"),
            time_s=given("max-time"),
        ),
        deciding=deciding(given),
        keeping=_keeping(given),
        rescore=rescore,
        output=given.resolved("output", output) if output else None,
        reports=_reports(given, output),
        answers=not given("no-answers"),
        debug_dir=given.resolved("debug-dir", debug_dir) if debug_dir else None,
        pass_env=given("pass-env"),
        roots=(invocation_dir, root) if root != invocation_dir else (invocation_dir,),
    )


def _reports(given: Given, output: str | None) -> ReportPaths:
    def resolved(name: str) -> Path | None:
        text = given(name)
        return given.resolved(name, text) if text else None

    trajectories = resolved("trajectories")
    if trajectories is not None:
        trajectories /= "trajectories.jsonl"
    elif output and not given("no-answers"):
        report = given.resolved("output", output)
        trajectories = report.with_name(f"{report.stem}.trajectories.jsonl")
    return ReportPaths(trajectories, resolved("markdown"), resolved("html"), resolved("runs-table"))


def _keeping(given: Given) -> Keeping:
    """How runs are kept; what contradicts itself is refused."""
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
        fresh=given("fresh"),
        retry=given("retry-failed"),
    )


def _rescore(given: Given) -> Rescore | None:
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
    ("rescore", "retry-failed"),
    ("fresh", "resume"),
    ("fresh", "retry-failed"),
    ("no-journal", "resume"),
    ("no-journal", "retry-failed"),
)


def _require(given: Given, name: str, because: str, expected: str) -> None:
    if given.raw(name) is None:
        option = BY_NAME[name].flag_name
        raise pytest.UsageError(f"{given.spelled(because)} needs {option} too: {expected}")


def _evaluation(given: Given) -> EvalSpec:
    """What every evaluation of the session has in common; name and data are still open."""
    eval_fns = given("eval-fn")
    for name in eval_fns:
        if eval_fns.count(name) > 1:
            raise pytest.UsageError(
                f"{given.spelled('eval-fn')} {name!r} is given twice; give it once"
            )
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
        limit=given("limit"),
        offset=given("offset"),
        sample=given("sample"),
        sample_seed=given("sample-seed"),
        shard=given("shard"),
        agent_timeout_s=given("agent-timeout"),
        grader_timeout_s=given("grader-timeout"),
    )


def _model(given: Given) -> ModelSpec:
    base_url, api_key = given("base-url"), given("api-key")
    if base_url is not None:
        base_url = checked_base_url(given, base_url)
    sampling = {
        name: given(name.replace("_", "-")) for name in ("temperature", "max_tokens", "top_p")
    }
    return ModelSpec(
        model=given("model") or "",
        base_url=base_url,
        api_key_env=given("api-key-env") or ("OPENAI_API_KEY" if base_url else None),
        api_key_env_named=given.raw("api-key-env") is not None,
        api_key=Secret(api_key, name=given.spelled("api-key")) if api_key else None,
        sampling={name: value for name, value in sampling.items() if value is not None},
        seed=given("seed"),
    )


def checked_base_url(given: Given, text: str, option: str = "base-url") -> str:
    """The URL in its usual form; `pytest.UsageError` when it is none."""
    from osmosis_ai.models.transport.base_url import normalise_base_url

    try:
        return str(normalise_base_url(text))
    except ValueError as error:
        raise pytest.UsageError(f"{given.spelled(option)}: {error}") from None


def _with_data(given: Given, defaults: EvalSpec) -> Iterator[EvalSpec]:
    seen: set[Path] = set()
    for text in given("data"):
        resolved = given.resolved("data", text)
        if resolved in seen:
            raise pytest.UsageError(
                f"{given.spelled('data')} {text!r} is given twice; give it once"
            )
        seen.add(resolved)
        yield replace(defaults, name=text, data=resolved)


def _processes(config: pytest.Config) -> int | None:
    """W of xdist's `-n W`, 0 and None (not given, or no xdist) alike None."""
    value = getattr(config.option, "numprocesses", None)
    return value if isinstance(value, int) and value > 0 else None
