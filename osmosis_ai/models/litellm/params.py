"""The parameters of a call as LiteLLM may get them: fields of the request, no settings.

LiteLLM takes a request's fields and its own settings (`base_url`, `fallbacks`, `mock_response`,
credentials of clouds, ...) as arguments alike. Agents send fields: one that named another address
would send the provider's key there.
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
"""Fields of a request that LiteLLM translates for each provider."""


def for_the_model(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for LiteLLM: known fields as they are, others in `extra_body`."""
    known = {name: value for name, value in params.items() if name in _TRANSLATED}
    others = {name: value for name, value in params.items() if name not in _TRANSLATED}
    return {**known, "extra_body": others} if others else known
