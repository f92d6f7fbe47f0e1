"""`@osmosis_reward` and `@osmosis_rubric`: functions that score, held to one signature.

The signature is checked when a function is decorated, what it returns when it is called; a rubric's
arguments are checked before it runs. This module knows neither who calls the functions nor how a
judge is asked. No message of it holds a value of `extra_info`: keys travel there.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin

from .secret import Secret

F = TypeVar("F", bound=Callable[..., Any])

_NONE: type = type(None)
_MISSING = inspect.Parameter.empty
_OF_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def osmosis_reward(func: F) -> F:
    """Mark a reward: `(solution_str: str, ground_truth: str, extra_info: dict = None) -> float`.

    Further parameters with a default may follow; `async def`, methods and partials work too.
    TypeError when the signature differs, and at the call when what is returned is not a float.
    """
    decorated: F = _decorate(func, "@osmosis_reward", _REWARD)
    return decorated


def osmosis_rubric(func: F) -> F:
    """Mark a rubric: `(solution_str: str, ground_truth: str | None, extra_info: dict) -> float`.

    As `osmosis_reward`, and at the call TypeError or ValueError unless the texts are texts and
    `extra_info`, once it names any of them, has a provider, a model, a rubric, and an api_key or
    api_key_env; one that names none is the function's affair.
    """
    decorated: F = _decorate(func, "@osmosis_rubric", _RUBRIC)
    return decorated


# What a signature must be.


_Union = frozenset[type]
"""The types that an annotation may be; dict stands for any dict[...]."""
_STR, _DICT = frozenset({str}), frozenset({dict})
_EXPECTED: dict[str, tuple[_Union, ...]] = {
    "solution_str: str": (_STR,),
    "ground_truth: str": (_STR,),
    "ground_truth: str | None": (_STR, _STR | {_NONE}),
    "extra_info: dict = None": (_DICT, _DICT | {_NONE}),
    "extra_info: dict": (_DICT,),
}
"""What a parameter must be, and which annotations are that."""
_REWARD = ("solution_str: str", "ground_truth: str", "extra_info: dict = None")
_RUBRIC = ("solution_str: str", "ground_truth: str | None", "extra_info: dict")


# Decorating.


def _decorate(func: Any, decorator: str, contract: tuple[str, ...]) -> Any:
    if isinstance(func, (staticmethod, classmethod)):
        return type(func)(_decorate(func.__func__, decorator, contract))
    title = f"{decorator} {_name(func)}"
    if not callable(func) or isinstance(func, type):
        raise TypeError(f"{title}: expected a function, found {type(func).__name__}")
    signature = inspect.signature(func)
    _check_signature(func, signature, contract, title)
    check = _rubric_check(signature, title) if contract is _RUBRIC else None

    @functools.wraps(func)
    def scored(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("data_source", None)
        if check is not None:
            check(*args, **kwargs)
        score = func(*args, **kwargs)
        return _awaited(score, title) if inspect.isawaitable(score) else _checked(score, title)

    @functools.wraps(func)
    async def scored_async(*args: Any, **kwargs: Any) -> Any:
        return await scored(*args, **kwargs)

    return scored_async if _is_async(func) else scored


async def _awaited(score: Awaitable[Any], title: str) -> float:
    return _checked(await score, title)


def _checked(score: Any, title: str) -> float:
    if isinstance(score, float):
        return score
    raise TypeError(f"{title}: must return a float, returned {_type_name(score)}")


def _is_async(func: Any) -> bool:
    call = getattr(type(func), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(call)


# Checking a signature.


def _check_signature(
    func: Any, signature: inspect.Signature, contract: tuple[str, ...], title: str
) -> None:
    if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
        raise TypeError(f"{title}: must return a float, is a generator")
    parameters = _without_self(list(signature.parameters.values()))
    names = [rule.partition(":")[0] for rule in contract]
    for position, (name, rule) in enumerate(zip(names, contract, strict=True)):
        if position >= len(parameters):
            raise TypeError(f"{title}: parameter {name!r} is missing; expected `{rule}`")
        if problem := _parameter_problem(func, parameters[position], name, rule):
            raise TypeError(f"{title}: parameter {position + 1} must be `{rule}`, {problem}")
    for further in parameters[len(contract) :]:
        if further.default is _MISSING and further.kind not in _OF_ANY_NUMBER:
            given = ", ".join(names)
            raise TypeError(
                f"{title}: parameter {further.name!r} must have a default; expected a function "
                f"that can be called with {given} alone"
            )
    returned = signature.return_annotation
    if returned is not _MISSING and not _matches(func, returned, (frozenset({float}),)):
        raise TypeError(
            f"{title}: the return annotation must be float, found {_annotation_text(returned)}"
        )


def _without_self(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """A method is decorated in its class body, where `self` is a parameter like any other."""
    first = parameters[0] if parameters else None
    if first is not None and first.name in ("self", "cls") and first.annotation is _MISSING:
        return parameters[1:]
    return parameters


def _parameter_problem(func: Any, parameter: inspect.Parameter, name: str, rule: str) -> str | None:
    """What is wrong with one parameter, as the end of a sentence."""
    needs_none = rule.endswith("= None")
    if parameter.name != name:
        return f"found {parameter.name!r}"
    if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return f"found {name!r} as {parameter.kind.description}"
    if parameter.annotation is _MISSING:
        return f"{name!r} has no annotation"
    if not _matches(func, parameter.annotation, _EXPECTED[rule]):
        return f"{name!r} is annotated {_annotation_text(parameter.annotation)}"
    if needs_none and parameter.default is not None:
        what = (
            "no default" if parameter.default is _MISSING else f"the default {parameter.default!r}"
        )
        return f"{name!r} has {what}"
    if not needs_none and parameter.default is not _MISSING:
        return f"{name!r} must not have a default"
    return None


def _matches(func: Any, annotation: Any, allowed: tuple[frozenset[type], ...]) -> bool:
    resolved = _resolved(func, annotation)
    members = (
        get_args(resolved) if get_origin(resolved) in (Union, types.UnionType) else (resolved,)
    )
    return frozenset(get_origin(member) or member for member in members) in allowed


def _resolved(func: Any, annotation: Any) -> Any:
    """The type behind an annotation that is text, as under `from __future__ import annotations`."""
    if not isinstance(annotation, str):
        return annotation
    code = _plain_function(func)
    closure = inspect.getclosurevars(code).nonlocals if code is not None else {}
    scope = getattr(code, "__globals__", {})
    holder = type("Holder", (), {"__annotations__": {"it": annotation}})
    try:
        return typing.get_type_hints(holder, globalns=scope, localns=dict(closure))["it"]
    except (NameError, AttributeError, TypeError, SyntaxError):
        # A name that only type checkers see cannot be one of the types asked for.
        return annotation


def _plain_function(func: Any) -> types.FunctionType | None:
    """The function whose module's names an annotation is written in."""
    while isinstance(func, functools.partial):
        func = func.func
    func = inspect.unwrap(func)
    func = getattr(func, "__func__", func)
    if not isinstance(func, types.FunctionType):
        func = getattr(type(func), "__call__", None)  # noqa: B004
    return func if isinstance(func, types.FunctionType) else None


# Checking a rubric's call.


def _rubric_check(signature: inspect.Signature, title: str) -> Callable[..., None]:
    def check(*args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as exc:
            raise TypeError(f"{title}: {exc}") from None
        _check_rubric_arguments(given, title)

    return check


def _check_rubric_arguments(given: Mapping[str, Any], title: str) -> None:
    for name, kind, expected in _RUBRIC_TYPES:
        if not isinstance(given[name], kind):
            found = _type_name(given[name])
            raise TypeError(f"{title}: {name} must be {expected}, not {found}")
    info = given["extra_info"]
    if not info.keys() & {*_JUDGE, *_KEYS}:
        return  # the function has its own configuration
    missing = [name for name in _JUDGE if not _is_text(info.get(name))]
    if not _names_key(info):
        missing.append("api_key or api_key_env")
    if missing:
        raise ValueError(f"{title}: extra_info needs a non-empty {', a non-empty '.join(missing)}")
    for name, expected, fits in _OPTIONAL:
        if info.get(name) is not None and not fits(info[name]):
            found = _type_name(info[name])
            raise ValueError(f"{title}: extra_info[{name!r}] must be {expected}, not {found}")
    low, high = info.get("score_min"), info.get("score_max")
    if low is not None and high is not None and low >= high:
        raise ValueError(
            f"{title}: extra_info['score_min'] ({low:g}) must be below 'score_max' ({high:g})"
        )


def _is_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


_RUBRIC_TYPES: tuple[tuple[str, Any, str], ...] = (
    ("solution_str", str, "a str"),
    ("ground_truth", str | list | dict | bool | None, "a str, list, dict, bool or None"),
    ("extra_info", dict, "a dict"),
)
_JUDGE = ("provider", "model", "rubric")
_KEYS = ("api_key", "api_key_env")
_OPTIONAL: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("score_min", "a finite number", _is_number),
    ("score_max", "a finite number", _is_number),
    ("system_prompt", "a str", lambda value: isinstance(value, str)),
    ("model_info_overrides", "a dict", lambda value: isinstance(value, Mapping)),
)


def _names_key(info: Mapping[str, Any]) -> bool:
    overrides = info.get("model_info_overrides")
    places = [info, overrides] if isinstance(overrides, Mapping) else [info]
    return any(_is_text(place.get(name)) for place in places for name in _KEYS)


def _is_text(value: Any) -> bool:
    if isinstance(value, Secret):
        value = value.reveal()
    return isinstance(value, str) and bool(value.strip())


# Naming things in messages.


def _name(func: Any) -> str:
    if isinstance(func, functools.partial):
        return _name(func.func)
    name = getattr(func, "__qualname__", None) or type(func).__qualname__
    return str(name).rpartition("<locals>.")[2]


def _annotation_text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _type_name(value: Any) -> str:
    return "None" if value is None else type(value).__name__
