"""The results of `osmosis test` as the JSON document that `--output` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CommandError

if TYPE_CHECKING:
    from .rollouts import TrialResult


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is run; make its folder."""
    from pytest_osmosis.storage.atomic_write import check_writable

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_writable(path)
    except OSError as error:
        raise CommandError(
            f"-o/--output {path}: {error.strerror or error}", code="usage", status=2
        ) from None


def write_document(path: Path, ended: Sequence[TrialResult]) -> None:
    """Write the results whole, or say that they cannot be written."""
    from pytest_osmosis.storage.atomic_write import write_whole

    text = json.dumps(_document(ended), ensure_ascii=True, allow_nan=False, indent=2) + "\n"
    try:
        write_whole(path, text.encode("ascii"))
    except OSError as error:
        raise CommandError(
            f"cannot write {path}: {error.strerror or error}", code="not_written"
        ) from None


def _document(ended: Sequence[TrialResult]) -> dict[str, Any]:
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
