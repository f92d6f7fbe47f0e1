"""The eval functions that an option names, checked before any rollout starts.

Knows which callables can be eval functions; does not call them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path

from .classify_agent import instantiated
from .eval_function import EvalFn
from .import_mistakes import ImportingError, kind_of
from .import_object import load_object
from .signature import ACCEPTED, is_async, is_generator, plan


def load_eval_fns(
    specs: Iterable[str], *, option: str, roots: Sequence[Path]
) -> tuple[EvalFn, ...]:
    """The eval functions that an option names, in order; ImportingError says what is wrong."""
    names = [spec.strip() for spec in specs]
    refuse_double(names, option=option)
    return tuple(
        eval_fn(load_object(name, option=option, roots=roots), name=name, option=option)
        for name in names
    )


def refuse_double(names: Sequence[str], *, option: str) -> None:
    """ImportingError when a function is named twice: both would have the one name in a report."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ImportingError(f"{option} {name!r}: given twice; name each eval function once")


def eval_fn(function: object, *, name: str, option: str) -> EvalFn:
    """The EvalFn of a callable; ImportingError says why it cannot be one."""
    named = f"{option} {name!r}"
    if inspect.isclass(function) and any("__call__" in vars(base) for base in function.__mro__):
        function = instantiated(function, spec=name, option=option)
    if inspect.isclass(function) or not callable(function):
        raise ImportingError(f"{named}: is {kind_of(function)}; expected a function {ACCEPTED}")
    if is_generator(function):
        raise ImportingError(f"{named}: is a generator (it has `yield`); return the score instead")
    return EvalFn(name, function, is_async(function), plan(function, named=named))
