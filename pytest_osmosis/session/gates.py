"""The gates of a pytest session: which are about which suite, which decide, and their verdicts.

`analysis.gates.evaluate` decides; each is reported as a test (`gate_reports`). Gates decide on a
suite of which every run is selected, and make its runs observations. Of a part (`-k` for one row,
a node id) the runs decide, as in a session without gates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigurationError
from ..options.build_spec import gate_mistake
from ..run_result import SuiteInfo
from .gate_reports import OutcomeLetters

if TYPE_CHECKING:
    from ..analysis.gates.names import Gate
    from ..analysis.planned_rows import PlannedRows
    from ..rollouts.suite import Suite
    from ..spec import SessionSpec
    from ..suite_results import EvalResult, SuiteResult
    from .seams import Feature


class SessionGates:
    """One a session and process: which gates there are, and which of them decide."""

    def __init__(
        self,
        spec: SessionSpec,
        *,
        suites: Mapping[str, Suite],
        infos: Callable[[], Mapping[str, SuiteInfo]],
        features: Sequence[Feature] = (),
    ) -> None:
        """`suites` are this process's, `infos` are of all suites of the session."""
        self._spec = spec
        self._features = features
        self._suites = suites
        self._infos = infos
        self.several = sum(each.companion_of is None for each in spec.evals) != 1
        """Whether gates are reported under the names of their suites."""
        self._for_tests = False
        """The gates are for tests; else for data files."""
        self._selected: Mapping[str, int] = {}
        self._gates = _parsed(spec.deciding.gates)
        self._rows: dict[str, PlannedRows] = {}
        self.letters = OutcomeLetters()
        self.has_gated = bool(self._gates) or any(
            each.companion_of or each.quarantine for each in spec.evals
        )
        """Whether anything may be decided by gates, or observed only: then `letters` is needed."""

    def decide_on_tests(self) -> None:
        """The gates are for tests: no data file is collected."""
        self._for_tests = self.several = True

    def rows(self, info: SuiteInfo) -> PlannedRows:
        """The suite's rows, read once."""
        rows = self._rows.get(info.name)
        if rows is None:
            from ..analysis.planned_rows import planned
            from .suite_rows import rows_of

            rows = planned(rows_of(info, self._suites, self._spec))
            self._rows[info.name] = rows
        return rows

    # ---- the gates of a suite

    def about(self, info: SuiteInfo) -> list[Gate]:
        """Return the gates about a suite; no difference of the first of a group from itself."""
        if not self._is_gated(info):
            return []
        from ..analysis.gates.names import CONDITIONS

        is_first = bool(info.label) and info.leader is None
        there = self._references(info)
        return [
            gate
            for gate in self._gates
            if all(value in CONDITIONS[name](info) for name, value in gate.only)
            and not (gate.minus and is_first and gate.minus not in there)
        ]

    def _is_gated(self, info: SuiteInfo) -> bool:
        """Whether gates decide on the suite, and not its runs."""
        is_own = info.companion_of is None and info.scored_by_test == self._for_tests
        return bool(self._gates) and is_own

    def _references(self, info: SuiteInfo) -> Mapping[str, int | None]:
        return dict(chain.from_iterable(each.references(info).items() for each in self._features))

    def resolved(self, info: SuiteInfo, eval_fns: Sequence[str] = ()) -> tuple[Gate, ...]:
        """The suite's gates, each with its eval function's whole name.

        `eval_fns`: names beside those of the suite. Raises GateError when one does not suit it.
        """
        if not (gates := self.about(info)):
            return ()
        from ..analysis.gates.parser import resolved

        there = self._references(info)
        return tuple(
            resolved(gate, eval_fns=_functions(gate, info, eval_fns), n=info.n, references=there)
            for gate in gates
        )

    # ---- before anything runs

    def begin(
        self, infos: Iterable[SuiteInfo], folder_of: Callable[[SuiteInfo], Path]
    ) -> Iterator[str]:
        """Have features find what belongs to suites, and check their gates; yield lines to show.

        `folder_of`: where each is kept. Raises ConfigurationError.
        """
        there = [info for info in infos if info.companion_of is None]
        for feature in self._features:
            yield from feature.known(there, folder_of, self.rows)
        if not self._gates:
            return
        from ..analysis.gates.parser import GateError

        try:
            for info in there:
                self.resolved(info)
            self._check_names(there)
        except GateError as error:
            raise ConfigurationError(gate_mistake(error)) from None

    def _check_names(self, infos: Collection[SuiteInfo]) -> None:
        """Raise GateError for a gate that names no suite as it should."""
        from ..analysis.gates.names import CHECKS

        gated = {info.name: self.about(info) for info in infos if self._is_gated(info)}
        known = [info for info in infos if info.name in gated]
        for gate, check in product(self._gates if known else (), CHECKS):
            check(gate, known, [each for each in known if gate in gated[each.name]])

    def deciding(self) -> Iterator[tuple[SuiteInfo, Sequence[Gate], PlannedRows]]:
        """Yield every suite with the gates that decide on it, and its rows."""
        for info in self._infos().values():
            if info.companion_of is None:
                gates = self.resolved(info) if self._decides(info) else ()
                yield info, gates, self.rows(info)

    # ---- once the runs are known

    def select(self, selected: Mapping[str, int]) -> None:
        """Take how many runs of each suite are selected: where all are, gates decide."""
        self._selected = selected
        for suite in self._suites.values():
            suite.gated = suite.gated or self._is_group_gated(suite.info)

    def _is_group_gated(self, info: SuiteInfo) -> bool:
        """Return whether a gate decides on the suite, or on another of its group."""
        known = [*self._infos().values(), *(suite.info for suite in self._suites.values())]
        return any(each.group == info.group and self._decides(each) for each in known)

    def _decides(self, info: SuiteInfo) -> bool:
        """Return whether the suite has gates, and all of its runs are selected."""
        return self._selected.get(info.name) == info.total_runs and bool(self.about(info))

    # ---- the end

    def is_gated(self, suite: str) -> bool:
        """Whether gates decide on a suite, and not its runs."""
        info = self._infos().get(suite)
        return info is not None and (info.companion_of is not None or self._is_group_gated(info))

    @property
    def gated(self) -> bool:
        """Whether gates decide."""
        return any(map(self._decides, self._infos().values()))

    def evaluated(self, result: EvalResult) -> EvalResult:
        """The result with the verdicts of gates; for a report, rows have digests."""
        suites = result.suites
        if self._spec.output is not None:
            from ..analysis.planned_rows import with_digests

            suites = tuple(with_digests(suite, self.rows(suite.info)) for suite in suites)
        return replace(result, suites=tuple(self._judged(suite, suites) for suite in suites))

    def _judged(self, suite: SuiteResult, every: Sequence[SuiteResult]) -> SuiteResult:
        if not self._decides(suite.info):
            return suite
        from ..analysis.gates.evaluate import evaluate_suite

        tables = (each.tables(suite, every).items() for each in self._features)
        return evaluate_suite(
            suite,
            self.resolved(suite.info, [function.name for function in suite.functions]),
            self.rows(suite.info),
            references=dict(chain.from_iterable(tables)),
            lacking="there is no earlier evaluation to compare with",
            confidence=self._spec.deciding.confidence,
        )


def _parsed(gates: Sequence[str]) -> tuple[Gate, ...]:
    if not gates:
        return ()
    from ..analysis.gates.parser import parse_gate

    return tuple(map(parse_gate, gates))


def _functions(gate: Gate, info: SuiteInfo, eval_fns: Sequence[str]) -> Sequence[str]:
    """The names that a gate may use; a test may yet record a score under any."""
    if not info.scored_by_test or gate.eval_fn is None or gate.eval_fn in info.eval_fns:
        return info.eval_fns
    return [*(eval_fns or info.eval_fns), gate.eval_fn]
