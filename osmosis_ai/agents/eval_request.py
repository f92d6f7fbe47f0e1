"""The request of a rollout in a local evaluation, without pydantic, whose import takes long."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

EVAL_SERVER_URL = "http://eval.invalid"
"""The `server_url` of a local evaluation, which has no trainer: a name that cannot resolve."""


@dataclass(slots=True)
class EvalRequest:
    """Fields and methods of a `RolloutRequest`, of values that the caller has checked."""

    rollout_id: str
    messages: list[dict[str, Any]]
    completion_params: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    max_turns: int = 10
    max_tokens_total: int = 8192
    server_url: str = EVAL_SERVER_URL
    tool_server_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    idempotency_key: str | None = None

    def __getattr__(self, name: str) -> Any:
        """Return what else a `RolloutRequest` of these values has, such as `model_dump`."""
        if name.startswith("__"):
            raise AttributeError(name)
        from .request import RolloutRequest

        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return getattr(RolloutRequest.model_construct(**given), name)
