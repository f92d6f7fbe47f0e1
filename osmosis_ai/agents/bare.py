"""The fields of a `RolloutRequest` and of `RolloutMetrics`, without pydantic until it is needed.

Each local rollout has one of both, and most agents read fields of the one and nothing of the other;
pydantic would be a third of what such a session imports. To whoever asks for more (`isinstance`,
`model_dump`, ...) a bare value is the model itself, over the same fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from .rollout_id import check_rollout_id

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .schemas import RolloutMetrics, RolloutRequest

EVAL_SERVER_URL = "http://eval.invalid"
"""The `server_url` of a local evaluation, where there is no trainer: a name that cannot resolve."""


def eval_request(
    *,
    rollout_id: str,
    messages: list[dict[str, Any]],
    completion_params: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    max_turns: int = 10,
    max_tokens_total: int = 8192,
) -> RolloutRequest:
    """The request of a local evaluation, from values that the caller has checked already.

    Only the rollout's id is checked, and nothing is copied: hand in fresh lists and dicts.
    """
    return cast(
        "RolloutRequest",
        _Request(
            rollout_id=check_rollout_id(rollout_id),
            server_url=EVAL_SERVER_URL,
            messages=messages,
            completion_params={} if completion_params is None else completion_params,
            tool_server_url=None,
            max_turns=max_turns,
            max_tokens_total=max_tokens_total,
            metadata={} if metadata is None else metadata,
            api_key=None,
            idempotency_key=None,
        ),
    )


def metrics(
    *,
    llm_latency_ms: float = 0.0,
    num_llm_calls: int = 0,
    prompt_tokens: int | None = 0,
    response_tokens: int | None = 0,
    max_context_tokens: int | None = 0,
) -> RolloutMetrics:
    """What a rollout took; its whole latency and its tools are still to be filled in."""
    return cast(
        "RolloutMetrics",
        _Metrics(
            total_latency_ms=0.0,
            llm_latency_ms=llm_latency_ms,
            tool_latency_ms=0.0,
            num_llm_calls=num_llm_calls,
            num_tool_calls=0,
            prompt_tokens=prompt_tokens,
            response_tokens=response_tokens,
            max_context_tokens=max_context_tokens,
        ),
    )


class _OfModel(type):
    """What is asked of a bare value's type is told by the model."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__") and not name.startswith("__pydantic_"):
            raise AttributeError(name)
        return getattr(cls._model(), name)


class _Bare(metaclass=_OfModel):
    """All fields of a wire model, as attributes."""

    _named = "WireModel"
    """The model, among the schemas."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            self.__dict__[name] = value
        else:
            setattr(self._whole(), name, value)  # which refuses what is no field

    @classmethod
    def _model(cls) -> type[BaseModel]:
        from . import schemas

        found: type[BaseModel] = getattr(schemas, cls._named)
        return found

    def _whole(self) -> BaseModel:
        model_class = self._model()
        model = model_class.model_construct(set(model_class.model_fields))
        object.__setattr__(model, "__dict__", self.__dict__)  # what one is told, both know
        return model

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not name.startswith("__pydantic_"):
            raise AttributeError(name)
        return getattr(self._whole(), name)

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """What `isinstance` looks at where the type itself does not fit."""
        return self._model()

    def __eq__(self, other: object) -> bool:
        return bool(self._whole() == other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """A copy, and what is unpickled, is the model."""
        return self._whole().model_copy().__reduce_ex__(protocol)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._whole())

    def __repr__(self) -> str:
        return repr(self._whole())

    def __str__(self) -> str:
        return str(self._whole())


class _Request(_Bare):
    _named = "RolloutRequest"


class _Metrics(_Bare):
    _named = "RolloutMetrics"
