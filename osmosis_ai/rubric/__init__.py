"""Judging a text by a rubric, with a provider's model as the judge.

Use `evaluate_rubric` or its async twin `aevaluate_rubric`; `errors` defines what they raise. Names
are imported when they are first used: an evaluation that judges nothing needs only `reasons`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` itself costs 8 ms

if TYPE_CHECKING:
    from typing import Any

    from .errors import MissingAPIKeyError, ModelNotFoundError, ProviderRequestError
    from .evaluation import aevaluate_rubric, evaluate_rubric

__all__ = [
    "MissingAPIKeyError",
    "ModelNotFoundError",
    "ProviderRequestError",
    "aevaluate_rubric",
    "evaluate_rubric",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = ".evaluation" if name.endswith("evaluate_rubric") else ".errors"
    return getattr(import_module(home, __name__), name)
