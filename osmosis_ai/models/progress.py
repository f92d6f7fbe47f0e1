"""A model call that is under way: since when, how often it was tried, how the last try failed.

The caller starts the progress of its call; the retry loop of the model that answers fills it
in. Knows neither agents nor what becomes of a call that takes too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..secret import redact
from .errors import CallFault, clip

if TYPE_CHECKING:
    import asyncio

    from .passing import Passing

WORDS_LIMIT = 80
"""Characters of an endpoint's words beside its status."""
_current: ContextVar[CallProgress | None] = ContextVar("osmosis_model_call", default=None)


class CallProgress:
    """One call, all its tries and pauses included; current from `begin` to `end`."""

    __slots__ = (
        "_describe",
        "_fault",
        "_started",
        "endpoint",
        "is_arriving",
        "is_streamed",
        "passing",
        "task",
        "tries",
    )

    def __init__(self, endpoint: str, task: asyncio.Task[Any] | None) -> None:
        self.endpoint = endpoint
        """Printable `host:port` or provider."""
        self.task = task
        """The task that waits for the answer; None where that is a client of the user's own."""
        self.is_streamed = False
        """The reply was asked for as a stream: its first part tells a long answer."""
        self.is_arriving = False
        """A part of the reply has come."""
        self.passing: Passing | None = None
        """Who reads the answer while it comes; a model that cannot stream gives it whole."""
        self.tries = 0
        """Tries so far, the one under way included."""
        self._started = time.monotonic()
        self._fault: CallFault | None = None
        self._describe: Callable[[CallFault], str] = str

    def begin(self) -> CallProgress:
        """Have the running code's tries noted here."""
        _current.set(self)
        return self

    def end(self) -> float:
        """Return how many seconds the call took; it is followed no more."""
        _current.set(None)  # not by a token: a loop that closes may end the call elsewhere
        return time.monotonic() - self._started

    @property
    def waited_s(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self._started

    @property
    def kind(self) -> str:
        """What kind of error the last try ended in; "timeout" where none has ended."""
        return "timeout" if self._fault is None else self._fault.kind

    @property
    def last_error(self) -> str | None:
        """How the last try failed, in a sentence; None where none has ended."""
        return None if self._fault is None else self._describe(self._fault)

    @property
    def refusal(self) -> str:
        """Status and words of the last try that failed, masked: "500: upstream timed out"."""
        if self._fault is None:
            return ""
        words = clip(redact(self._fault.detail), WORDS_LIMIT)
        status = str(self._fault.status or self._fault.kind)
        return f"{status}: {words}" if words else status

    def failed(self, fault: CallFault, describe: Callable[[CallFault], str]) -> None:
        """Note how a try failed; `describe` puts it into words that hold no key."""
        self._fault, self._describe = fault, describe


current_call: Callable[[], CallProgress | None] = _current.get
"""Returns the call that the running code makes a try of, if it is one that is followed."""
