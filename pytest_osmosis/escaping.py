"""Text made fit to show: harmless for terminals, XML files and workflow logs; numbers, paths."""

from __future__ import annotations

import re
from pathlib import Path

_COMMAND = re.compile(r"^(\s*):(?=:)", re.MULTILINE)
ROUNDING_ERROR = 1e-12
LARGE, HUGE = 1e4, 1e12


def escape_control_chars(text: str) -> str:
    """Return text for a terminal or an XML file: control characters escaped, lines kept."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in encodable(text)
    )


def encodable(text: str) -> str:
    """Return text that UTF-8 can hold: U+FFFD for each half of a character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def can_write(text: str, encoding: str) -> bool:
    """Return whether a stream with this encoding takes a text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def escape_workflow_commands(text: str) -> str:
    """Return text in which GitHub Actions finds no workflow command."""
    return _COMMAND.sub(r"\1: ", text).replace("##[", "## [")


def shown_path(path: Path) -> str:
    """Return a path as people read it: from the current directory where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def shortened(text: str, limit: int = 40) -> str:
    """Return a text of at most so many characters; what is left out is "…"."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, plural where it must be."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def clamped_scores(number: int) -> str:
    """Return how many scores of judges lay outside of their bounds, in a sentence."""
    return f"{counted(number, 'score')} of the judge {'was' if number == 1 else 'were'} clamped"


def dollars(amount: float) -> str:
    """Return an amount to the hundredth of a cent; what is less than half of one is not 0."""
    return "<$0.0001" if 0 < amount < 0.00005 else f"${amount:,.4f}"


def exact_text(number: float) -> str:
    """All digits; 0.91 where rounding on the way has left 0.9099999999999999."""
    whole, short = repr(number), f"{number:.15g}"
    return short if len(short) < len(whole) - 4 else whole


def percent(share: float) -> str:
    """Return a share as three digits of percent, "98.3%"; what is less than all is never 100%."""
    digits = 3
    while float(text := f"{100.0 * share:.{digits}g}") == 100.0 and share != 1.0 and digits < 9:
        digits += 1
    return f"{text}%"


def p_value(p: float) -> str:
    """A p in three characters or so."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def score_text(score: float) -> str:
    """Return a score with a decimal: 1.0, 0.35."""
    return str(float(f"{score:g}"))


def without_rounding_error(number: float) -> float:
    """Return 0.0 for what a difference of equal figures may come to."""
    return 0.0 if abs(number) < ROUNDING_ERROR else number


def number_text(number: float, beside: float | None = None) -> str:
    """Four digits, all of a large sum's: 0.9167, 144,567; more where it reads as `beside` else."""
    number = without_rounding_error(number)
    text = f"{number:,.0f}" if LARGE <= abs(number) < HUGE else f"{number:.4g}"
    if beside is None or number == beside or text != number_text(beside):
        return text
    return f"{number:.9g}"
