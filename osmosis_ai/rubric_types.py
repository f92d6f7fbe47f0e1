"""The import path that existing projects use; the code is in `osmosis_ai.rubric`."""

from __future__ import annotations

from typing import TypedDict

from .rubric.errors import MissingAPIKeyError, ModelNotFoundError, ProviderRequestError
from .rubric.judge import RewardRubricRunResult

__all__ = [
    "MissingAPIKeyError",
    "ModelInfo",
    "ModelNotFoundError",
    "ProviderRequestError",
    "RewardRubricRunResult",
]


class ModelInfo(TypedDict, total=False):
    """Who judges, with which key, within which bounds: the `model_info` of `evaluate_rubric`."""

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
