"""What pydantic found wrong with a request, as a refusal that names fields and rules only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import ValidationError
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
