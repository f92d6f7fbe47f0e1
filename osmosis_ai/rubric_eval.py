"""The import path that existing projects use; the code is in `osmosis_ai.rubric`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .providers import key_variables
from .rubric.errors import MissingAPIKeyError
from .rubric.evaluation import aevaluate_rubric, evaluate_rubric
from .rubric.judge import RewardRubricRunResult
from .rubric.settings import DEFAULT_TIMEOUT_S, ModelInfo, judge_settings

__all__ = [
    "DEFAULT_API_KEY_ENV",
    "DEFAULT_REQUEST_TIMEOUT_SECONDS",
    "MissingAPIKeyError",
    "ModelInfo",
    "RewardRubricRunResult",
    "aevaluate_rubric",
    "ensure_api_key_available",
    "evaluate_rubric",
]

DEFAULT_REQUEST_TIMEOUT_SECONDS = DEFAULT_TIMEOUT_S
DEFAULT_API_KEY_ENV: Mapping[str, str] = {
    provider: key_variables(provider)[0]
    for provider in ("openai", "anthropic", "gemini", "xai", "openrouter", "cerebras")
}
"""The variable that holds the key of each of the usual providers."""


def ensure_api_key_available(model_info: Mapping[str, Any]) -> None:
    """Raise MissingAPIKeyError unless there is a key for the judge; sends nothing."""
    judge_settings(model_info)
