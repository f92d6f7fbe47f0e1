"""The score, and the reason if there is one, in what an eval function returned.

Loaded once a function returns something else than a float.
"""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Mapping
from typing import Any, cast

from osmosis_ai.rubric.reasons import add_reason

from ..errors import EvalFnError
from .import_object import kind_of

SCORES = "a finite float, a mapping or an object with 'score', or (score, reason)"
_KEYS_SHOWN = 5
_NOTHING = object()
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def read_score(result: object, *, name: str, row: str, is_list: bool) -> float:
    """Return the score of what the function `name` returned; its reason goes where judges' go.

    `is_list`: it stands in a list of one.

    Raises:
        EvalFnError: when there is no score, naming the row.
    """

    def wrong(returned: str, expected: str) -> EvalFnError:
        where = f" for {row}" if row else ""
        return EvalFnError(f"`{name}` returned {returned}{where}{expected}")

    if is_list:
        if not isinstance(result, (list, tuple)) or len(result) != 1:
            expected = "; expected a list of one score: it was given lists of one"
            raise wrong(_described(result), expected)
        [result] = result
    if isinstance(result, Mapping) and "score" not in result:
        keys = ", ".join(map(_short.repr, list(result)[:_KEYS_SHOWN])) or "none"
        raise wrong("a mapping without 'score'", f" (its keys: {keys}); expected {SCORES}")
    score, reason = _parts(result)
    if reason is not None and not isinstance(reason, str):
        raise wrong(f"the reason {_describe(reason)}", "; expected text")
    if reason and reason.strip():
        add_reason(reason)
    if isinstance(score, (float, int)) or _is_numpy_number(score):
        try:
            number = float(score)  # type: ignore[arg-type]
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    expected = SCORES if score is result else "a finite float as score"
    raise wrong(_described(score), f"; expected {expected}")


def _parts(result: object) -> tuple[object, object]:
    """Return the score and the reason; the value itself where it has none of the forms."""
    if isinstance(result, Mapping):
        return result["score"], result.get("reason")
    score = _NOTHING if inspect.isclass(result) else getattr(result, "score", _NOTHING)
    if score is not _NOTHING and not callable(score):
        return score, getattr(result, "reason", None)
    if type(result) is tuple and len(result) == len(("score", "reason")):
        return result
    return result, None


def _is_numpy_number(value: object) -> bool:
    bases = ((base.__module__, base.__qualname__) for base in type(value).__mro__)
    return ("numpy", "generic") in bases and cast(Any, value).dtype.kind in "biuf"


def _described(value: object) -> str:
    if value is None or isinstance(value, float):
        return repr(value)
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        return "a generator (it has `yield`)"
    if _is_numpy_number(value):
        return f"{value} ({kind_of(value)})"
    if isinstance(value, int):
        return "an int too large for a float"
    return _describe(value)


def _describe(value: object) -> str:
    text = _short.repr(value)
    printable = text if text.isprintable() else text.encode("unicode_escape").decode()
    return f"{printable} ({kind_of(value)})"
