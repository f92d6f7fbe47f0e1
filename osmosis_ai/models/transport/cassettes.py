"""Where model calls leave the process: each is answered from a recording, or kept in one.

`inserted` is the process's cassette: the client of every model and judge asks it before a request
is sent, and gives it the reply. A context variable says which run a call belongs to. Knows no
files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from .exchange import Reply


@dataclass(slots=True)
class Caller:
    """A run, and what it has asked so far."""

    key: Any = None
    attempt: int = 0
    """When it began, in nanoseconds; 0: it adds to what is recorded of the run."""
    asked: Counter[Hashable] = field(default_factory=Counter)
    """How often each request was answered."""


class Cassette(Protocol):
    """Recorded calls, or those that are being recorded; used from any thread."""

    is_complete: bool
    """Whether it answers every request: none is sent, and no key is needed."""

    def begin(self, run: Any, *, again: bool = False) -> None:
        """Have the calls of the running code belong to a run; `again`: beside its earlier ones."""

    def answer(self, method: str, path: str, body: bytes) -> Reply | None:
        """Return the recorded reply, None to send the request; raise CallFault without either."""

    def keep(self, method: str, path: str, body: bytes, reply: Reply) -> None:
        """Take the reply to a request that was sent."""

    def close(self) -> None:
        """Take the cassette out of the process; harmless when repeated."""


inserted: Cassette | None = None
"""The process's cassette; None outside of sessions that record or replay. Set before any client."""
current: ContextVar[Caller | None] = ContextVar("osmosis_caller", default=None)
"""The run that makes the calls of the running code; None outside of runs."""


def needs_no_key() -> bool:
    """Return whether no request will be sent."""
    return inserted is not None and inserted.is_complete
