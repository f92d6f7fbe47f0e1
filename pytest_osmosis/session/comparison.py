"""What the suites of a session are compared with, and what has changed.

That is an earlier report, each suite's last evaluation that was kept, another model's runs in the
same session, or the first of several candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..escaping import shown_path
from ..run_result import SuiteInfo

if TYPE_CHECKING:
    from ..analysis.baseline import Baseline
    from ..analysis.gates.parser import Gate
    from ..analysis.planned_rows import PlannedRows
    from ..analysis.score_table import ScoreTable
    from ..spec import SessionSpec
    from ..suite_results import EvalResult, SuiteResult


class Comparison:
    """One a session and process."""

    def __init__(self, spec: SessionSpec, rows_of: Callable[[SuiteInfo], PlannedRows]) -> None:
        """`rows_of` returns the rows of a suite, also those of which none has run."""
        self._asked = spec.deciding
        self._rows_of = rows_of
        self._known: dict[str, Baseline] = {}
        """By suite: what it is compared with, as far as that is known before anything runs."""

    # ---- before anything runs

    def begin(
        self, infos: Sequence[SuiteInfo], folder_of: Callable[[SuiteInfo], Path]
    ) -> Iterator[str]:
        """Find what these suites are compared with; yield lines to show; ConfigurationError."""
        if self._asked.baseline is not None:
            self._read(self._asked.baseline, infos)
        elif self._asked.last:
            yield from self._find_last(infos, folder_of)

    def _read(self, path: Path, infos: Sequence[SuiteInfo]) -> None:
        from ..analysis.baseline import NoCounterpart, baselines_of
        from ..reports.json_reader import UnreadableReport, read_result

        source = shown_path(path)
        try:
            self._known |= baselines_of(read_result(path, figures=False), infos, source=source)
        except UnreadableReport as error:
            raise ConfigurationError(f"--osmosis-baseline {error}") from None
        except NoCounterpart as error:
            raise ConfigurationError(
                f"--osmosis-baseline {source}: {error}; name a report of the same evaluation"
            ) from None

    def _find_last(
        self, infos: Iterable[SuiteInfo], folder_of: Callable[[SuiteInfo], Path]
    ) -> Iterator[str]:
        from ..storage.kept_result import last_complete

        for info in infos:
            last = last_complete(info, folder_of(info))
            if last is None:
                yield f"osmosis: no earlier complete evaluation of {info.name} to compare with"
            else:
                self._known[info.name] = last
                yield f"osmosis: {info.name} is compared with {last.source}"

    # ---- gates

    def references(self, info: SuiteInfo) -> Mapping[str, int | None]:
        """Return what a gate may subtract from a suite, with its runs a row, if known."""
        if not (self._asked.has_baseline or info.candidate_of):
            return {}
        known = self._known.get(info.name)
        return {"baseline": None if known is None else known.suite.info.n}

    def check(self, gate: Gate, infos: Collection[SuiteInfo], about: Collection[SuiteInfo]) -> None:
        """Raise GateError for a gate about no candidate, or about agents of one short name."""
        from ..analysis.gates.names import CONDITIONS
        from ..analysis.gates.parser import GateError

        agents, named = dict.fromkeys(info.agent for info in about), dict(gate.only).get("agent")
        if named is not None and len(agents) > 1:
            problem = f"several agents are called {named!r}: {', '.join(agents)}; name one so"
            raise GateError(gate.text, problem)
        if about:
            return
        there = dict.fromkeys(
            f"{name}={value}"
            for info in infos
            for name, values_of in CONDITIONS.items()
            for value in values_of(info)
        )
        first = "; the first candidate is what others are compared with" if gate.minus else ""
        problem = f"there is no such candidate, only {', '.join(there)}{first}"
        raise GateError(gate.text, problem)

    def tables(
        self, suite: SuiteResult, every: Iterable[SuiteResult]
    ) -> Mapping[str, Callable[[], ScoreTable]]:
        """Return what there is to subtract from a suite that has ended, by name."""
        baseline = self._pair(suite, every)[1]
        return {} if baseline is None else {"baseline": baseline.scores}

    # ---- the end

    def ended(self, result: EvalResult) -> EvalResult:
        """Return the result with what changed; baseline models' suites become parts of others."""
        others = {suite.info.baseline_of: suite for suite in result.suites}
        own = (suite for suite in result.suites if suite.info.baseline_of is None)
        return replace(
            result,
            suites=tuple(
                replace(
                    self._compared(suite, result.suites),
                    baseline_model_result=others.get(suite.info.name),
                )
                for suite in own
            ),
        )

    def _compared(self, suite: SuiteResult, every: Sequence[SuiteResult]) -> SuiteResult:
        pairs, baseline = self._pair(suite, every)
        if baseline is None:
            return suite
        from ..analysis.baseline import with_changes

        rows, level = self._rows_of(suite.info), self._asked.confidence
        return with_changes(suite, rows, baseline, confidence=level, pairs=pairs)

    def _pair(
        self, suite: SuiteResult, every: Iterable[SuiteResult]
    ) -> tuple[int, Baseline | None]:
        if (known := self._known.get(suite.info.name)) is not None:
            return 1, known
        if not suite.info.label or suite.info.baseline_of:
            return 1, None
        from ..analysis.baseline import pair_of

        return pair_of(suite, every, self._rows_of)
