"""Fields of requests: bodies, queries and pages of lists; what is wrong, by field and rule only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from osmosis_ai.platform.config_models import broken_rule

from ..errors import Refused

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_RULES: Mapping[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
}


def refusal(error: ValidationError, *, code: str = "invalid") -> Refused:
    """Return one refusal for all problems, the first in the message."""
    problems = [
        (field_path(found["loc"]), _rule(found))
        for found in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return refused_fields(problems, code=code)


def refused_fields(problems: Sequence[tuple[str, str]], *, code: str = "invalid") -> Refused:
    """Return one refusal for fields, each with what is wrong with it."""
    field, rule = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    details = [{"field": field, "problem": rule} for field, rule in problems[:50]]
    return Refused(
        422,
        code,
        f"{field or 'the body'}: {rule}{more}",
        field=field or None,
        details={"problems": details},
    )


def field_path(location: Sequence[int | str]) -> str:
    """Return the path of a field; a name that is no plain word may be a value in its place."""
    shown = [
        part if not isinstance(part, int) and _FIELD.fullmatch(part) else _unnamed(part)
        for part in location
    ]
    return ".".join(str(part) for part in shown)


def _unnamed(part: int | str) -> str:
    return str(part) if isinstance(part, int) else "(a name)"


def _rule(found: ErrorDetails) -> str:
    if found["type"] in _RULES:
        return _RULES[found["type"]]
    if rule := broken_rule(found):
        return f"must be {rule}"
    message = found["msg"]
    return message[0].lower() + message[1:]


def check_value(value: str, limit: int) -> None:
    """Refuse a value that no variable of an environment can hold."""
    if not value:
        raise refused_fields([("value", "is empty")])
    if "\0" in value:
        raise refused_fields([("value", "has a NUL character")])
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        raise refused_fields([("value", "is not valid Unicode")]) from None
    if size > limit:
        raise refused_fields([("value", f"has more than {limit:,} bytes")])


class Fields(BaseModel):
    """Strict, nothing unknown, nothing echoed."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


DEFAULT_LIMIT = 50
MAX_LIMIT = 200


class Page(Fields):
    """Which records of a list are wanted."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    offset: int = Field(0, ge=0, le=10**9)


def page_document(name: str, records: Sequence[Any], total: int, page: Page) -> dict[str, Any]:
    """Return a page of a list, and where the next one begins."""
    end = page.offset + len(records)
    has_more = end < total and bool(records)
    return {
        name: list(records),
        "total_count": total,
        "has_more": has_more,
        "next_offset": end if has_more else None,
    }
