"""The conversation of a run as an ATIF document: Agent Trajectory Interchange Format.

https://www.harborframework.com/docs/agents/trajectory-format: steps of system, user and agent;
results of tools are observations of the step that called them. What has no place there stands in
`extra`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osmosis_ai import __version__
from osmosis_ai.messages import text_of

from ...run_result import RolloutRecord, RunResult

SCHEMA_VERSION = "ATIF-v1.4"
_SOURCES = {"system": "system", "developer": "system", "assistant": "agent", "user": "user"}
_METRICS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")


def rollout_id_of(run: RunResult) -> str:
    """Return what a run's rollout is called wherever it is named."""
    return f"eval-{run.row_index}-run-{run.run_index}"


def trajectory(run: RunResult, record: RolloutRecord, *, reward: float | None) -> dict[str, Any]:
    """Return the document."""
    rollout_id = rollout_id_of(run)
    steps = _steps(record.messages)
    of_agent = [step for step in steps if step["source"] == "agent"]
    calls = [_metrics(call) for call in record.calls]
    left_over = None
    if len(calls) == len(of_agent):
        for step, call, metrics in zip(of_agent, record.calls, calls, strict=True):
            step.update(
                _without_nulls({"metrics": metrics or None, "model_name": call.get("model")})
            )
    else:
        left_over = calls or None  # which call made which step is not known
    osmosis = {
        "rollout_id": rollout_id,
        "row_id": run.row_id,
        "label": record.ground_truth,
        "reward": reward,
        "error": run.error,
        "llm_calls": left_over,
    }
    totals = {
        "total_prompt_tokens": run.prompt_tokens,
        "total_completion_tokens": run.completion_tokens,
        "total_cached_tokens": run.cached_tokens,
        "total_cost_usd": run.cost_usd,
        "total_steps": len(steps),
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": rollout_id,
        "agent": {"name": "pytest-osmosis", "version": __version__, "model_name": run.model},
        "steps": steps,
        "final_metrics": _without_nulls(totals),
        "extra": {"osmosis": _without_nulls(osmosis)},
    }


def _steps(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for message in messages:
        role = str(message.get("role", ""))
        if role in ("tool", "function"):
            _observe(steps, message)
            continue
        step: dict[str, Any] = {
            "step_id": len(steps) + 1,
            "source": _SOURCES.get(role, "user"),
            "message": _text(message.get("content")),
        }
        if role not in _SOURCES:
            step["extra"] = {"original_role": role}
        if step["source"] == "agent":
            if reasoning := message.get("reasoning_content") or message.get("reasoning"):
                step["reasoning_content"] = _text(reasoning)
            if calls := list(_tool_calls(message.get("tool_calls"))):
                step["tool_calls"] = calls
        steps.append(step)
    return steps


def _observe(steps: list[dict[str, Any]], message: Mapping[str, Any]) -> None:
    """Add a tool's result to the step that called it, the last one; else to one of its own."""
    call_id = message.get("tool_call_id")
    last = steps[-1] if steps and steps[-1]["source"] == "agent" else None
    known = [] if last is None else [call["tool_call_id"] for call in last.get("tool_calls", ())]
    result: dict[str, Any] = {"content": _text(message.get("content"))}
    if call_id in known:
        result["source_call_id"] = call_id
    if last is None:
        last = {"step_id": len(steps) + 1, "source": "system", "message": ""}
        last["extra"] = {"original_role": "tool", **_without_nulls({"tool_call_id": call_id})}
        steps.append(last)
    last.setdefault("observation", {"results": []})["results"].append(result)


def _tool_calls(calls: Any) -> Iterator[dict[str, Any]]:
    for position, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield {
                "tool_call_id": str(call.get("id") or f"call_{position}"),
                "function_name": str(function.get("name") or "unknown"),
                "arguments": _arguments(function.get("arguments")),
            }


def _arguments(given: Any) -> dict[str, Any]:
    """Return the arguments of a call as an object; what is none stands in it as it came."""
    if not given:
        return {}
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
        json.dumps(parsed, allow_nan=False)  # NaN and 1e999 are not JSON
    except (ValueError, TypeError, RecursionError):
        parsed = None
    return dict(parsed) if isinstance(parsed, Mapping) else {"_raw": str(given)}


def _text(content: Any) -> str:
    """Return content as text: of parts that are all text their texts, of others their JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    if all(isinstance(part, Mapping) and part.get("type") == "text" for part in parts):
        return text_of(content)
    return json.dumps(content, ensure_ascii=False)


def _metrics(call: Mapping[str, Any]) -> dict[str, Any]:
    return _without_nulls({name: call.get(name) for name in _METRICS})


def _without_nulls(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
