"""Recorded conversations, scored once more: `--osmosis-rescore`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ...options.table import FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    from pathlib import Path

    from ...options.reader import OptionReader

_OF_ROLLOUTS = (
    "agent", "map", "system-prompt", "system-prompt-file", "n", "limit", "offset", "rows", "sample",
    "sample-seed", "shard", "model", "base-url", "api-key-env", "api-key", "price-per-mtok",
    "pass-env", "temperature", "top-p", "max-tokens", "seed", "max-turns", "agent-timeout",
    "baseline-model", "baseline-base-url", "baseline-api-key-env", "inputs", "header", "extra-body",
)  # fmt: skip
"""Options that say how rollouts are run."""


@dataclass(frozen=True, slots=True)
class RescoreSpec:
    """Recorded conversations that are to be scored again; what is None stays as it was."""

    run: str
    """The evaluation's name, or a path to it."""
    data: Path | None = None
    eval_fns: tuple[str, ...] = ()
    grader: str | None = None
    strip_reasoning: Literal[True] | None = None
    thresholds: tuple[float, tuple[str, ...]] | None = None
    """That of all eval functions, and those that have their own."""


def _read(given: OptionReader) -> RescoreSpec | None:
    run = given("rescore")
    if run is None:
        return None
    import pytest

    from ...options.build_spec import thresholds

    data = given("data") if given.on_command_line("data") else ()
    if len(data) > 1:
        raise pytest.UsageError(f"{given.spelled('rescore')} goes with one --osmosis-data alone")
    return RescoreSpec(
        run=run,
        data=given.resolved("data", data[0]) if data else None,
        eval_fns=given("eval-fn"),
        grader=given("grader"),
        strip_reasoning=given("strip-reasoning") or None,
        thresholds=None if given.raw("pass-threshold") is None else thresholds(given),
    )


RESCORE = FeatureEntry(
    "rescore",
    [
        OptionSet(
            "resuming",
            (
                Option(
                    "rescore",
                    "score the recorded conversations of this evaluation again, without any model "
                    "call",
                    metavar="RUN",
                    excludes=("fresh", "resume", "extend", "retry-failed"),
                    replaces=_OF_ROLLOUTS,
                    serves=("grader", "eval-fn", "strip-reasoning", "only"),
                    names_evaluation=True,
                ),
            ),
            after="retry-failed",
        )
    ],
    read=_read,
    feature="RescoreFeature",
)
