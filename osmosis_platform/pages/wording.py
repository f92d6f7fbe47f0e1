"""How pages say times, numbers and figures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from markupsafe import Markup

from ..identifiers import timestamp

_UNITS = ("bytes", "KiB", "MiB", "GiB")
NONE = "–"


def when(moment: datetime | None) -> str:
    """Return a time for people, in UTC, with its exact form for programs."""
    if moment is None:
        return NONE
    utc = moment.astimezone(timezone.utc)
    shown = f"{utc.day} {utc:%b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(timestamp(moment), shown)


def duration(seconds: float | None) -> str:
    """Return a length of time in its two largest units."""
    if seconds is None:
        return NONE
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def size(count: int) -> str:
    """Return a number of bytes in the unit that fits."""
    amount, unit = float(count), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{count:,} {_UNITS[0]}" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def number(value: float | None) -> str:
    """Return a count with separators, or a figure in three digits."""
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Return a share as a percentage."""
    return NONE if value is None else f"{100 * value:.1f}%"


def visible(text: Any) -> str:
    """Return text with its control characters made visible; line ends stay."""
    found = str(text)
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in found
    )


def sentence(text: str) -> str:
    """Return a message of the API as a sentence."""
    shown = visible(text)
    end = "" if shown[-1:] in ".!?" else "."
    return shown[:1].upper() + shown[1:] + end


FILTERS: dict[str, Callable[..., str]] = {
    "when": when,
    "duration": duration,
    "size": size,
    "number": number,
    "percent": percent,
    "visible": visible,
    "sentence": sentence,
}
