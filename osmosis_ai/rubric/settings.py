"""`model_info` -> whom to ask, with which key, within which bounds and times.

Checks every value and says which is wrong; sends nothing. The key is resolved here, before any
request: `api_key`, else the variable named by `api_key_env`, else the provider's usual one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from ..models.transport import cassettes
from ..providers import ModelName, key_from_environment, key_variables
from ..secret import Secret, check_api_key, mask_everywhere
from ..secret_variables import may_name_a_variable
from .errors import MissingAPIKeyError

DEFAULT_TIMEOUT_S = 60.0
MAX_VOTES = 101

PARAMS = ("temperature", "top_p", "max_tokens", "seed", "reasoning_effort", "api_version")
"""Keys of `model_info` that are handed to the provider as they are."""


class ModelInfo(TypedDict, total=False):
    """The `model_info` of `evaluate_rubric`: the judge, its key and its bounds."""

    provider: str
    model: str
    api_key: str
    api_key_env: str
    api_base: str
    score_min: float
    score_max: float
    system_prompt: str | None
    original_input: str | None
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """Everything about the judge that a rubric's author decides."""

    name: ModelName
    api_key: Secret | None
    """None only for providers that need no key of their own."""
    api_base: str | None
    score_min: float
    score_max: float
    timeout_s: float
    """For one request; a judgement with its retries and waits gets at most three times as much."""
    system_prompt: str | None
    original_input: str | None
    params: Mapping[str, Any]


def judge_settings(
    model_info: Mapping[str, Any], *, needs_key: bool = True, **arguments: Any
) -> JudgeSettings:
    """Return the settings in `model_info`; raise TypeError, ValueError or MissingAPIKeyError.

    `arguments` are those of a call: each that is not None wins over that of `model_info`. Without
    `needs_key` a missing key is no error: no judge is asked with such settings.
    """
    if not isinstance(model_info, Mapping):
        raise TypeError(f"model_info must be a mapping, not {type(model_info).__name__}")
    given = {name: value for name, value in arguments.items() if value is not None}
    model_info = {**_overridden(model_info), **given}
    name = _name(model_info)
    low = _number("score_min", model_info, 0.0)
    high = _number("score_max", model_info, 1.0)
    if low >= high:
        raise ValueError(f"score_min ({low:g}) must be below score_max ({high:g})")
    timeout_s = _number("timeout", model_info, DEFAULT_TIMEOUT_S)
    if timeout_s <= 0:
        raise ValueError(f"timeout must be above 0 seconds, not {timeout_s:g}")
    key = None
    try:
        key = _key(name, model_info)
    except MissingAPIKeyError:
        if needs_key:
            raise
    return JudgeSettings(
        name=name,
        api_key=key,
        api_base=_text(model_info, "api_base"),
        score_min=low,
        score_max=high,
        timeout_s=timeout_s,
        system_prompt=_text(model_info, "system_prompt"),
        original_input=_text(model_info, "original_input"),
        params={k: model_info[k] for k in PARAMS if model_info.get(k) is not None},
    )


def _overridden(model_info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `model_info` with its own `model_info_overrides` put in, as a rubric function has it.

    A key goes where a variable is named in its place.
    """
    given = model_info.get("model_info_overrides")
    if given is None:
        return model_info
    if not isinstance(given, Mapping):
        raise TypeError(
            f"model_info['model_info_overrides'] must be a mapping, not {type(given).__name__}"
        )
    before = {key: value for key, value in model_info.items() if key != "model_info_overrides"}
    if "api_key_env" in given:
        before.pop("api_key", None)
    return {**before, **given}


def _name(model_info: Mapping[str, Any]) -> ModelName:
    provider = _required(model_info, "provider").lower()
    model = _required(model_info, "model").removeprefix(f"{provider}/")
    if "embedded" in (provider, model) and not model_info.get("api_base"):
        raise ValueError(
            "the embedded model cannot judge: name a judge by provider and model, such as "
            "openai/gpt-5-mini, or a server of your own by hosted_vllm/NAME and its api_base"
        )
    return ModelName(provider, model)


def _required(model_info: Mapping[str, Any], key: str) -> str:
    value = model_info.get(key)
    if isinstance(value, str) and value.strip():
        return value.strip()
    if value is None:
        raise TypeError(f"model_info has no {key!r}: name the judge's {key}")
    given = "an empty one" if isinstance(value, str) else type(value).__name__
    raise TypeError(f"model_info[{key!r}] must be a non-empty string, not {given}")


def _text(model_info: Mapping[str, Any], key: str) -> str | None:
    value = model_info.get(key)
    if value is None or isinstance(value, str):
        return value or None
    raise TypeError(f"{key} must be a string, not {type(value).__name__}")


def _number(name: str, model_info: Mapping[str, Any], default: float) -> float:
    value = model_info.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, not {number}")
    return number


def _key(name: ModelName, model_info: Mapping[str, Any]) -> Secret | None:
    given = model_info.get("api_key")
    if isinstance(given, Secret):
        given = given.reveal()
    if given is not None and not isinstance(given, str):
        raise TypeError(f"model_info['api_key'] must be a string, not {type(given).__name__}")
    if given and given.strip():
        return _usable(Secret(given, "model_info['api_key']"))
    if cassettes.needs_no_key():
        return None
    variable = _text(model_info, "api_key_env")
    if variable is not None:
        return _usable(_named(name, variable.strip()))
    key = key_from_environment(name.provider)
    if key is not None:
        if not model_info.get("api_base"):
            _refuse_plain_http(name, key.name)
        return _usable(key)
    usual = key_variables(name.provider)
    if usual:
        raise MissingAPIKeyError(_missing(name, usual[0]))
    return None


def _named(name: ModelName, variable: str) -> Secret:
    value = os.environ.get(variable, "")
    if value.strip():
        return Secret(value, variable)
    if not may_name_a_variable(variable):
        raise MissingAPIKeyError(
            "model_info['api_key_env'] must be the name of an environment variable that is set, "
            "such as OPENAI_API_KEY; a key itself goes into model_info['api_key']"
        )
    raise MissingAPIKeyError(_missing(name, variable))


def _refuse_plain_http(name: ModelName, variable: str) -> None:
    from ..models.transport.base_url import check_usual_key  # settings alone cost little to import

    naming = f'set model_info["api_key_env"] to "{variable}"'
    try:
        check_usual_key(name.provider, variable, naming=naming)
    except ValueError as error:
        raise MissingAPIKeyError(str(error)) from None


def _usable(key: Secret) -> Secret:
    mask_everywhere(key)  # it may stand in a line of code that a traceback shows
    try:
        return check_api_key(key.reveal(), key.name)
    except ValueError as error:
        raise MissingAPIKeyError(str(error)) from None


def _missing(name: ModelName, variable: str) -> str:
    return (
        f"no API key for {name.provider}: the environment variable {variable} is not set. "
        f'Run: export {variable}="..." (or name another variable in model_info["api_key_env"])'
    )
