"""Recorded calls at the seams."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from osmosis_ai.models.transport import cassettes

from ...errors import ConfigurationError
from ...escaping import escape_control_chars, shown_path
from ...options import effects
from ...session.seams import Feature
from .folder_cassette import FolderCassette, OpenFolder

if TYPE_CHECKING:
    import pytest

    from ...rollouts.around import AroundRuns
    from ...rollouts.suite import Suite
    from ...spec import ModelSpec, SessionSpec
    from . import CassetteSpec

ELSEWHERE = ".osmosis-data/calls"
"""The folder's place on other machines, where it lies outside of the project."""


class Cassettes(Feature):
    """Records the calls of a session, or answers them."""

    name = "cassettes"

    def __init__(self, config: pytest.Config, spec: CassetteSpec) -> None:
        self._spec = spec
        self._opened: OpenFolder | None = None
        """There in the process that reports."""
        self._halt: Callable[[str], None] = lambda reason: None

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Have recorded answers stand in for the models."""
        if not self._spec.replays:
            return spec
        return spec.with_models(self._replayed)

    def _replayed(self, model: ModelSpec) -> ModelSpec:
        return replace(
            model,
            stand_in={"replay": self._spec.given},
            needs_key=not self._spec.is_complete,
        )

    def open(self, suites: Iterable[Suite], halt: Callable[[str], None]) -> None:
        """Open the folder, and read what it holds."""
        self._halt = halt
        self._opened = OpenFolder(self._spec)

    def inputs(self) -> Sequence[str]:
        """Return the pattern of the files whose answers stand in for the model's."""
        if not self._spec.is_complete:
            return ()
        return [f"{glob.escape(str(self._spec.folder))}/calls*"]

    def header(self, suites: Iterable[Suite]) -> Iterator[str]:
        """Yield what becomes of calls, and whose calls are not seen."""
        folder = escape_control_chars(shown_path(self._spec.folder))
        if self._spec.replays:
            rest = "what is not there is asked" if self._spec.asks_missing else "nothing is sent"
            yield (
                f"osmosis: answers are replayed from {folder}: {rest}; tokens and cost are as "
                "recorded"
            )
        else:
            yield f"osmosis: model calls are recorded in {folder}"
        for suite in suites:
            if not effects.knows_calls(suite.agent.reach):
                agent = escape_control_chars(suite.spec.agent)
                yield f"osmosis: {agent} asks a model of its own: those calls stay as they are"

    def around_runs(
        self, suites: Mapping[str, Suite], send: Callable[[str], None] | None
    ) -> AroundRuns:
        """Insert the cassette of this process, until it is closed."""
        calls = None if self._opened is None else self._opened.calls
        cassette = cassettes.inserted = FolderCassette(self._spec, calls, send)
        return cassette

    def received(self, text: str) -> None:
        """Write what a process elsewhere has recorded."""
        assert self._opened is not None
        try:
            self._opened.take(text)
        except OSError as error:
            self._halt(f"calls cannot be recorded: {error.strerror}")

    def close(self) -> Iterator[str]:
        """Join what the session recorded."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            opened.close()
        except (OSError, ConfigurationError) as error:
            yield f"osmosis: recorded calls stay in their parts, which can be replayed: {error}"

    def elsewhere(self, root: Path, folder: str) -> tuple[Mapping[str, Path], Sequence[str]]:
        """Return the files that calls are replayed from, and where they lie."""
        spec = self._spec
        if not spec.replays:
            return {}, ()
        inside = spec.folder.is_relative_to(root)
        place = str(spec.folder.relative_to(root)) if inside else ELSEWHERE
        files = {f"{place}/{each.name}": each for each in spec.folder.glob("calls*")}
        return files, [f"--osmosis-replay={os.path.relpath(place, folder)}"]
