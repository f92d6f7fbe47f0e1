"""From an `EvalSpec` to a `Suite`: read its rows, import its code, check its key.

What cannot be prepared is a `ConfigurationError` of one sentence; nothing is sent anywhere. The
model is opened later, in the event loop that uses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from osmosis_ai.secret import mask_everywhere, redact

from ..api_keys import key_of, secrets_of, sent_besides
from ..dataset.columns import mapping_of
from ..dataset.dataset import Dataset, load_dataset, shape_at
from ..dataset.errors import DatasetError, EmptyDataset, UnclearDataset
from ..errors import ConfigurationError, NoRows, ShapeError
from ..escaping import shown_path
from ..run_result import EMBEDDED_ENDPOINT, OWN_MODEL, SuiteInfo, short_names
from ..spec import EvalSpec, ModelSpec, SessionSpec
from ..user_code.agent import CHAT
from ..user_code.eval_function import EvalFn, load_eval_fns
from ..user_code.import_object import ImportingError, imports_within
from ..user_code.load_agent import load_agent, load_grading
from .scoring import REWARD, TEST
from .suite import Suite

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatModel, RateLimit

    from ..user_code.agent import Agent

NO_MODEL = "--osmosis-model is needed: a name at --osmosis-base-url, provider/model, or 'embedded'"


def prepare(
    spec: EvalSpec,
    session: SessionSpec,
    *,
    validate: bool = True,
    agent: object = None,
) -> Suite:
    """The suite of `spec`; `validate=False` where another process has checked the rows already.

    `agent` is the one that the spec only names, where it is an object.
    """
    roots = session.roots
    try:
        with imports_within(session.import_timeout_s):
            eval_fns = load_eval_fns(spec.eval_fns, option="--osmosis-eval-fn", roots=roots)
            dataset = read_rows(spec, validate=validate, compared_by=eval_fns)
            loaded = load_agent(spec.agent, roots=roots, withheld=session.withheld, named=agent)
            grading = load_grading(spec.grader, loaded, agent=spec.agent, roots=roots)
    except ImportingError as error:
        raise ConfigurationError(str(error)) from None
    if validate:
        needs_task = loaded.agent.takes == "task" or grading is not None
        _check_rows(dataset, loaded.agent, spec.agent, needs_task=needs_task)
    if loaded.agent.needs_model and not spec.model.model:
        raise ConfigurationError(NO_MODEL)
    reach = loaded.agent.reach
    model = spec.model.for_agent(takes_name="model" in reach, is_asked="endpoint" in reach)
    spec = replace(spec, model=model)
    if loaded.needs_scores and not (grading or eval_fns or spec.scored_by_test):
        sentence = (
            "--osmosis-eval-fn is needed: nothing scores the model's answers"
            if spec.agent == CHAT
            else f"--osmosis-agent {spec.agent!r}: nothing scores it: put a Grader into its "
            "module, or give --osmosis-grader or --osmosis-eval-fn"
        )
        is_said = spec.map or spec.prompt_template or spec.where
        found = dataset.shape if is_said else shape_at(spec.data)
        raise ShapeError(sentence, found, only="eval-fn")
    models = [spec.model, *(each.model for each in session.evals)]
    mask_everywhere(*secrets_of(*models), *session.key_variables)
    if validate:
        _refuse_secret_ids(dataset)
    info = describe(spec, dataset, graded=grading is not None)
    return Suite(
        spec,
        session,
        info=replace(info, max_concurrent=loaded.agent.max_concurrent),
        dataset=dataset,
        agent=loaded.agent,
        eval_fns=eval_fns,
        grading=grading,
    )


def _check_rows(dataset: Dataset, agent: Agent, name: str, *, needs_task: bool) -> None:
    try:
        dataset.refuse_for(name, takes=agent.takes, needs_task=needs_task)
    except UnclearDataset as error:
        found = shape_at(dataset.path)
        if any("[-1]." in text for text in found.maps):  # as in all rows
            raise ShapeError(f"--osmosis-data {error.sentence}", found) from None
        raise ConfigurationError(f"--osmosis-data {error}") from None
    except DatasetError as error:
        raise ConfigurationError(f"--osmosis-data {error}") from None


def _refuse_secret_ids(dataset: Dataset) -> None:
    """Raise ConfigurationError where a row's id holds a secret: masked, it would name no row."""
    ids = [dataset.row_id(index) or "" for index in dataset.row_indices]
    if redact(joined := "\n".join(ids)) == joined:
        return
    index = next(
        row for row, name in zip(dataset.row_indices, ids, strict=True) if redact(name) != name
    )
    raise ConfigurationError(
        f"--osmosis-data {shown_path(dataset.path)}: the id of row {index} holds the value of a "
        "key or token of the environment; ids stand in every report: change it"
    )


def read_rows(
    spec: EvalSpec, *, validate: bool = True, compared_by: Sequence[EvalFn] = ()
) -> Dataset:
    """The selected rows of the data file; `compared_by` may refuse ground truths and columns."""
    part = None
    if spec.part:
        from ..dataset.sampling import parse_part

        part = parse_part(spec.part)
    try:
        dataset = load_dataset(
            spec.data,
            offset=spec.offset,
            limit=spec.limit,
            rows=spec.rows,
            sample=spec.sample,
            sample_seed=spec.sample_seed,
            part=part,
            mapping=mapping_of(spec.map),
            template=spec.prompt_template,
            where=spec.where,
            system_prompt=spec.system_prompt,
            compared_by=[
                (each.name, each.refuse_ground_truth)
                for each in compared_by
                if each.refuse_ground_truth is not None
            ],
            row_checks=[each.refuse_row for each in compared_by if each.refuse_row is not None],
            validate=validate,
        )
        for each in compared_by if validate else ():
            rows = (dataset.row(index).metadata() for index in dataset.row_indices)
            if missing := each.missing_columns(rows):
                raise ConfigurationError(
                    f"--osmosis-eval-fn {each.name!r}: needs {missing[0]!r}, and no row of "
                    f"{shown_path(spec.data)} has such a column"
                )
            _refuse_unused(each, dataset)
        return dataset
    except EmptyDataset as error:
        raise NoRows(f"--osmosis-data {error}") from None
    except UnclearDataset as error:
        raise ShapeError(f"--osmosis-data {error.sentence}", shape_at(spec.data)) from None
    except DatasetError as error:
        raise ConfigurationError(f"--osmosis-data {error}") from None


def _refuse_unused(eval_fn: EvalFn, dataset: Dataset) -> None:
    """Raise ConfigurationError where a setting of a scorer says nothing of any ground truth."""
    if eval_fn.used_setting is None:
        return
    setting, is_used = eval_fn.used_setting
    if not any(is_used(dataset.row(index).own_truth) for index in dataset.row_indices):
        raise ConfigurationError(
            f"--osmosis-eval-fn {eval_fn.name!r}: {setting} has no effect: no ground truth in "
            f"{shown_path(dataset.path)} is a number or digits; leave it out"
        )


def describe(spec: EvalSpec, dataset: Dataset, *, graded: bool = False) -> SuiteInfo:
    """What reports tell of the suite."""
    settings: dict[str, Any] = dict(spec.model.sampling)
    settings["seed"] = spec.model.seed
    settings.update(sent_besides(spec.model))
    settings.update(max_turns=spec.max_turns, offset=spec.offset, limit=spec.limit)
    settings.update(agent_timeout_s=spec.agent_timeout_s, grader_timeout_s=spec.grader_timeout_s)
    if spec.rows is not None:
        settings.update(rows=spec.rows)
    settings["system_prompt"] = spec.system_prompt
    if spec.map:
        settings.update(map=list(spec.map))
    settings["prompt_template"] = spec.prompt_template
    if spec.where:
        settings.update(where=list(spec.where))
    settings.update(strip_reasoning=spec.strip_reasoning)
    if spec.sample is not None:
        settings.update(sample=spec.sample, sample_seed=spec.sample_seed)
    settings.update(spec.model.stand_in)
    if spec.part is not None:
        settings.update(shard=spec.part)
    eval_fns = (REWARD, *spec.eval_fns) if graded else spec.eval_fns or (REWARD,)
    if spec.scored_by_test:
        eval_fns = (TEST,)
    return SuiteInfo(
        name=spec.name,
        agent=spec.agent,
        data=str(spec.data),
        model=spec.model.model or OWN_MODEL,
        endpoint=endpoint_of(spec.model),
        eval_fns=eval_fns,
        n=spec.n,
        pass_threshold=spec.pass_threshold,
        thresholds={} if spec.scored_by_test else own_thresholds(spec.thresholds, eval_fns),
        rows=len(dataset),
        digest=dataset.digest,
        settings={name: value for name, value in settings.items() if value is not None},
        scored_by_test=spec.scored_by_test,
        priced=spec.model.price_per_mtok is not None
        or (spec.model.base_url is None and spec.model.persona is None),
        label=spec.label,
        variant=".".join(spec.model.stand_in),
        leader=spec.leader,
        companion_of=spec.companion_of,
    )


def own_thresholds(texts: Iterable[str], eval_fns: Sequence[str]) -> dict[str, float]:
    """Return the thresholds of eval functions, by their whole names."""
    found = {}
    for text in texts:
        name, _, score = text.rpartition("=")
        whole = [each for each in eval_fns if each == name]
        places = whole or [each for each in eval_fns if name in short_names(each)]
        if len(places) != 1:
            told = f"{name!r} is not one eval function here, only {', '.join(eval_fns)}"
            raise ConfigurationError(f"--osmosis-pass-threshold {text!r}: {told}")
        found[places[0]] = float(score)
    return found


def endpoint_of(model: ModelSpec) -> str:
    """Where the model is asked, fit to be shown; empty where the evaluation asks none."""
    if not (model.model and model.is_asked):
        return ""
    if model.persona is not None:
        return EMBEDDED_ENDPOINT
    if model.base_url is None:
        from osmosis_ai.providers import host_of

        return host_of(model.model.partition("/")[0].lower() if "/" in model.model else "openai")
    from osmosis_ai.models.transport.base_url import normalise_base_url

    return normalise_base_url(model.base_url).netloc


async def ready_for(models: Iterable[ModelSpec]) -> None:
    """Wait for what asking the models takes besides them: no run's time.

    Before the first run of any: pytest replaces the filters of warnings between items, and an
    import that continues meanwhile would print what it warns of, or raise it under `-W error`.
    """
    named = [model for model in models if model.model and model.is_asked]
    if any(model.persona is None and model.base_url is None for model in named):
        from osmosis_ai.models.litellm.library import import_ahead

        await import_ahead()


def open_model(
    model: ModelSpec,
    *,
    base_urls: Mapping[str, str],
    pool_size: int,
    rate_limit: RateLimit | None = None,
) -> ChatModel:
    """The model, opened in the running event loop.

    `base_urls`: where the embedded endpoint listens, by persona.
    """
    found = _opened(model, base_urls, pool_size, rate_limit)
    if model.price_per_mtok is None:
        return found
    from osmosis_ai.models.base import PricedModel

    return PricedModel(found, model.price_per_mtok)


def _opened(
    model: ModelSpec, base_urls: Mapping[str, str], pool_size: int, rate_limit: RateLimit | None
) -> ChatModel:
    base_url = model.base_url if model.persona is None else base_urls[model.persona]
    if base_url is None:
        from osmosis_ai.models.litellm.model import LiteLLMModel

        return LiteLLMModel(
            model=model.model, api_key=key_of(model), headers=model.headers, rate_limit=rate_limit
        )
    from osmosis_ai.models.openai import OpenAIModel

    query = "" if model.query is None else f"?{model.query.reveal()}"
    return OpenAIModel(
        model=model.model,
        base_url=base_url + query,
        api_key=key_of(model),
        headers=model.headers,
        pool_size=pool_size,
        rate_limit=rate_limit,
    )
