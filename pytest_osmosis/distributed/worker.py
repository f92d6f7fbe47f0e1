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

from ..results import SuiteInfo
from ..rollouts.cached import ControllerCache
from ..rollouts.engine import EngineClosed
from ..rollouts.pool import RolloutPool, RunKey
from ..rollouts.rollout import RolloutRecord
from ..storage.fingerprint import EvalFingerprint
from ..storage.journal import encode
from ..storage.transcripts import ConversationLogs, Place
from . import scheduler
from .heartbeat import Heartbeat
from .outbox import Outbox, WorkerResult


class Worker:
    """One a session, in each worker's process."""

    def __init__(self, config: pytest.Config, *, mask: Callable[[str], str]) -> None:
        """`mask` is for what runs print: it knows the secrets of the whole session."""
        self._mask = mask
        self._link = scheduler.WorkerLink(config)
        given = json.loads(config.workerinput[scheduler.INPUT])  # type: ignore[attr-defined]
        self.base_urls: Mapping[str, str] = given["base_urls"]
        """Where the embedded endpoint listens, by persona."""
        self.places: dict[str, Place] = {}
        """Where conversations go, by suite."""
        self._logs = ConversationLogs(config.workerinput["workerid"])  # type: ignore[attr-defined]
        self._take_places(given["places"])
        self.is_reported_for: bool = given["reports"]
        """Whether the controller can report items by itself."""
        self._outbox = Outbox(lambda text: self._link.send("ended", text))
        self._told_to_run: set[RunKey] = set()
        """Runs that the controller reports, and that have not ended."""
        self._soon: Callable[[Callable[[], None]], None]
        """Calls something in the engine's thread, in its next turn."""
        self._indices: dict[RunKey, int] = {}
        self._heartbeat = Heartbeat(self._beat)

    def _beat(self) -> None:
        self._outbox.flush()  # where the agent's code holds the loop, nobody else does
        self._link.send("alive", os.getpid())

    def introduce(
        self,
        infos: Sequence[SuiteInfo],
        selected: Mapping[str, int],
        identities: Iterable[EvalFingerprint],
        loaded: Mapping[str, Mapping[str, str]],
        *,
        only_runs: bool,
    ) -> None:
        """Tell the controller what was collected, and what it cannot know of it itself.

        `loaded`: digests of each suite's files, by name. `only_runs`: nothing in this process has
        to see its items, which may be left to the controller.
        """
        if only_runs:
            self._link.send("only runs")
        self._link.send("loaded", {suite: dict(files) for suite, files in loaded.items()})
        self._link.send("suites", [info.to_json() for info in infos])
        self._link.send("selected", dict(selected))
        self._link.send("identities", [encode(identity.to_json()) for identity in identities])

    def serve(
        self,
        rollouts: RolloutPool,
        recall: ControllerCache,
        items: Sequence[pytest.Item],
        key_of: Callable[[pytest.Item], RunKey | None],
    ) -> None:
        """Start what the controller says is coming, from here on."""
        self._indices = {
            key: index for index, item in enumerate(items) if (key := key_of(item)) is not None
        }

        def coming(indices: list[int]) -> None:
            keys = (key_of(items[index]) for index in indices)
            rollouts.coming([key for key in keys if key is not None])

        def run(text: str) -> None:
            keys = [key for index in json.loads(text) if (key := key_of(items[index])) is not None]
            self._told_to_run.update(keys)
            self._outbox.expect(len(keys))
            rollouts.run(keys)

        def cancel(_: None) -> None:
            rollouts.cancel()
            self._outbox.give_up()

        def cached(runs: list[tuple[int, str, str]]) -> None:
            for index, text, why in runs:
                key = key_of(items[index])
                if key is not None:
                    recall.hand(key, text, why)

        self._soon = rollouts.soon
        self._link.listen(
            {
                "window": rollouts.resize,
                "run": run,
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
        self, key: RunKey, finished: RolloutRecord, *, decided: bool, redact: Callable[[str], str]
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
        if key in self._told_to_run:
            sections = [(title, self._mask(said)) for title, said in finished.sections]
            self._put(key, WorkerResult(index, text, finished.explanation, sections))
        else:
            self._link.send("finished", index, text, finished.explanation, decided)
        if problem is not None:
            self._link.send("problem", problem)

    def left_out(self, key: RunKey, error: BaseException) -> None:
        """A run that the controller reports has no result."""
        if isinstance(error, EngineClosed):
            self._put(key, WorkerResult(self._indices[key]))
        else:
            self._outbox.give_up(error)
            self._link.send("broken")

    def _put(self, key: RunKey, run: WorkerResult) -> None:
        self._told_to_run.discard(key)
        if self._outbox.put(run):
            self._soon(self._outbox.flush)

    def wait(self) -> None:
        """Return once the controller knows of all that it has told to run."""
        self._outbox.wait()

    def cannot_write(self, problem: str) -> None:
        """A report cannot be written from here: the session's end tells."""
        self._link.send("unwritten", problem)

    def give_up(self, reason: str) -> None:
        """Nothing more can be run here: end, so that another worker takes the rest."""
        self._outbox.flush()
        self._link.send("gave up", reason)
        os._exit(1)

    def paced(self, kind: str, not_before_s: float) -> None:
        """The endpoint said that it is too much, or that it bears it."""
        self._link.send("pace", kind, not_before_s)

    def close(self) -> None:
        """Say nothing more."""
        self._heartbeat.stop()
        self._logs.close()
