"""Numbers as text for people."""

from __future__ import annotations

LARGE, HUGE = 1e4, 1e12


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, plural where it must be."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def exact_text(number: float) -> str:
    """All digits; 0.91 where rounding on the way has left 0.9099999999999999."""
    whole, short = repr(number), f"{number:.15g}"
    return short if len(short) < len(whole) - 4 else whole


def number_text(number: float) -> str:
    """Four digits, all of a large sum's: 0.9167, 144,567."""
    return f"{number:,.0f}" if LARGE <= abs(number) < HUGE else f"{number:.4g}"
