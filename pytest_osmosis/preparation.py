"""From an `EvalSpec` to a `Suite`: read its rows, import its code, check its key.

What cannot be prepared is a `NotUsable` of one sentence; nothing is sent anywhere. The model is
opened later, in the event loop that uses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from osmosis_ai.secret import Redactor, Secret, check_api_key

from .dataset import Dataset, DatasetError, EmptyDataset, load_dataset
from .importing import ImportingError, as_agent_loop, load_object
from .results import SuiteInfo
from .scoring import load_eval_fns
from .spec import EvalSpec, ModelSpec, SessionSpec
from .suite import REWARD, TEST, Suite

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatModel


class NotUsable(Exception):
    """An evaluation cannot be prepared; `str()` is the sentence for the user."""


class NoRows(NotUsable):
    """The selection of rows is empty."""


def prepare(spec: EvalSpec, session: SessionSpec, *, validate: bool = True) -> Suite:
    """The suite of `spec`; `validate=False` where another process has checked the rows already."""
    try:
        dataset = read_rows(spec, validate=validate)
        agent = as_agent_loop(
            load_object(spec.agent, option="--osmosis-agent", roots=session.roots),
            spec=spec.agent,
            option="--osmosis-agent",
        )
        eval_fns = load_eval_fns(spec.eval_fns, option="--osmosis-eval-fn", roots=session.roots)
    except ImportingError as error:
        raise NotUsable(str(error)) from None
    return Suite(
        spec,
        info=describe(spec, dataset),
        dataset=dataset,
        agent=agent,
        eval_fns=eval_fns,
        redact=Redactor(secrets_of(spec.model)),
        keep_answers=session.answers,
        debug_dir=None if session.debug_dir is None else str(session.debug_dir),
    )


def read_rows(spec: EvalSpec, *, validate: bool = True) -> Dataset:
    """The selected rows of the data file."""
    try:
        return load_dataset(
            spec.data,
            offset=spec.offset,
            limit=spec.limit,
            sample=spec.sample,
            sample_seed=spec.sample_seed,
            validate=validate,
        )
    except EmptyDataset as error:
        raise NoRows(f"--osmosis-data {error}") from None
    except DatasetError as error:
        raise NotUsable(f"--osmosis-data {error}") from None
    except ValueError as error:
        raise NotUsable(f"--osmosis-sample {spec.sample!r}: {error}") from None


def describe(spec: EvalSpec, dataset: Dataset) -> SuiteInfo:
    """What reports tell of the suite."""
    settings: dict[str, Any] = dict(spec.model.sampling)
    settings["seed"] = spec.model.seed
    settings.update(max_turns=spec.max_turns, offset=spec.offset, limit=spec.limit)
    settings.update(agent_timeout_s=spec.agent_timeout_s, grader_timeout_s=spec.grader_timeout_s)
    if spec.sample is not None:
        settings.update(sample=spec.sample, sample_seed=spec.sample_seed)
    eval_fns = (TEST,) if spec.marked else spec.eval_fns or (REWARD,)
    return SuiteInfo(
        name=spec.name,
        agent=spec.agent,
        data=str(spec.data),
        model=spec.model.model,
        endpoint=endpoint_of(spec.model),
        eval_fns=eval_fns,
        n=spec.n,
        pass_threshold=spec.pass_threshold,
        rows=len(dataset),
        digest=dataset.digest,
        settings={name: value for name, value in settings.items() if value is not None},
        marked=spec.marked,
    )


def endpoint_of(model: ModelSpec) -> str:
    """Where the model is asked, fit to be shown."""
    if model.persona is not None:
        return "embedded endpoint"
    if model.base_url is None:
        return model.model.partition("/")[0] if "/" in model.model else "openai"
    from osmosis_ai.models.base_url import normalise_base_url

    return normalise_base_url(model.base_url).netloc


def key_of(model: ModelSpec) -> Secret | None:
    """The API key that was given or that the named variable holds; None when there is none.

    Raises NotUsable when the key cannot be one, or when a variable named by the user is not set.
    """
    if model.persona is not None:
        return None
    try:
        if model.api_key is not None:
            return check_api_key(model.api_key.reveal(), model.api_key.name)
        name = model.api_key_env
        if name is None or (name not in os.environ and not model.api_key_env_named):
            return None
        if name not in os.environ:
            raise ValueError(f"{name} is not set: export it, or name another variable")
        return check_api_key(os.environ[name], name)
    except ValueError as error:
        raise NotUsable(f"API key: {error}") from None


def secrets_of(model: ModelSpec) -> list[Secret]:
    """The values that must appear nowhere."""
    names = {model.api_key_env} if model.api_key_env else _key_variables()
    values = [Secret(os.environ[name], name=name) for name in names if os.environ.get(name)]
    return [*values, *([model.api_key] if model.api_key is not None else [])]


def _key_variables() -> set[str]:
    return {name for name in os.environ if name.endswith("_API_KEY")}


def open_model(model: ModelSpec, *, base_urls: Mapping[str, str], pool_size: int) -> ChatModel:
    """The model, opened in the running event loop.

    `base_urls`: where the embedded endpoint listens, by persona.
    """
    base_url = model.base_url if model.persona is None else base_urls[model.persona]
    if base_url is None:
        from osmosis_ai.models.litellm_model import open_litellm_model

        return open_litellm_model(model=model.model, api_key=key_of(model))
    from osmosis_ai.models.openai_http import open_chat_model

    return open_chat_model(
        model=model.model, base_url=base_url, api_key=key_of(model), pool_size=pool_size
    )
