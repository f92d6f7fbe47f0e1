"""Deliberate mistakes: whether a rollout slips, and how.

Everything is drawn from a SHA-256 digest of the persona, the row's first user message and the
rollout's identity, so that all turns of a rollout agree in every process and order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256

from .arithmetic import Earlier, Operator, Problem
from .personas import Persona

_WRONG_OPERATOR: dict[Operator, Operator] = {
    "add": "subtract",
    "subtract": "add",
    "multiply": "add",
    "divide": "multiply",
}


@dataclass(frozen=True, slots=True)
class Slip:
    """One mistake: it spoils the plan, or the reading of the final number, or neither."""

    plan: Callable[[Problem], Problem] = lambda problem: problem
    """The problem as this rollout understands it."""
    reading: Callable[[Fraction], Fraction] = lambda value: value

    def misread(self, value: Fraction, problem: Problem) -> Fraction:
        """Return the number to answer with; after a slip it is never the right one."""
        said = self.reading(value)
        return said + 1 if self is not NO_SLIP and said == problem.solution() else said


NO_SLIP = Slip()


def draw_slip(
    persona: Persona, difficulty: float, *, seed: int, conversation: str, rollout: str
) -> Slip:
    """Return the slip of one rollout, `NO_SLIP` where it is right."""
    row = _digest(persona.name, str(seed), conversation)
    run = _digest(persona.name, str(seed), conversation, rollout)
    chance = persona.chance(difficulty, _unit(row))
    return NO_SLIP if _unit(run) < chance else _SLIPS[run[-1] % len(_SLIPS)]


def _digest(*parts: str) -> bytes:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()


def _unit(digest: bytes) -> float:
    return int.from_bytes(digest[:8], "big") / 2.0**64


def _wrong_operator(problem: Problem) -> Problem:
    last = problem.steps[-1]
    wrong = replace(last, operator=_WRONG_OPERATOR[last.operator])
    return replace(problem, steps=(*problem.steps[:-1], wrong))


def _lost_step(problem: Problem) -> Problem:
    """Stop one step early; in a problem of one step use the wrong operator."""
    *steps, last = problem.steps
    early = next((side for side in (last.left, last.right) if isinstance(side, Earlier)), None)
    if early is None:
        return _wrong_operator(problem)
    return Problem(tuple(steps), early)


def _swapped_digits(value: Fraction) -> Fraction:
    """391 -> 319: swap the last two neighbours that differ; otherwise be off by one."""
    digits = str(abs(value.numerator))
    for at in range(len(digits) - 1, 1, -1):
        if value.denominator == 1 and digits[at] != digits[at - 1]:
            swapped = digits[: at - 1] + digits[at] + digits[at - 1] + digits[at + 1 :]
            return Fraction(swapped) * (-1 if value < 0 else 1)
    return _off_by_one(value)


def _off_by_one(value: Fraction) -> Fraction:
    return value + (1 if value.numerator % 2 else -1)


_SLIPS = (
    Slip(plan=_wrong_operator),
    Slip(plan=_lost_step),
    Slip(reading=_swapped_digits),
    Slip(reading=_off_by_one),
    Slip(reading=lambda value: value - 10),
)
