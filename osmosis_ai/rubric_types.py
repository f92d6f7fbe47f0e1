"""The import path that existing projects use; the code is in `osmosis_ai.rubric`."""

from __future__ import annotations

from .rubric.errors import MissingAPIKeyError, ModelNotFoundError, ProviderRequestError
from .rubric.judge import RewardRubricRunResult
from .rubric.settings import ModelInfo

__all__ = [
    "MissingAPIKeyError",
    "ModelInfo",
    "ModelNotFoundError",
    "ProviderRequestError",
    "RewardRubricRunResult",
]
