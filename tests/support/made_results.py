"""Results made up in a line: what a session would have come to, for tests of what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_osmosis.analysis.aggregate import aggregate
from pytest_osmosis.run_result import RunResult, SuiteInfo
from pytest_osmosis.suite_results import EvalResult, SuiteResult

EXACT = "rewards:exact"
NASTY = (
    "<script>alert(1)</script> | `x` ``` **bold** [a](javascript:alert(1)) @octocat </details>"
    " ![i](http://x.example/y.png) &amp; <img src=x onerror=alert(1)>\n::error::owned\n# title"
)
"""Text that a renderer must not take for more than text."""
RunSpec = float | str | None
"""A score; an error of the endpoint; or None for a run that is not there."""


def info(**changed: object) -> SuiteInfo:
    """A suite of `EXACT` alone."""
    usual = SuiteInfo(
        name="data.jsonl",
        agent="agent:agent_loop",
        data="/project/data.jsonl",
        model="calc-7b",
        endpoint="localhost:8000",
        eval_fns=(EXACT,),
        n=1,
        pass_threshold=1.0,
        rows=1,
        digest="4f1c" * 16,
    )
    return replace(usual, **changed)  # type: ignore[arg-type]


def run_of(spec: float | str, row: int, run: int, *, suite: str, answer: str) -> RunResult:
    """One run."""
    usual = RunResult(
        suite, row, run, success=True, model="calc-7b", started_at=1.79e9, duration_ms=450,
        tokens=184, prompt_tokens=100, completion_tokens=84, llm_calls=2, cost_usd=0.001,
    )  # fmt: skip
    if isinstance(spec, str):
        return replace(
            usual, success=False, error=spec, error_type="provider", error_kind="overloaded"
        )
    return replace(usual, scores={EXACT: spec}, passed=spec >= 1.0, answer=answer)


def suite_of(
    rows: Sequence[Sequence[RunSpec]], *, answer: str = "391", **changed: object
) -> SuiteResult:
    """A suite from the runs of each row."""
    suite = info(**{"n": max(map(len, rows)), "rows": len(rows), **changed})
    runs = [
        run_of(spec, row, run, suite=suite.name, answer=answer)
        for row, specs in enumerate(rows)
        for run, spec in enumerate(specs)
        if spec is not None
    ]
    return aggregate(suite, runs, selected=suite.total_runs)


def result_of(*suites: SuiteResult, environment: Mapping[str, object] | None = None) -> EvalResult:
    """A session of these suites."""
    return EvalResult(tuple(suites), 31_200, environment=environment or {})
