"""The body of an init: bytes to a checked `RolloutRequest`, and the digest that tells bodies apart.

Unknown fields are ignored: a trainer may be newer. A refusal never repeats what it was given: the
body may hold the trainer's key.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import ValidationError

from ...agents.request import RolloutRequest
from ...secret import Secret, check_api_key
from .messages import Refused

_FIELDS = frozenset(RolloutRequest.model_fields)
_SHOWN_PROBLEMS = 20
_TOO_DEEP = "the body is nested too deeply"


@dataclass(frozen=True, slots=True)
class Init:
    """What an init asks for."""

    request: RolloutRequest
    key: Secret | None
    """The bearer key for calls back to the trainer."""
    identity: str
    """Two inits with the same identity are the same one, or a conflict."""
    digest: str
    """Of the fields that are known but the key, whatever their order and spelling."""
    size: int


def read_init(body: bytes) -> Init:
    """Return the init in `body`; raise Refused with status 422."""
    data = _load(body)
    data = {name: value for name, value in data.items() if name in _FIELDS}
    try:
        request = RolloutRequest.model_validate(data)
    except ValidationError as error:
        raise _invalid("the body is no RolloutRequest", _problems(error)) from None
    named = request.idempotency_key
    identity = f"id {request.rollout_id}" if named is None else f"key {named}"
    data.pop("api_key", None)  # the same rollout, whatever key it is reported with
    return Init(request, _key(request.api_key), identity, _digest(data), len(body))


def _digest(data: dict[str, Any]) -> str:
    try:
        canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise _invalid(_TOO_DEEP) from None
    return sha256(canonical.encode("ascii")).hexdigest()


def _load(body: bytes) -> dict[str, Any]:
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    except RecursionError:
        raise _invalid(_TOO_DEEP) from None
    except ValueError:  # not UTF-8, not JSON, or a number of too many digits
        raise _invalid("the body is not JSON in UTF-8 with finite numbers") from None
    if not isinstance(data, dict):
        raise _invalid("the body is not a JSON object")
    return data


def _no_number(name: str) -> None:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("too large")
    return number


def _key(value: str | None) -> Secret | None:
    if value is None:
        return None
    try:
        return check_api_key(value, "api_key")
    except ValueError as error:
        raise _invalid(str(error)) from None


def _problems(error: ValidationError) -> list[dict[str, str]]:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        {"field": ".".join(map(str, problem["loc"])), "problem": problem["msg"]}
        for problem in problems[:_SHOWN_PROBLEMS]
    ]


def _invalid(message: str, details: Any = None) -> Refused:
    return Refused(422, "invalid", message, details=details)
