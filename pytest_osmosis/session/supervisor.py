"""Decide when a session starts no further run, and how many may be in flight.

The reporting process hands in every result. What ends the session: an endpoint that refuses every
row alike, answers nothing, cannot be reached or goes away (`refusals`), and first rollouts that
nothing can score or whose tools are wrong. What slows it down: additive increase, multiplicative
decrease (Chiu and Jain 1989) of the rollouts in flight when the endpoint limits its rate. Knows
neither processes nor pytest.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from ..run_result import AT_FIRST, NO_JUDGE, RunResult
from .refusals import UNANSWERED_S, EndpointWatch, RefusedTries, cause_of

DECREASE = 0.5
"""The factor by which a 429 reduces the window."""


class Supervisor:
    """Takes every result; calls `halt` at most once, and `resize(window)`."""

    def __init__(
        self,
        *,
        batch_size: int,
        selected: Callable[[], int],
        halt: Callable[[str], None],
        resize: Callable[[int], None],
        place_of: Callable[[str], str] = lambda suite: "",
        planned: Callable[[str], tuple[int, int]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`selected` returns how many runs the session has.

        `place_of` returns what model at which endpoint a suite asks, and `planned` how many rows
        and runs the session has of it.
        """
        self._selected = selected
        self._halt = halt
        self.is_halted = False
        """Whether the session starts no further run, for any reason."""
        self._scored = False
        self._place_of = place_of
        self._planned = planned or (lambda place: (selected(), selected()))
        self._clock = clock
        self._watches: dict[str, EndpointWatch] = {}
        self._refused: tuple[str, str] | None = None
        """Where and why every row is refused alike, once that has ended the session."""
        self._tries: defaultdict[str, RefusedTries] = defaultdict(lambda: RefusedTries(clock))
        """What calls were refused with since the last answer, by which model where."""
        self._pace = AdaptiveConcurrency(batch_size, resize)
        self._lock = threading.Lock()
        self.has_started = False
        """Whether a run has been started in the session."""

    def start(self) -> bool:
        """Note that a run starts; return whether it is the first; from any thread."""
        with self._lock:
            is_first, self.has_started = not self.has_started, True
        return is_first

    def ended(self, result: RunResult, *, others_scored: bool = False) -> None:
        """Count a run that has ended, from any thread; others may have scores already."""
        with self._lock:
            self._scored = self._scored or others_scored or bool(result.scores)
            reason = self._reason(result)
        if reason is not None:
            self.stop(reason)

    def settled(self, result: RunResult) -> RunResult:
        """Return a result as the end of the session shows it.

        What every row is refused alike is the endpoint's, and is asked again; else a refused
        request is the run's own.
        """
        cause = cause_of(result)
        if cause is None:
            return result
        if self._refused == (self._place_of(result.suite), cause):
            return replace(result, fatal=True, error_type="provider")
        return replace(result, fatal=False) if result.fatal else result

    def pressed(self, said: str = "", pause_s: float = 0.0, place: str = "") -> None:
        """Reduce the window: a call was refused, in these words, for its rate or as overloaded."""
        self._pace.decrease()
        with self._lock:
            tries = self._tries[place]
            is_too_long = tries.add(said, pause_s)
            reason = f"no answer for {UNANSWERED_S:g} s: {tries}"
        if is_too_long:
            self.stop(reason)

    def answered(self, place: str = "") -> None:
        """Enlarge the window: a call was answered."""
        self._pace.increase()
        with self._lock:
            self._tries.pop(place, None)

    def refusals(self) -> str:
        """Return what calls are refused with, where one model has answered none since."""
        with self._lock:
            return next(map(str, self._tries.values()), "")

    def stop(self, reason: str) -> None:
        """End the session for this reason, once."""
        with self._lock:
            was_halted, self.is_halted = self.is_halted, True
        if not was_halted:
            self._halt(reason)

    def _reason(self, result: RunResult) -> str | None:
        if result.fatal and cause_of(result) is None:
            return result.error or "no run can be made"
        if (reason := self._unanswered(result)) is not None:
            return reason
        if result.error_kind == NO_JUDGE or (result.error_kind in AT_FIRST and not self._scored):
            return result.error
        return None

    def _unanswered(self, result: RunResult) -> str | None:
        """Return why no run of this model at this endpoint can be expected to have an answer."""
        place = self._place_of(result.suite)
        if place not in self._watches:
            self._watches[place] = EndpointWatch(lambda: self._planned(place), self._clock)
        if result.llm_calls:
            self._tries.pop(place, None)
        reason = self._watches[place].reason(result)
        if reason is not None and (cause := cause_of(result)) is not None:
            self._refused = place, cause
        return reason


class AdaptiveConcurrency:
    """The number of rollouts in flight that the endpoint accepts, at most the batch size."""

    def __init__(self, most: int, resize: Callable[[int], None]) -> None:
        self._most = most
        self._window = float(most)
        self._resize = resize
        self._answered_since = 0
        self._lock = threading.Lock()

    def decrease(self) -> None:
        """Halve the window, once per window of answers: one burst of refusals counts as one."""
        with self._lock:
            whole = int(self._window)
            if self._answered_since < 0:
                return
            self._answered_since = -whole
            self._window = max(1.0, self._window * DECREASE)
            self._tell(whole)

    def increase(self) -> None:
        """Add one for every window of answers."""
        if self._window >= self._most:
            return
        with self._lock:
            self._answered_since += 1
            if self._answered_since > 0:
                whole = int(self._window)
                self._window = min(float(self._most), self._window + 1.0 / self._window)
                self._tell(whole)

    def _tell(self, before: int) -> None:
        if int(self._window) != before:
            self._resize(int(self._window))
