"""What the values of options may be: text to value, or ValueError with what was expected.

Every pytest session imports this; what reads a value is imported when there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EXPLICIT = "explicit"
"""When the evaluation of the ini file runs: only where the command line asks for it."""

UNNAMED_ADDRESS = "auto"
"""In place of an address: the cluster of RAY_ADDRESS, else one that is started."""
_VARIABLE = "abcdefghijklmnopqrstuvwxyz_0123456789"


def any_text(text: str) -> str:
    """Return the text, which must not be blank."""
    if not text.strip():
        raise ValueError("expected a value")
    return text


def whole_number(minimum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `minimum` up."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"expected a whole number of at least {minimum}") from None
        if value < minimum:
            raise ValueError(f"expected a whole number of at least {minimum}")
        return value

    return parse


def number(
    what: str, accept: Callable[[float], bool] = lambda value: True
) -> Callable[[str], float]:
    """Return a parser of finite numbers that `accept` takes; `what` says which these are."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"expected {what}") from None
        if not math.isfinite(value) or not accept(value):
            raise ValueError(f"expected {what}")
        return value

    return parse


def threshold(text: str) -> str:
    """Return a score, or EVAL_FN=SCORE; a name may have a `=` in its brackets."""
    score = text.rpartition("=")[2] if text.find("=") > 0 else text
    number("a number, or EVAL_FN=NUMBER, such as 0.7 or style=0.5")(score)
    return text


def confidence(text: str) -> float:
    """Return a confidence; that of `none` is 0, which widens nothing."""
    if text == "none":
        return 0.0
    what = "a number between 0 and 1, such as 0.95, or none"
    return number(what, lambda value: 0.0 < value < 1.0)(text)


def share(text: str) -> str:
    """Return a share or a number of rows, as `sampling.draw` takes it."""
    from ..dataset.errors import DatasetError
    from ..dataset.sampling import sample_size

    try:
        sample_size(text, 1)
    except DatasetError:
        raise ValueError("expected a share like 10% or a number of rows like 50") from None
    return text


def part(text: str) -> str:
    """Return the part I/K of a dataset."""
    from ..dataset.sampling import parse_part

    return str(parse_part(text))


def variable(text: str) -> str:
    """Return the name of an environment variable."""
    if text and text[0] not in "0123456789" and not text.lower().strip(_VARIABLE):
        return text
    raise ValueError("expected the name of a variable, not its value")


def prices(text: str) -> tuple[float, ...]:
    """Return the prices of a million tokens of prompts, completions and maybe cached prompts."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        found = ()
    if len(found) not in (2, 3) or not all(0 <= each < math.inf for each in found):
        raise ValueError(
            "expected IN,OUT or IN,OUT,CACHED: the dollars that a million tokens of prompts, of "
            "completions and of cached prompts cost, such as 0.15,0.60"
        )
    return found


def json_object(text: str) -> dict[str, object]:
    """Return the JSON object, of fields of a request that are not set otherwise."""
    import json

    try:
        found = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError('expected a JSON object, such as {"top_k": 20}')
    for name in ("model", "messages", "stream", "tools"):
        if name in found:
            raise ValueError(f"{name!r} of a request cannot be set")
    return found


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def header(text: str) -> str:
    """Return NAME=VALUE; the message repeats no value."""
    from osmosis_ai.models.headers import header_mistake

    name, separator, value = text.partition("=")
    mistake = header_mistake(name.strip(), value, of_agent=False)
    if not separator or not value:
        mistake = "expected NAME=VALUE, such as X-Team=evals or 'Api-Key=$GATEWAY_KEY'"
    elif "$" in value and value.strip("${}").lower().strip(_VARIABLE):
        mistake = "a variable, such as $GATEWAY_KEY, must be the whole value"
    if mistake is not None:
        raise ValueError(mistake)
    return text


def one_of(*words: str) -> Callable[[str], str]:
    """Return a parser that takes these words alone."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"expected {' or '.join(map(repr, words))}")
        return text

    return parse


def column_map(text: str) -> str:
    """Return COLUMN=NAME, as `columns.mapping_of` takes it."""
    from ..dataset.columns import parse_map

    parse_map(text)
    return text


def condition(text: str) -> str:
    """Return COLUMN=VALUE or COLUMN!=VALUE, as `conditions.Matching` takes it."""
    from ..dataset.conditions import parse_condition

    parse_condition(text)
    return text


def template_of(text: str, find: Callable[[str], Path]) -> str:
    """Return a prompt template, or that of a file behind an @, whose path `find` returns.

    Raises:
        ValueError: when it cannot be read, or is no template.
    """
    from ..dataset.prompt_template import PromptTemplate

    if text.startswith(OF_FILE):
        try:
            text = find(text.removeprefix(OF_FILE)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(getattr(error, "strerror", None) or "is not UTF-8 text") from None
    PromptTemplate(text)
    return text


OF_FILE = "@"
"""What a prompt template begins with that stands in a file."""
OF_REPORT = "@"
"""What a report may begin with where row indices may stand too."""


def report_of(text: str) -> str | None:
    """Return the JSON report that is named in place of row indices, with the sign or without.

    pytest reads options from the file where the sign begins a word of its own.
    """
    is_report = text.startswith(OF_REPORT) or text.lower().endswith(".json")
    return text.removeprefix(OF_REPORT) if is_report else None


def row_indices(text: str) -> str:
    """Return row indices, as `sampling.parse_rows` takes them, or the report that has them."""
    from ..dataset.sampling import parse_rows

    report = report_of(text)
    if report == "":
        raise ValueError("expected a JSON report behind the @, such as @results.json")
    if report is None:
        parse_rows(text)
    return text


positive_seconds = number("a number of seconds above 0", lambda value: value > 0)
