"""Judging a text by a rubric, with a provider's model as the judge.

`evaluate_rubric` and its twin `aevaluate_rubric` are the way in; `errors` holds what they raise.
"""

from __future__ import annotations

from .errors import MissingAPIKeyError, ModelNotFoundError, ProviderRequestError
from .evaluation import aevaluate_rubric, evaluate_rubric

__all__ = [
    "MissingAPIKeyError",
    "ModelNotFoundError",
    "ProviderRequestError",
    "aevaluate_rubric",
    "evaluate_rubric",
]
