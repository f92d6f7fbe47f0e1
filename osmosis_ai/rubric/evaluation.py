"""`evaluate_rubric` and `aevaluate_rubric`: arguments checked, one judge opened, asked, closed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from ..blocking import run_blocking
from .prompt import Case
from .reasons import add_reason
from .settings import MAX_VOTES, judge_settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .judge import RewardRubricRunResult

GroundTruth = str | list[Any] | dict[str, Any] | bool | None
"""Text as it is; the judge is shown the JSON of anything else."""


class _Options(TypedDict, total=False):
    ground_truth: GroundTruth
    original_input: str | None
    metadata: Mapping[str, Any] | None
    score_min: float | None
    score_max: float | None
    timeout: float | None
    votes: int


@overload
def evaluate_rubric(
    rubric: str,
    solution_str: str,
    model_info: Mapping[str, Any],
    *,
    return_details: Literal[False] = ...,
    **options: Unpack[_Options],
) -> float: ...


@overload
def evaluate_rubric(
    rubric: str,
    solution_str: str,
    model_info: Mapping[str, Any],
    *,
    return_details: Literal[True],
    **options: Unpack[_Options],
) -> RewardRubricRunResult: ...


def evaluate_rubric(
    rubric: str,
    solution_str: str,
    model_info: Mapping[str, Any],
    *,
    return_details: bool = False,
    **options: Unpack[_Options],
) -> float | RewardRubricRunResult:
    """Score `solution_str` by `rubric`, as `aevaluate_rubric` does, and wait for it.

    Inside a running event loop it blocks that loop: await `aevaluate_rubric` there.
    """
    __tracebackhide__ = True
    work = aevaluate_rubric(rubric, solution_str, model_info, return_details=True, **options)
    details = run_blocking(work)
    return details if return_details else details["score"]


@overload
async def aevaluate_rubric(
    rubric: str,
    solution_str: str,
    model_info: Mapping[str, Any],
    *,
    return_details: Literal[False] = ...,
    **options: Unpack[_Options],
) -> float: ...


@overload
async def aevaluate_rubric(
    rubric: str,
    solution_str: str,
    model_info: Mapping[str, Any],
    *,
    return_details: Literal[True],
    **options: Unpack[_Options],
) -> RewardRubricRunResult: ...


async def aevaluate_rubric(  # noqa: PLR0913  # the contract has this many
    rubric: str,
    solution_str: str,
    model_info: Mapping[str, Any],
    *,
    ground_truth: GroundTruth = None,
    original_input: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    score_min: float | None = None,
    score_max: float | None = None,
    timeout: float | None = None,
    votes: int = 1,
    return_details: bool = False,
) -> float | RewardRubricRunResult:
    """Score `solution_str` by `rubric`: a float within the bounds, or a mapping with the details.

    `model_info` names `provider` and `model`, and may hold `api_key` or `api_key_env`, `api_base`,
    `score_min` and `score_max` (0.0 and 1.0), `system_prompt`, `original_input` and `timeout`
    (seconds for one request, 60; a judgement with its retries gets three times as long). With
    `votes` the judge is asked so many times and the median counts.

    Raises TypeError and ValueError for wrong arguments, MissingAPIKeyError before any request,
    ProviderRequestError when no verdict could be had, ModelNotFoundError for an unknown model.
    """
    __tracebackhide__ = True
    settings = judge_settings(
        model_info,
        original_input=original_input,
        score_min=score_min,
        score_max=score_max,
        timeout=timeout,
    )
    for name, text in {"rubric": rubric, "solution_str": solution_str}.items():
        if not isinstance(text, str):
            raise TypeError(f"{name} must be a string, not {type(text).__name__}")
    if not rubric.strip():
        raise ValueError("rubric is empty: say what the judge is to look for")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a mapping, not {type(metadata).__name__}")
    check_votes(votes)
    case = Case(
        rubric=rubric,
        candidate=solution_str,
        score_min=settings.score_min,
        score_max=settings.score_max,
        ground_truth=_reference(ground_truth),
        original_input=settings.original_input,
        metadata=metadata,
        system_prompt=settings.system_prompt,
    )
    from .judge import judge, reason_of  # brings the model side, which a mere import must not cost

    details = await judge(settings, case, votes=votes)
    clamped = sum(vote["clamped"] for vote in details["votes"])
    add_reason(reason_of(details), clamped=clamped, rubric=rubric)
    return details if return_details else details["score"]


evaluate_rubric.__signature__ = inspect.signature(aevaluate_rubric)  # type: ignore[attr-defined]


def _reference(truth: GroundTruth) -> str | None:
    if truth is None or isinstance(truth, str):
        return truth
    if not isinstance(truth, (list, dict, bool)):
        kind = type(truth).__name__
        raise TypeError(f"ground_truth must be a string, list, dict, bool or None, not {kind}")
    try:
        return json.dumps(truth, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"ground_truth cannot be written as JSON: {error}") from None


def check_votes(votes: int) -> None:
    """Raise TypeError or ValueError unless a judge can be asked so often."""
    if isinstance(votes, bool) or not isinstance(votes, int):
        raise TypeError(f"votes must be an integer, not {type(votes).__name__}")
    if not 1 <= votes <= MAX_VOTES:
        raise ValueError(f"votes must be from 1 to {MAX_VOTES}, not {votes}")
