"""Runs of earlier sessions, as the process that runs items meets them: there is nothing to run.

In the process that reports they come from its `RunStore`; a worker gets them from the controller.
The tests of marked functions run again, on the recorded conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..results import RunId, RunResult
from ..storage.store import CachedRun
from ..storage.transcripts import Place, Transcripts
from .rollout import RolloutRecord

if TYPE_CHECKING:
    from ..storage.store import RunStore
    from .suite import Suite


class ResultCache(Protocol):
    """The runs that are known without running them."""

    def __contains__(self, key: RunId) -> bool: ...

    def take(self, key: RunId) -> RolloutRecord:
        """One of them."""


class NullCache:
    """No run is known."""

    def __contains__(self, key: RunId) -> bool:
        return False

    def take(self, key: RunId) -> RolloutRecord:
        """Never called."""
        raise KeyError(key)


class LocalCache:
    """In a session without xdist."""

    def __init__(self, keeper: RunStore, suites: Mapping[str, Suite]) -> None:
        self._keeper = keeper
        self._memory = MemoryCache(suites, keeper.places)

    def __contains__(self, key: RunId) -> bool:
        return self._keeper.has(key)

    def take(self, key: RunId) -> RolloutRecord:
        """The run as it was kept."""
        kept = self._keeper.kept(key)
        assert kept is not None
        return self._memory.finished(key, kept)


class ControllerCache:
    """In a worker; each run is handed over before its item is."""

    def __init__(self, suites: Mapping[str, Suite], places: Mapping[str, Place]) -> None:
        """`places` grows as the controller tells of them."""
        self._memory = MemoryCache(suites, lambda: places)
        self._handed: dict[RunId, CachedRun] = {}
        self._known: set[RunId] = set()
        """All that were handed over: the engine may ask for one after its item has taken it."""

    def hand(self, key: RunId, text: str, why: str) -> None:
        """Take a run over."""
        self._known.add(key)
        self._handed[key] = CachedRun(RunResult.from_json(text), why)

    def __contains__(self, key: RunId) -> bool:
        return key in self._known

    def take(self, key: RunId) -> RolloutRecord:
        """The run as it was handed over."""
        return self._memory.finished(key, self._handed.pop(key))


class MemoryCache:
    """From a kept run to what its item needs."""

    def __init__(
        self, suites: Mapping[str, Suite], places: Callable[[], Mapping[str, Place]]
    ) -> None:
        self._suites = suites
        self._places = places
        self._conversations: dict[str, Transcripts] = {}

    def finished(self, key: RunId, kept: CachedRun) -> RolloutRecord:
        """The run, ready to be reported."""
        suite = self._suites[key.suite]
        if not suite.spec.marked:
            return RolloutRecord(kept.result, kept.why)
        from ..storage.journal import result_of

        row = suite.dataset.row(key.row_index)
        recorded = self._said(key.suite).read((row.row_index, key.run_index))
        assert recorded is not None
        result = result_of(recorded.result, key.suite, cached=True)
        result = result._replace(answer=kept.result.answer)
        position = {"row_index": row.row_index, "run_index": key.run_index}
        return RolloutRecord(
            result,
            recorded.why,
            recorded.messages or [],
            row.ground_truth,
            {**row.metadata(), **position},
            recorded.reward,
        )

    def _said(self, suite: str) -> Transcripts:
        said = self._conversations.get(suite)
        if said is None:
            said = self._conversations[suite] = Transcripts(Path(self._places()[suite].folder))
        return said
