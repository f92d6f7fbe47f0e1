"""An xdist worker's part: it runs what the controller feeds it and tells what has ended.

Knows the channel of `schedule` and this process's rollouts; gathers and decides nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ..results import RunId, SuiteInfo
from ..rollouts.cached import ControllerCache
from ..rollouts.pool import RolloutPool
from ..rollouts.rollout import RolloutRecord
from ..storage.fingerprint import EvalFingerprint
from ..storage.journal import encode
from ..storage.transcripts import ConversationLogs, Place
from . import scheduler
from .heartbeat import Heartbeat


class Worker:
    """One a session, in each worker's process."""

    def __init__(self, config: pytest.Config) -> None:
        self._link = scheduler.WorkerLink(config)
        given = json.loads(config.workerinput[scheduler.INPUT])  # type: ignore[attr-defined]
        self.base_urls: Mapping[str, str] = given["base_urls"]
        """Where the embedded endpoint listens, by persona."""
        self.places: dict[str, Place] = {}
        """Where conversations go, by suite."""
        self._logs = ConversationLogs(config.workerinput["workerid"])  # type: ignore[attr-defined]
        self._take_places(given["places"])
        self._indices: dict[RunId, int] = {}
        self._heartbeat = Heartbeat(self._beat)

    def _beat(self) -> None:
        self._link.send("alive", os.getpid())

    def introduce(
        self,
        infos: Sequence[SuiteInfo],
        selected: Mapping[str, int],
        identities: Iterable[EvalFingerprint],
        loaded: Mapping[str, Mapping[str, str]],
    ) -> None:
        """Send the controller what was collected, and what it cannot know of it itself.

        `loaded`: digests of each suite's files, by name.
        """
        self._link.send("loaded", {suite: dict(files) for suite, files in loaded.items()})
        self._link.send("suites", [info.to_json() for info in infos])
        self._link.send("selected", dict(selected))
        self._link.send("identities", [encode(identity.to_json()) for identity in identities])

    def serve(
        self,
        rollouts: RolloutPool,
        recall: ControllerCache,
        items: Sequence[pytest.Item],
        key_of: Callable[[pytest.Item], RunId | None],
    ) -> None:
        """Start what the controller says is coming, from here on."""
        self._indices = {
            key: index for index, item in enumerate(items) if (key := key_of(item)) is not None
        }

        def coming(indices: list[int]) -> None:
            keys = (key_of(items[index]) for index in indices)
            rollouts.coming([key for key in keys if key is not None])

        def cancel(_: None) -> None:
            rollouts.cancel()

        def cached(runs: list[tuple[int, str, str]]) -> None:
            for index, text, why in runs:
                key = key_of(items[index])
                if key is not None:
                    recall.hand(key, text, why)

        self._link.listen(
            {
                "window": rollouts.resize,
                "coming": coming,
                "cached": cached,
                "places": self._take_places,
                "halt": rollouts.halt,
                "hold": rollouts.hold,
                "cancel": cancel,
            }
        )

    def _take_places(self, places: Mapping[str, Sequence[Any]]) -> None:
        for suite, (folder, session) in places.items():
            self.places[suite] = Place(folder, session)
            self._logs.begin(suite, Path(folder), session)

    def ended(
        self, key: RunId, finished: RolloutRecord, *, decided: bool, redact: Callable[[str], str]
    ) -> None:
        """A run has ended; `decided` unless asserts of a test are still to come."""
        text = finished.encoded()
        problem = self._logs.write(
            finished.result,
            text,
            why=finished.explanation,
            messages=finished.messages,
            reward=finished.reward,
            redact=redact,
        )
        index = self._indices[key]
        self._link.send("finished", index, text, finished.explanation, decided)
        if problem is not None:
            self._link.send("problem", problem)

    def cannot_write(self, problem: str) -> None:
        """A report cannot be written from here: the session's end tells."""
        self._link.send("unwritten", problem)

    def give_up(self, reason: str) -> None:
        """Nothing more can be run here: end, so that another worker takes the rest."""
        self._link.send("gave up", reason)
        os._exit(1)

    def paced(self, kind: str, not_before_s: float) -> None:
        """The endpoint said that it is too much, or that it bears it."""
        self._link.send("pace", kind, not_before_s)

    def close(self) -> None:
        """Say nothing more."""
        self._heartbeat.stop()
        self._logs.close()
