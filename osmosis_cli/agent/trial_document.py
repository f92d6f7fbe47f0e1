"""The results of `osmosis test` as the JSON document that `--output` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rollouts import TrialResult


def results_document(ended: Sequence[TrialResult]) -> dict[str, Any]:
    """Return the document of these results."""
    passed = sum(one.status == "COMPLETED" for one in ended)
    return {
        "summary": {
            "total": len(ended),
            "passed": passed,
            "failed": len(ended) - passed,
            "total_duration_ms": sum(_milliseconds(one) for one in ended),
            "total_tokens": sum(one.tokens or 0 for one in ended),
        },
        "results": [_result(one) for one in ended],
    }


def _result(one: TrialResult) -> dict[str, Any]:
    return {
        "row_index": one.row_index,
        "row": one.row,
        "success": one.status == "COMPLETED",
        "error": one.error,
        "duration_ms": _milliseconds(one),
        "token_usage": {
            "prompt_tokens": one.prompt_tokens,
            "completion_tokens": one.completion_tokens,
            "total_tokens": one.tokens,
            "num_llm_calls": one.model_calls,
        },
        "tool_calls": one.tool_calls,
        "reward": one.reward,
        "finish_reason": one.finish_reason,
        "answer": one.answer,
    }


def _milliseconds(one: TrialResult) -> int:
    return round(one.duration_s * 1000)
