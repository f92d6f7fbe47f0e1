"""Explanations of judges, collected for the caller of an eval function.

An eval function returns only a number; the explanation of the judge that it asked is passed beside
it in a context variable. Knows neither judges nor callers.
"""

from __future__ import annotations

from contextvars import ContextVar
from hashlib import sha256

LIMIT = 20
"""Reasons that one listener keeps."""


class Reasons(list[str]):
    """What one listener has been given."""

    clamped = 0
    """Scores of judges that lay outside their bounds."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.rubrics: set[str] = set()
        """The texts that judges judged by."""

    @property
    def rubric_digest(self) -> str:
        """What names these texts, whatever their order; "" where no judge was asked."""
        if not self.rubrics:
            return ""
        each = sorted(sha256(text.encode("utf-8", "replace")).digest() for text in self.rubrics)
        return sha256(b"".join(each)).hexdigest()[:16]


_listener: ContextVar[Reasons | None] = ContextVar("osmosis_reasons", default=None)


class collect_reasons:
    """`with collect_reasons() as reasons:` collects what `add_reason` gets, in this context and its
    copies.
    """

    __slots__ = ("_token",)

    def __enter__(self) -> Reasons:
        reasons = Reasons()
        self._token = _listener.set(reasons)
        return reasons

    def __exit__(self, *_: object) -> None:
        _listener.reset(self._token)


def add_reason(reason: str, *, clamped: int = 0, rubric: str = "") -> None:
    """Add a reason to the current listener; without one, do nothing.

    `clamped`: how many scores of judges were, that it speaks of; `rubric`: what was judged by.
    """
    reasons = _listener.get()
    if reasons is None:
        return
    reasons.clamped += clamped
    if rubric:
        reasons.rubrics.add(rubric)
    if len(reasons) < LIMIT:
        reasons.append(reason)
