"""The gates of a session: what suits which suite, and the results of suites that have ended.

`evaluate_suite` is pure, and serves `osmosis eval merge` too. Knows no pytest: the gates' reports
and the exit status are `session.gates`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...run_result import SuiteInfo

if TYPE_CHECKING:
    from ...suite_results import EvalResult, SuiteResult
    from ...verdicts import GateResult
    from ..baseline import Baseline
    from ..planned_rows import PlannedRows
    from .parser import Gate, GateError

RowsOf = Callable[[SuiteInfo], "PlannedRows"]

Selected = Callable[["Gate", SuiteInfo], bool]
"""Whether a gate is to be evaluated."""


def evaluate_suite(
    suite: SuiteResult,
    gates: Sequence[Gate],
    rows: PlannedRows,
    *,
    baseline: Baseline | None,
    no_baseline: str,
    confidence: float | None,
    pairs: int = 1,
) -> SuiteResult:
    """Return the suite with a result for each gate, and with what changed against a baseline.

    The gates have whole names of eval functions. `no_baseline`: why nothing can be measured of a
    difference without one. The comparison's intervals hold for so many `pairs` together; where no
    `confidence` is given they have the usual one. Raises GateError when a gate does not suit the
    suite.
    """
    from ...verdicts import POINT_ESTIMATES
    from ..score_table import score_table_of
    from .evaluate import evaluate
    from .result import unmeasured

    table = score_table_of(suite, rows, [gate.eval_fn for gate in gates if gate.eval_fn])
    if baseline is not None:
        from ..aggregate import CONFIDENCE
        from ..baseline import compared

        level = confidence or CONFIDENCE
        report = compared(suite, table, baseline=baseline, confidence=level, pairs=pairs)
        suite = replace(suite, baseline=report)

    def result_of(gate: Gate) -> GateResult:
        if gate.against_baseline and baseline is None:
            result = unmeasured(gate, no_baseline)
        else:
            other = None if baseline is None else baseline.table
            result = evaluate(gate, table, confidence=confidence, baseline=other)
        if result.low is None or confidence == POINT_ESTIMATES:
            return replace(result, confidence=confidence)
        return result

    return replace(suite, verdicts=tuple(map(result_of, gates)))


class GateEvaluator:
    """The gates and baselines of a session."""

    def __init__(
        self,
        gates: Iterable[str] = (),
        *,
        confidence: float | None = None,
        has_baseline: bool = False,
        rows_of: RowsOf,
    ) -> None:
        """`confidence` as `GateResult` has it; the intervals that are shown have it too."""
        self.confidence = confidence
        self.baselines: dict[str, Baseline] = {}
        """By suite: what it is compared with, as far as that is known before anything runs."""
        self.for_marked = False
        """The gates are for marked test functions; else for data files."""
        self._has_baseline = has_baseline
        self._gates = _parsed(tuple(gates))
        self._rows_of = rows_of
        self._rows: dict[str, PlannedRows] = {}

    def texts(self, info: SuiteInfo) -> list[str]:
        """Return those of the gates that are about a suite, as given, blanks made single."""
        return [gate.text for gate in self._of(info)]

    def unclear(self, infos: Collection[SuiteInfo]) -> Iterator[GateError]:
        """Yield an error for each gate about no candidate, or about agents of one short name."""
        if not (gated := [info for info in infos if self.is_gated(info)]):
            return
        from .parser import GateError

        for gate in self._gates:
            agents = dict.fromkeys(info.agent for info in gated if gate in self._of(info))
            named = next((name for kind, name in gate.candidate if kind == "agent"), None)
            if named is not None and len(agents) > 1:
                raised = f"several agents are called {named!r}: {', '.join(agents)}; name one so"
                yield GateError(gate.text, raised)
            if not any(gate in self._of(info) for info in gated):
                there = dict.fromkeys(pair for info in gated for pair in _named(info))
                first = "; the first candidate is what others are compared with"
                raised = f"there is no such candidate, only {', '.join(map('='.join, there))}"
                yield GateError(gate.text, raised + first * gate.against_baseline)

    def _of(self, info: SuiteInfo) -> list[Gate]:
        """Return the gates about a suite; no difference of the first candidate from itself."""
        if not self.is_gated(info):
            return []
        is_first = bool(info.label) and info.candidate_of is None and not self._has_baseline
        named = set(_named(info))
        return [
            gate
            for gate in self._gates
            if named.issuperset(gate.candidate) and not (gate.against_baseline and is_first)
        ]

    def is_gated(self, info: SuiteInfo) -> bool:
        """Whether gates decide on the suite, and not its runs."""
        return bool(self._gates) and info.baseline_of is None and info.marked == self.for_marked

    def gates(self, info: SuiteInfo, eval_fns: Sequence[str] | None = None) -> tuple[Gate, ...]:
        """The suite's gates, each with its eval function's whole name.

        Raises:
            GateError: when one does not suit the suite.
        """
        if not (gates := self._of(info)):
            return ()
        from .parser import resolved

        baseline = self.baselines.get(info.name)
        return tuple(
            resolved(
                gate,
                eval_fns=_functions(gate, info, eval_fns),
                n=info.n,
                baseline_n=None if baseline is None else baseline.suite.info.n,
                has_baseline=self._has_baseline or info.candidate_of is not None,
            )
            for gate in gates
        )

    def rows(self, info: SuiteInfo) -> PlannedRows:
        """The suite's rows, read once."""
        rows = self._rows.get(info.name)
        if rows is None:
            rows = self._rows[info.name] = self._rows_of(info)
        return rows

    def evaluated(self, result: EvalResult, *, selected: Selected, digests: bool) -> EvalResult:
        """Return the result with gates evaluated; `digests`: each row with that of its content."""
        suites = list(result.suites)
        if digests:
            from ..planned_rows import with_digests

            suites = [with_digests(suite, self.rows(suite.info)) for suite in suites]
        baseline_models = {suite.info.baseline_of: suite for suite in suites}
        own = (suite for suite in suites if suite.info.baseline_of is None)
        return replace(
            result,
            suites=tuple(
                self._evaluated(
                    replace(suite, baseline_model_result=baseline_models.get(suite.info.name)),
                    selected,
                    suites,
                )
                for suite in own
            ),
        )

    def _evaluated(
        self, suite: SuiteResult, selected: Selected, every: Sequence[SuiteResult]
    ) -> SuiteResult:
        names = [function.name for function in suite.functions]
        gates = [gate for gate in self.gates(suite.info, names) if selected(gate, suite.info)]
        pairs, baseline = 1, self.baselines.get(suite.info.name)
        if baseline is None:
            pairs, baseline = pair_of(suite, every, self.rows)
        if not gates and baseline is None:
            return suite
        return evaluate_suite(
            suite,
            gates,
            self.rows(suite.info),
            baseline=baseline,
            no_baseline="there is no earlier evaluation to compare with",
            confidence=self.confidence,
            pairs=pairs,
        )


def pair_of(
    suite: SuiteResult,
    every: Iterable[SuiteResult],
    rows_of: Callable[[SuiteInfo], PlannedRows | None] = lambda info: None,
) -> tuple[int, Baseline | None]:
    """Return what a suite is compared with in its session, and how many suites are, with the same.

    That is the baseline model's part, else the first candidate.
    """
    first = suite.info.candidate_of
    group = {each.info.name: each for each in every if each.info.group == first}
    other = suite.baseline_model_result or group.get(first or "")
    if other is None:
        return 1, None
    from ..baseline import baseline_of

    source = other.info.model if suite.baseline_model_result else other.info.label
    return max(1, len(group) - 1), baseline_of(other, source, rows_of(other.info))


def _named(info: SuiteInfo) -> list[tuple[str, str]]:
    """Return the names by which a gate may call a candidate."""
    agents = dict.fromkeys([info.agent, info.agent.rpartition(":")[2]])
    return [("model", info.model), *(("agent", agent) for agent in agents)]


def _parsed(gates: Sequence[str]) -> tuple[Gate, ...]:
    if not gates:
        return ()
    from .parser import parse_gate

    return tuple(parse_gate(text) for text in gates)


def _functions(gate: Gate, info: SuiteInfo, eval_fns: Sequence[str] | None) -> Sequence[str]:
    """The names that a gate may use; a test may yet record a score under any."""
    if not info.marked or gate.eval_fn is None or gate.eval_fn in info.eval_fns:
        return info.eval_fns
    return [*(eval_fns or info.eval_fns), gate.eval_fn]
