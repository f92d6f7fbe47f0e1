"""What a session that ran one rollout at a time has waited for. Knows results, not how they fit."""

from __future__ import annotations

import time

from ..suite_results import EvalResult

RUNS = 20
"""Fewer are soon done, whatever they wait for."""
WAITED_S = 10.0
"""As are runs that waited less in all."""


def waits_line(result: EvalResult, *, now: float | None = None) -> str | None:
    """Say what would have been quicker, where more than half of the time went into model calls.

    Runs of earlier sessions do not count. `now` is in seconds since 1970; None: this moment.
    """
    total_s = result.duration_ms / 1000.0
    began = (time.time() if now is None else now) - total_s
    made = [run for suite in result.suites for run in suite.runs if run.started_at >= began]
    waited_s = sum(run.llm_ms for run in made) / 1000.0
    if len(made) < RUNS or waited_s < WAITED_S or not total_s / 2 < waited_s <= total_s:
        return None
    limits = [suite.info.max_concurrent for suite in result.suites]
    many = min(16, len(made), sum(16 if limit is None else limit for limit in limits))
    cure = f"--batch-size {many} keeps {many} in flight"
    if many == 1:
        cure = "max_concurrent of the workflow's config keeps it so"
    return f"one at a time: {waited_s:.0f} of {total_s:.0f} s were waits; {cure}"
