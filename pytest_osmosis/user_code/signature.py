"""What an eval function is given, read from its signature once.

    (solution_str, ground_truth, extra_info)    simple mode
    (messages, ground_truth, metadata)          full mode

The first parameter's name decides. Only what the function names is passed, all three with
`**kwargs`; what a `functools.partial` has bound stays bound. Does not call anything.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .import_object import ImportingError, kind_of

Mode = Literal["simple", "full"]
ACCEPTED = "(solution_str, ground_truth, extra_info) or (messages, ground_truth, metadata)"
_GIVEN: dict[str, tuple[Mode, tuple[str, ...]]] = {
    "solution_str": ("simple", ("solution_str", "ground_truth", "extra_info")),
    "messages": ("full", ("messages", "ground_truth", "metadata")),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a function is called."""

    mode: Mode
    positional: tuple[tuple[str | None, Any], ...]
    """For each positional-only parameter the argument's name, or None and the default."""
    keywords: tuple[str, ...]
    used: tuple[str, ...]
    """The names of all arguments that are passed."""


def plan(function: Callable[..., Any], *, named: str) -> Plan:
    """The plan of a function; ImportingError has the signature seen and the two accepted ones."""
    parameters = _parameters(function, named)
    mode, available = _GIVEN.get(next(iter(parameters), ""), (None, ()))
    if mode is None:
        raise ImportingError(
            f"{named}: takes ({_listed(parameters)}); the first parameter decides what it is "
            f"given: expected {ACCEPTED}"
        )
    left = [name for name in available if name not in _bound(function)]
    positional: list[tuple[str | None, Any]] = []
    keywords: list[str] = []
    for parameter in parameters.values():
        known = parameter.name in left
        if parameter.kind is parameter.VAR_KEYWORD:
            keywords += [name for name in left if name not in parameters]
        elif parameter.kind is parameter.VAR_POSITIONAL:
            continue
        elif not known and parameter.default is parameter.empty:
            raise ImportingError(
                f"{named}: takes ({_listed(parameters)}), and there is nothing to give for "
                f"{parameter.name!r}; expected {ACCEPTED}"
            )
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append((parameter.name, None) if known else (None, parameter.default))
        elif known:
            keywords.append(parameter.name)
    used = (*(name for name, _ in positional if name is not None), *keywords)
    return Plan(mode=mode, positional=tuple(positional), keywords=tuple(keywords), used=used)


def is_async(function: object) -> bool:
    """Whether calling it only makes a coroutine, so that the call belongs on the event loop."""
    return inspect.iscoroutinefunction(_innermost(function))


def is_generator(function: object) -> bool:
    """Whether it has a `yield`, and so can never return a score."""
    inner = _innermost(function)
    return inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)


def _innermost(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _bound(function: object) -> frozenset[str]:
    return frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset()


def _parameters(function: Callable[..., Any], named: str) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ImportingError(
            f"{named}: {kind_of(function)} has no signature to read; "
            f"wrap it in a function {ACCEPTED}"
        ) from None


def _listed(parameters: Mapping[str, inspect.Parameter]) -> str:
    bare = [parameter.replace(annotation=parameter.empty) for parameter in parameters.values()]
    return ", ".join(map(str, bare))
