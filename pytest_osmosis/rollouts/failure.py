"""Why a run has no scores. `errors` finds that out, where a run has failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..run_result import ErrorType


@dataclass(slots=True)
class Failure:
    """Why a run has no scores."""

    type: ErrorType
    message: str
    frames: str | None = None
    """The user's frames, where there are any."""
    fatal: bool = False
    """No other run can succeed either."""
    kind: str | None = None
    """The provider's kind of error; `WRONG_TOOLS`, `WRONG_RETURN`."""
