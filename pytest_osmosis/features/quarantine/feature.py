"""The file of `--osmosis-quarantine`, and what became of its rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...escaping import counted, shown_path
from ...session.seams import Feature
from .results import quarantined

if TYPE_CHECKING:
    import pytest

    from ...rollouts.suite import Suite
    from ...run_result import SuiteInfo
    from ...spec import EvalSpec, SessionSpec
    from ...suite_results import EvalResult

SHOWN = 5
"""Ids that a sentence lists."""
_COMMENT = re.compile(r"(^|\s)#.*")


class QuarantineFeature(Feature):
    """Gives every evaluation the ids of the file."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._path = path
        self._ids: tuple[str, ...] = ()

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Set the rows aside, in every process."""
        self._ids = _read(self._path)

        def changed(each: EvalSpec) -> EvalSpec:
            return replace(each, quarantine=self._ids)

        defaults = None if spec.defaults is None else changed(spec.defaults)
        return replace(spec, evals=tuple(map(changed, spec.evals)), defaults=defaults)

    def describe(self, suite: Suite) -> SuiteInfo:
        """Say in its settings which rows are set aside, also where they are scored again."""
        if not self._ids:
            return suite.info
        return replace(suite.info, settings={**suite.info.settings, "quarantine": [*self._ids]})

    def check_rows(self, suites: Mapping[str, Suite]) -> None:
        """Refuse a file that leaves no row to decide; other shards have rows of their own."""
        for suite in suites.values():
            names = set() if suite.spec.part else set(suite.row_names)
            if names and names <= set(self._ids):
                raise ConfigurationError(
                    f"--osmosis-quarantine {shown_path(self._path)}: names every row of "
                    f"{suite.spec.name}: nothing would be left to decide"
                )

    def header(self, suites: Iterable[Suite]) -> Iterable[str]:
        """Name the ids that no evaluation has."""
        every = list(suites)
        there = {name for suite in every for name in suite.row_names}
        unknown = [name for name in self._ids if name not in there]
        if unknown and every and not any(suite.spec.part for suite in every):
            listed = ", ".join(unknown[:SHOWN]) + (", …" if len(unknown) > SHOWN else "")
            yield (
                f"osmosis: {shown_path(self._path)}: {counted(len(unknown), 'id')} of no row of "
                f"this session: {listed}"
            )

    def evaluated(self, result: EvalResult) -> EvalResult:
        """Return the result with what became of the rows."""
        return result.with_suites(quarantined)


def _read(path: Path) -> tuple[str, ...]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigurationError(
            f"--osmosis-quarantine {shown_path(path)}: cannot be read: {why}"
        ) from None
    lines = (_COMMENT.sub("", line).strip() for line in text.splitlines())
    return tuple(dict.fromkeys(filter(None, lines)))
