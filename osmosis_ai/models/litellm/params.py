"""A call's parameters as the model may get them: nothing that LiteLLM would obey itself.

LiteLLM takes a request's fields and its own settings (`base_url`, `fallbacks`, `mock_response`,
credentials of clouds, ...) as arguments alike. What agents send are fields: one that named another
address would have the provider's key sent there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TRANSLATED = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "service_tier",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)
"""Fields of a request that LiteLLM puts into each provider's own words."""


def for_the_model(params: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for LiteLLM: known fields as they are, all others as they go over the wire."""
    known = {name: value for name, value in params.items() if name in _TRANSLATED}
    others = {name: value for name, value in params.items() if name not in _TRANSLATED}
    return {**known, "extra_body": others} if others else known
