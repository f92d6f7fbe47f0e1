"""Judging by a rubric as osmosis-ai 0.3 has it: a coroutine that returns a `RubricResult`.

The code is in `osmosis_ai.rubric`; `osmosis_ai.evaluate_rubric` is the function of 0.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..providers import judge_name
from ..rubric.errors import MissingAPIKeyError, ModelNotFoundError, ProviderRequestError
from ..rubric.evaluation import GroundTruth, aevaluate_rubric

__all__ = [
    "MissingAPIKeyError",
    "ModelNotFoundError",
    "ProviderRequestError",
    "RubricResult",
    "evaluate_rubric",
]


@dataclass
class RubricResult:
    """The verdict of a judge."""

    score: float
    """Within the bounds."""
    explanation: str
    raw: Any = None
    """The provider's reply as it came, the key removed and very long texts cut."""


async def evaluate_rubric(  # noqa: PLR0913  # as many as there are in 0.3
    *,
    solution_str: str,
    rubric: str,
    model: str,
    ground_truth: GroundTruth = None,
    original_input: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    score_min: float = 0.0,
    score_max: float = 1.0,
    api_key: str | None = None,
    timeout: float | None = None,
    system_prompt: str | None = None,
) -> RubricResult:
    """Score `solution_str` by `rubric` with `model`, such as "openai/gpt-5".

    A name without a provider is one of OpenAI, Anthropic, Gemini or xAI by its beginning (`gpt-`,
    `claude`, `gemini`, `grok`). The key is `api_key`, else that of the provider's usual variable.

    Raises what `osmosis_ai.aevaluate_rubric` does; ValueError for a name that tells no provider.
    """
    __tracebackhide__ = True
    name = judge_name(model)
    model_info = {"provider": name.provider, "model": name.model}
    if api_key is not None:
        model_info["api_key"] = api_key
    if system_prompt is not None:
        model_info["system_prompt"] = system_prompt
    details = await aevaluate_rubric(
        rubric,
        solution_str,
        model_info,
        ground_truth=ground_truth,
        original_input=original_input,
        metadata=metadata,
        score_min=score_min,
        score_max=score_max,
        timeout=timeout,
        return_details=True,
    )
    return RubricResult(details["score"], details["explanation"], details["raw"])
