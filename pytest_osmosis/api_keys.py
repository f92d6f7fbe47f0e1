"""API keys of the models: found, checked, and known by value, so that no output shows them.

The environment is only read. Knows neither pytest nor what a key is used for.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from osmosis_ai.models.headers import is_secret, secrets_in, shown_fields
from osmosis_ai.secret import MASK, Secret, check_api_key
from osmosis_ai.secret_variables import may_name_a_variable, secret_variables

from .errors import ConfigurationError
from .spec import EMBEDDED, ModelSpec, SessionSpec

if TYPE_CHECKING:
    from osmosis_ai.models.transport.base_url import BaseURL

NEED_A_KEY = frozenset({"openai", "anthropic", "gemini", "openrouter", "xai", "cerebras"})
"""Providers that always need a key; others may have credentials of another kind."""
_LOGINS = ("OSMOSIS_TOKEN",)


def key_of(model: ModelSpec) -> Secret | None:
    """Return the API key that was given or that its variable holds; None when there is none.

    Raises ConfigurationError when the key cannot be one, or when its variable has to be set.
    """
    if model.persona is not None or not (model.needs_key and model.is_asked):
        return None
    try:
        if model.api_key is not None:
            return check_api_key(model.api_key.reveal(), model.api_key.name)
        if is_withheld(model):
            return None
        for name in _usual_variables(model):
            if os.environ.get(name, "").strip() or (name in os.environ and model.api_key_env):
                _refuse_plain_http(model, name)
                return check_api_key(os.environ[name], name)
        _refuse_missing(model)
    except ValueError as error:
        raise ConfigurationError(f"API key: {error}") from None
    return None


def is_withheld(model: ModelSpec) -> bool:
    """Return whether a key stays here: it would go over plain http to another machine.

    It goes there only when its variable was named, which is asking for it.
    """
    if model.base_url is None or model.api_key_env_named or model.api_key is not None:
        return False
    from osmosis_ai.models.transport.base_url import is_read_along

    return is_read_along(model.base_url)


def secrets_of(*models: ModelSpec) -> list[Secret]:
    """Return what no output may show: the models' keys, and variables named like keys."""
    named = {model.api_key_env for model in models if model.api_key_env}
    given = {id(key): key for model in models if (key := model.api_key) is not None}
    sent = [each for model in models for each in _secrets_sent(model)]
    return [*secret_variables(*sorted(named)), *given.values(), *sent]


def _secrets_sent(model: ModelSpec) -> Iterator[Secret]:
    """Yield the values of headers, and of the base URL's query, that no output may show."""
    yield from (value for name, value in model.headers.items() if is_secret(name, value))
    yield from secrets_in(model.extra_body)
    if model.query is not None:
        yield from _address(model).secrets


def sent_besides(model: ModelSpec) -> dict[str, Any]:
    """Return what else goes with each call, fit to be shown: fields, headers, query.

    Of a header's value there is the variable, or a digest unless it may be a secret.
    """
    found: dict[str, Any] = {}
    if model.extra_body:
        found["extra_body"] = shown_fields(model.extra_body)
    if model.headers:
        found["headers"] = [f"{name}={_shown(name, model)}" for name in model.headers]
    if model.query is not None:
        found["query"] = str(_address(model)).partition("?")[2]
    return found


def _shown(name: str, model: ModelSpec) -> str:
    value = model.headers[name]
    if is_secret(name, value):
        return value.name or MASK
    return f"{MASK} (sha256 {hashlib.sha256(value.reveal().encode()).hexdigest()[:8]})"


def _address(model: ModelSpec) -> BaseURL:
    from osmosis_ai.models.transport.base_url import normalise_base_url

    query = "" if model.query is None else model.query.reveal()
    return normalise_base_url(f"{model.base_url}?{query}")


def resolved(session: SessionSpec) -> SessionSpec:
    """Return the session with every model's key in its spec."""
    return session.with_models(_with_key)


def _with_key(model: ModelSpec) -> ModelSpec:
    """Return the model with its key; as it was where that is wrong: no agent may ask the model."""
    try:
        return replace(model, api_key=key_of(model)) if model.model else model
    except ConfigurationError:
        return model


def key_variables(session: SessionSpec) -> tuple[Secret, ...]:
    """Return the environment variables that hold a model's key or a login of the platform."""
    specs = [*session.evals, *([session.defaults] if session.defaults is not None else [])]
    models = {id(spec.model): spec.model for spec in specs}
    names = {name for model in models.values() for name in _holding(model)}
    names.update(name for name in _LOGINS if os.environ.get(name))
    return tuple(Secret(os.environ[name], name) for name in sorted(names))


def _holding(model: ModelSpec) -> set[str]:
    """Return the variables that hold this model's key, by any name."""
    if model.persona is not None or not model.model:
        return set()
    names = {name for name in _usual_variables(model) if os.environ.get(name)}
    names |= {value.name[1:] for value in model.headers.values() if value.name}
    values = {os.environ[name] for name in names}
    if model.api_key is not None:
        values.add(model.api_key.reveal())
    return names | {name for name, value in os.environ.items() if value in values and value}


def _usual_variables(model: ModelSpec) -> tuple[str, ...]:
    if model.api_key_env is not None:
        return (model.api_key_env,)
    if model.base_url is not None:
        return ()
    from osmosis_ai.providers import key_variables

    return key_variables(_provider(model))


def _provider(model: ModelSpec) -> str:
    from osmosis_ai.providers import parse_model_name

    try:
        return parse_model_name(model.model).provider
    except ValueError as error:
        raise ConfigurationError(f"{model.option}: {error}") from None


def _refuse_plain_http(model: ModelSpec, name: str) -> None:
    if model.base_url is None and not model.api_key_env_named:
        from osmosis_ai.models.transport.base_url import check_usual_key

        check_usual_key(_provider(model), name, naming=f"give {model.key_option} {name}")


def _refuse_missing(model: ModelSpec) -> None:
    if model.api_key_env_named:
        if not may_name_a_variable(model.api_key_env or ""):
            raise ValueError(
                f"{model.key_option} must be the name of an environment variable that is set, "
                "such as OPENAI_API_KEY; put a key itself into such a variable"
            )
        raise ValueError(
            f"{model.api_key_env} is not set: export it, or name another variable with "
            f"{model.key_option}"
        )
    if model.base_url is None and _provider(model) in NEED_A_KEY:
        name = _usual_variables(model)[0]
        raise ValueError(
            f"{name} is not set: export it, or name another variable with {model.key_option}"
            f"{_hint(model)}"
        )


def _hint(asked: ModelSpec) -> str:
    """Return why a name needs a key: it may be one of an endpoint that was not given."""
    model = asked.model
    if (url := asked.option_for("base-url")) != "--osmosis-base-url":
        return f"; {model!r} is asked at its provider unless {url} names a URL"
    if "/" in model and not _is_like_embedded(model.partition("/")[0]):
        return ""
    taken = "without --osmosis-base-url"
    if _is_like_embedded(model.partition("/")[0]):
        return f"; {taken}, {model!r} is taken for a provider's: did you mean {EMBEDDED!r}?"
    return f"; {taken}, {model!r} is taken for OpenAI's"


def _is_like_embedded(name: str) -> bool:
    from difflib import get_close_matches  # only for a mistake

    return bool(get_close_matches(name, [EMBEDDED], cutoff=0.8))
